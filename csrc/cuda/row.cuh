// The leaves of a row -> registers, whatever the alignment and the strides.
#pragma once

#include "axes.cuh"
#include "load.cuh"

namespace gpureduce::cuda {

// Position in a row -> bytes from its start, for one or two reduced axes and positions below 2^31.
struct Walk {
    int step, gap;  // bytes from one position to the next, and in addition from one inner run to the next
    Divisor inner;

    static Walk of(const AxisList& reduced, int count, int64_t element_bytes) {
        Axis const last = reduced.axis[count - 1];
        int64_t const gap = count < 2 ? 0 : reduced.axis[0].stride - last.size * last.stride;
        return {int(last.stride * element_bytes), int(gap * element_bytes), Divisor::of(last.size)};
    }
    __device__ __forceinline__ int64_t at(unsigned position) const {
        return int64_t(int(position)) * step + int64_t(int(inner.divide(position))) * gap;
    }
};

template <Loader L>
inline constexpr bool walks = L == Loader::nested || L == Loader::strided;

// Leaves of a row are counted in 32 bits where it is shorter than 2^31 elements or lies in memory without gaps.
template <Loader L>
using LeafCount = std::conditional_t<L == Loader::gather, int64_t, int>;

// In the order of their use: constants come to an SM in lines of 64 bytes, and whoever needs the first of one waits. The results are
// needed last, by one thread, so they are in a line that was needed before.
template <Loader L>
struct RowArgs {
    const void* in;
    int64_t n, outputs;
    int64_t first_row;  // of this launch
    int chunk_leaves, chunks;
    unsigned long long* mailbox;
    Results results;
    AxisMap<max_axes<L>> kept;
    const void* in_end;  // vector, unaligned: one past the last byte that the strides reach
    bool grouped;        // gather: every 16-byte group of a row is one aligned run of memory
    std::conditional_t<walks<L>, Walk, AxisMap<L == Loader::gather ? kMaxDims : 1>> reduced;
};

template <Loader L>
struct LeafRange {
    LeafCount<L> first, last;
};

// What a lane reads of a leaf. Packs: component c of pack k is element lane*C + c + k*32*C, C = components<E>.
struct Packs {
    uint4 words[kLoads];
};
// The same, of a leaf that begins `by` elements behind a 16-byte boundary, in aligned packs: element e of the leaf is where
// element e + by would be. Those of the last pack of a load that wrap around are in front of the first one, in lane 0.
struct ShiftedPacks : Packs {
    int by;
};
// Elements: value c + k*C is element lane + c*32 + k*32*C, so that lanes side by side read side by side.
template <class E>
struct Elements {
    E value[kLoads * components<E>];
};

template <class E, Loader L>
struct RowReader {
    static constexpr int64_t kStepBytes = kLanes * kVectorBytes;  // between the loads of a lane
    static constexpr int kStep = kLanes * components<E>;
    static constexpr int kLeaf = kLoads * kStep;
    static constexpr Loader loader = L;
    using Leaves = LeafCount<L>;
    // Plain leaves that a warp reads at once. The addresses of strided elements take registers, too; 64 of them are too many.
    static constexpr int kInFlight = L == Loader::gather ? 1 : L != Loader::strided ? 2 : sizeof(E) > 1 ? 1 : 0;
    using From = Source<L != Loader::unaligned>;

    const RowArgs<L>& args;
    const E* row;

    __device__ RowReader(const RowArgs<L>& a, int64_t output)
        : args(a), row(static_cast<const E*>(a.in) + a.kept.at(output).in) {}
    __device__ RowReader(const RowArgs<L>& a, const E* start) : args(a), row(start) {}

    // How many leaves the row has, and how many of them lie wholly in it.
    __device__ __forceinline__ Leaves leaves() const { return Leaves(uint64_t(args.n + kLeaf - 1) / kLeaf); }
    __device__ __forceinline__ Leaves full_leaves() const { return Leaves(uint64_t(args.n) / kLeaf); }

    __device__ __forceinline__ const E* address(int64_t e) const {
        if constexpr (walks<L>)
            return reinterpret_cast<const E*>(reinterpret_cast<const char*>(row) + args.reduced.at(unsigned(e)));
        else if constexpr (L == Loader::gather)
            return row + args.reduced.at(e).in;
        else
            return row + e;
    }
    __device__ __forceinline__ From source(int64_t e) const { return From(address(e)); }

