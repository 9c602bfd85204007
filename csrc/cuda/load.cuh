// Elements of a row -> registers: 16 bytes a lane at a time, whatever the alignment and the strides.
#pragma once

#include "axes.cuh"

namespace gpureduce::cuda {

template <class E>
struct alignas(kVectorBytes) Pack {
    E value[components<E>];
};

template <class E>
__device__ __forceinline__ Pack<E> as_pack(uint4 words) {
    return bit_cast<Pack<E>>(words);
}

// Read-only for the whole kernel, so the non-coherent path is legal. `address` is 16-byte aligned.
__device__ __forceinline__ uint4 load_vector(const void* address) { return __ldg(static_cast<const uint4*>(address)); }

// The same under a predicate, zeros otherwise. As one instruction, not a branch, so that several can be in flight.
__device__ __forceinline__ uint4 load_vector_if(bool wanted, const void* address) {
    uint4 v{0, 0, 0, 0};
    asm("{ .reg .pred p; setp.ne.s32 p, %5, 0; @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4]; }"
        : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
        : "l"(address), "r"(int(wanted)));
    return v;
}

template <class E>
__device__ __forceinline__ E load_element(const E* address) {
    if constexpr (sizeof(E) == 16) {
        return bit_cast<E>(__ldg(reinterpret_cast<const double2*>(address)));
    } else if constexpr (sizeof(E) == 8) {
        return bit_cast<E>(__ldg(reinterpret_cast<const unsigned long long*>(address)));
    } else if constexpr (sizeof(E) == 4) {
        return bit_cast<E>(__ldg(reinterpret_cast<const unsigned*>(address)));
    } else if constexpr (sizeof(E) == 2) {
        return bit_cast<E>(__ldg(reinterpret_cast<const unsigned short*>(address)));
    } else {
        return bit_cast<E>(__ldg(reinterpret_cast<const unsigned char*>(address)));
    }
}

// 16 bytes that begin `shift` bytes into the 32 bytes low, high.
template <class E>
__device__ __forceinline__ uint4 shifted(uint4 low, uint4 high, int shift) {
    unsigned const words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    bool const two = shift & 8, one = shift & 4;
    unsigned near[6], from[5];
#pragma unroll
    for (int i = 0; i < 6; ++i) near[i] = two ? words[i + 2] : words[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) from[i] = one ? near[i + 1] : near[i];
    if constexpr (sizeof(E) >= 4) return {from[0], from[1], from[2], from[3]};
    int const bits = (shift & 3) * 8;
    return {__funnelshift_r(from[0], from[1], bits), __funnelshift_r(from[1], from[2], bits),
            __funnelshift_r(from[2], from[3], bits), __funnelshift_r(from[3], from[4], bits)};
}

// Where 16 bytes at any address come from: one aligned load, or two and a shift. Splitting the loads from the shift lets
// a caller issue the loads of several sources before it waits for the first.
template <bool Aligned>
struct Source;

template <>
struct Source<true> {
    struct Raw {
        uint4 low;
    };
    const char* base;
    __device__ explicit Source(const void* address) : base(static_cast<const char*>(address)) {}
    __device__ bool inside(const void*, const void* end) const { return base + kVectorBytes <= end; }
    __device__ Source plus(int64_t bytes) const { return Source(base + bytes); }
    __device__ Raw fetch() const { return {load_vector(base)}; }
    __device__ Raw fetch_if(bool wanted) const { return {load_vector_if(wanted, base)}; }
    template <class E>
    __device__ Pack<E> pack(Raw raw) const {
        return as_pack<E>(raw.low);
    }
};

template <>
struct Source<false> {
    struct Raw {
        uint4 low, high;
    };
    const char* base;
    int shift;
    __device__ explicit Source(const void* address) {
        shift = int(reinterpret_cast<uintptr_t>(address) % kVectorBytes);
        base = static_cast<const char*>(address) - shift;
    }
    __device__ Source(const char* aligned, int bytes) : base(aligned), shift(bytes) {}
    __device__ bool inside(const void* begin, const void* end) const {
        return base >= begin && base + 2 * kVectorBytes <= end;
    }
    __device__ Source plus(int64_t bytes) const { return Source(base + bytes, shift); }  // a multiple of 16
    __device__ Raw fetch() const { return {load_vector(base), load_vector(base + kVectorBytes)}; }
    __device__ Raw fetch_if(bool wanted) const {
        return {load_vector_if(wanted, base), load_vector_if(wanted, base + kVectorBytes)};
    }
    template <class E>
    __device__ Pack<E> pack(Raw raw) const {
        return as_pack<E>(shifted<E>(raw.low, raw.high, shift));
    }
};

template <Loader L>
struct RowArgs {
    const void* in;
    const void* in_end;  // one past the last byte that the strides reach
    void* out;
    unsigned long long* mailbox;
    int64_t outputs, n, leaves;
    int64_t full_leaves;  // of `leaves`, those that lie wholly in the row
    int chunk_leaves, chunks;
    int64_t first_row;  // of this launch
    bool grouped;       // gather: every 16-byte group of a row is one aligned run of memory
    DType out_type;
    AxisMap<max_axes<L>> kept;
    AxisMap<L == Loader::gather ? kMaxDims : 1> reduced;
};

struct LeafRange {
    int64_t first, last;
};

// The elements of one row, a pack at a time.
template <class E, Loader L>
struct RowReader {
    static constexpr int64_t kStepBytes = kLanes * kVectorBytes;  // between the loads of a lane
    static constexpr int kStep = kLanes * components<E>;
    using From = Source<L != Loader::unaligned>;