    // Of what this lane reads of a leaf, the first element.
    static __device__ __forceinline__ int lane_first() {
        constexpr bool side_by_side = L == Loader::strided || L == Loader::unaligned;
        return threadIdx.x % kLanes * (side_by_side ? 1 : components<E>);
    }

    // Whether the pack at e can be fetched from its source: within the tensor, though perhaps beyond the row.
    __device__ __forceinline__ bool inside(const From& from) const {
        if constexpr (L == Loader::gather) return args.grouped;
        if constexpr (walks<L>) return true;
        return from.inside(args.in, args.in_end);
    }

    // The pack at e, element by element; those at n and beyond are not read and come back as anything. For the few packs
    // at the ends of a tensor, and for gathers.
    __device__ __forceinline__ Pack<E> read_elements(int64_t e) const { return read_elements_of(args, row, e); }

    // Out of line, so that the others pay nothing for it; and no member, so that the reader need not be in memory.
    static __device__ __noinline__ Pack<E> read_elements_of(const RowArgs<L>& args, const E* row, int64_t e) {
        Pack<E> pack;
#pragma unroll
        for (int c = 0; c < components<E>; ++c)
            if (e + c < args.n) pack.value[c] = load_element(RowReader(args, row).address(e + c));
        return pack;
    }

    // The leaves that read_leaf may be called for: wholly in the row, and fetched from within the tensor.
    __device__ __forceinline__ LeafRange<L> plain_leaves() const {
        Leaves const full = full_leaves();
        if constexpr (L == Loader::unaligned) {
            From const begin(row), end(row + int64_t(full) * kLeaf);
            return {begin.base >= args.in ? 0 : 1, end.base + kVectorBytes <= args.in_end ? full : full - 1};
        } else {
            return {0, kInFlight > 0 && (L != Loader::gather || args.grouped) ? full : 0};
        }
    }

    // Leaves from `first` on, with indices that fit an int: what the loop over plain leaves keeps in registers.
    struct Tile {
        const RowReader& reader;
        const E* start;  // vector, unaligned: of this lane's part of the first leaf
        int64_t first;   // element

        // What this lane reads of plain leaf first + i.
        __device__ __forceinline__ auto read_leaf(int i) const {
            int const lane = threadIdx.x % kLanes;
            if constexpr (L == Loader::strided) {
                Elements<E> elements;
                unsigned const e = unsigned(first) + i * kLeaf + lane;
#pragma unroll
                for (int j = 0; j < kLoads * components<E>; ++j)
                    elements.value[j] = load_element(reader.address(e + j * kLanes));
                return elements;
            } else if constexpr (L == Loader::unaligned) {
                return read_shifted(From(start + int64_t(i) * kLeaf));
            } else {
                Packs packs;
                int const e = (i * (kLoads * kLanes) + lane) * components<E>;
#pragma unroll
                for (int k = 0; k < kLoads; ++k)
                    packs.words[k] = load_vector(L == Loader::vector ? start + int64_t(i) * kLeaf + k * kStep
                                                                     : reader.address(first + e + k * kStep));
                return packs;
            }
        }
    };
    static __device__ __forceinline__ ShiftedPacks read_shifted(From from) {
        ShiftedPacks packs;
        packs.by = from.shift / int(sizeof(E));
        bool const first = threadIdx.x % kLanes == 0;
#pragma unroll
        for (int k = 0; k < kLoads; ++k) packs.words[k] = load_vector(from.base + k * kStepBytes);
        uint4 const beyond = load_vector_if(first, from.base + kLoads * kStepBytes);
        uint4 const before = bytes_below(first ? from.shift : 0);
#pragma unroll
        for (int k = 0; k < kLoads; ++k)
            packs.words[k] = select_bits(before, k + 1 < kLoads ? packs.words[k + 1] : beyond, packs.words[k]);
        return packs;
    }

    __device__ __forceinline__ Tile from_leaf(LeafCount<L> leaf) const {
        constexpr bool kInPlace = L == Loader::vector || L == Loader::unaligned;
        int64_t const first = int64_t(leaf) * kLeaf;
        return {*this, kInPlace ? row + first + threadIdx.x % kLanes * components<E> : row, first};
    }
};

}  // namespace gpureduce::cuda