    const RowArgs<L>& args;
    const E* row;

    __device__ RowReader(const RowArgs<L>& a, int64_t output)
        : args(a), row(static_cast<const E*>(a.in) + a.kept.at(output).in) {}
    __device__ RowReader(const RowArgs<L>& a, const E* start) : args(a), row(start) {}

    __device__ __forceinline__ From source(int64_t e) const {
        if constexpr (L == Loader::gather) return From(row + args.reduced.at(e).in);
        return From(row + e);
    }

    // Whether the pack at e can be fetched from its source: within the tensor, though perhaps beyond the row.
    __device__ __forceinline__ bool inside(const From& from) const {
        if constexpr (L == Loader::gather) return args.grouped;
        return from.inside(args.in, args.in_end);
    }

    // The pack at e, element by element; those at n and beyond are not read and come back as anything. For the few packs
    // at the ends of a tensor, and for gathers.
    __device__ __forceinline__ Pack<E> read_elements(int64_t e) const { return read_elements_of(args, row, e); }

    // Out of line, so that the others pay nothing for it; and no member, so that the reader need not be in memory.
    static __device__ __noinline__ Pack<E> read_elements_of(const RowArgs<L>& args, const E* row, int64_t e) {
        Pack<E> pack;
#pragma unroll
        for (int c = 0; c < components<E>; ++c) {
            if (e + c >= args.n) continue;
            if constexpr (L == Loader::gather)
                pack.value[c] = load_element(row + args.reduced.at(e + c).in);
            else
                pack.value[c] = load_element(row + e + c);
        }
        return pack;
    }

    // The leaves that read_leaf may be called for: wholly in the row, and fetched from within the tensor.
    __device__ __forceinline__ LeafRange plain_leaves() const {
        int64_t const full = args.full_leaves;
        if constexpr (L == Loader::unaligned) {
            From const begin(row), end(row + full * (kLoads * kStep));
            return {begin.base >= args.in ? 0 : 1, end.base + kVectorBytes <= args.in_end ? full : full - 1};
        } else {
            return {0, L == Loader::vector || args.grouped ? full : 0};
        }
    }

    // Leaves from `first` on, with indices that fit an int: what the loop over plain leaves keeps in registers.
    struct Tile {
        const RowReader& reader;
        const E* start;
        int64_t first;  // element

        // This lane's packs of a plain leaf, as words; e is the first element of the first of them, in the tile.
        __device__ __forceinline__ void read_leaf(int e, uint4 (&words)[kLoads]) const {
            if constexpr (L == Loader::gather) {
#pragma unroll
                for (int k = 0; k < kLoads; ++k) words[k] = load_vector(reader.source(first + e + k * kStep).base);
            } else {
                read_run(From(start + e), words);
            }
        }
    };
    static __device__ __forceinline__ void read_run(Source<true> from, uint4 (&words)[kLoads]) {
#pragma unroll
        for (int k = 0; k < kLoads; ++k) words[k] = load_vector(from.base + k * kStepBytes);
    }
    // Each lane loads its aligned vectors and has the next one from the next lane: lane 31 from lane 0's following load,
    // and past the last of them by a load of its own.
    static __device__ __forceinline__ void read_run(Source<false> from, uint4 (&words)[kLoads]) {
        int const lane = threadIdx.x % kLanes;
#pragma unroll
        for (int k = 0; k < kLoads; ++k) words[k] = load_vector(from.base + k * kStepBytes);
        uint4 const beyond = load_vector_if(lane == kLanes - 1, from.base + (kLoads - 1) * kStepBytes + kVectorBytes);
#pragma unroll
        for (int k = 0; k < kLoads; ++k) {
            uint4 high = words[k];
            if (k + 1 < kLoads && lane == 0) high = words[k + 1];
            high = {from_next_lane(high.x), from_next_lane(high.y), from_next_lane(high.z), from_next_lane(high.w)};
            if (k + 1 == kLoads && lane == kLanes - 1) high = beyond;
            words[k] = shifted<E>(words[k], high, from.shift);
        }
    }
    static __device__ __forceinline__ unsigned from_next_lane(unsigned word) {
        return __shfl_sync(0xffffffffu, word, (threadIdx.x + 1) % kLanes);
    }

    __device__ __forceinline__ Tile from_leaf(int64_t leaf) const {
        int64_t const first = leaf * (kLoads * kStep);
        return {*this, row + (L == Loader::gather ? 0 : first), first};
    }
};

}  // namespace gpureduce::cuda
