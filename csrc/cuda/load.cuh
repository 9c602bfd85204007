// Memory -> registers: one element, or 16 bytes at any alignment. And results past the cache.
#pragma once

#include "../core/tree.h"

namespace gpureduce::cuda {

template <class E>
struct alignas(kVectorBytes) Pack {
    E value[components<E>];
};

template <class E>
__device__ __forceinline__ Pack<E> as_pack(uint4 words) {
    return bit_cast<Pack<E>>(words);
}

// Memory is read-only for the whole kernel, so the non-coherent path is legal. What is read once takes no line of the L1, which has
// more requests on their way then. H200: (8192, 4096) dim 0 fp32 34.8 -> 33.9 us, bf16 20.1 -> 19.6, 4,194,304 fp32 7.0 -> 6.8.
// `address` is 16-byte aligned.
__device__ __forceinline__ uint4 load_vector(const void* address) {
    uint4 v;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(address));
    return v;
}
// The same under a predicate, zeros otherwise. As one instruction, not a branch, so that several can be in flight.
__device__ __forceinline__ uint4 load_vector_if(bool wanted, const void* address) {
    uint4 v{0, 0, 0, 0};
    asm("{ .reg .pred p; setp.ne.s32 p, %5, 0; @p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4]; }"
        : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
        : "l"(address), "r"(int(wanted)));
    return v;
}

// What other lanes, or other blocks of the SM, read too.
__device__ __forceinline__ uint4 load_cached_vector(const void* address) {
    return __ldg(static_cast<const uint4*>(address));
}
__device__ __forceinline__ uint4 load_cached_vector_if(bool wanted, const void* address) {
    uint4 v{0, 0, 0, 0};
    asm("{ .reg .pred p; setp.ne.s32 p, %5, 0; @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4]; }"
        : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
        : "l"(address), "r"(int(wanted)));
    return v;
}

// Results of kernels that have many leave the L2 before what is read, and so in the order in which they came. H200, fp32, 43 launches
// with outputs that are not in it: (4194304, 8) dim 1 38.3 -> 36.1 us, (8388608, 4) 43.8 -> 39.8, (1048576, 32) 35.0 -> 33.8.
struct Stream {
    template <class T>
    __device__ __forceinline__ void operator()(T* to, T value) const {
        if constexpr (sizeof(T) == 16)
            __stcs(reinterpret_cast<uint4*>(to), bit_cast<uint4>(value));
        else if constexpr (sizeof(T) == 8)
            __stcs(reinterpret_cast<unsigned long long*>(to), bit_cast<unsigned long long>(value));
        else if constexpr (sizeof(T) == 4)
            __stcs(reinterpret_cast<unsigned*>(to), bit_cast<unsigned>(value));
        else if constexpr (sizeof(T) == 2)
            __stcs(reinterpret_cast<unsigned short*>(to), bit_cast<unsigned short>(value));
        else
            __stcs(reinterpret_cast<unsigned char*>(to), bit_cast<unsigned char>(value));
    }
};

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

// A struct of 1 to 16 bytes, aligned as it is large.
template <class T>
__device__ __forceinline__ T load_words(const void* address) {
    return load_element(static_cast<const T*>(address));
}
// The same, past the L1 if Once. Columns of less than 4 bytes go through it in any case.
template <class T, bool Once>
__device__ __forceinline__ T load_words(const void* address) {
    if constexpr (Once && sizeof(T) == kVectorBytes) {
        return bit_cast<T>(load_vector(address));
    } else if constexpr (Once && sizeof(T) == 8) {
        unsigned long long v;
        asm("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(v) : "l"(address));
        return bit_cast<T>(v);
    } else if constexpr (Once && sizeof(T) == 4) {
        unsigned v;
        asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(address));
        return bit_cast<T>(v);
    } else {
        return load_words<T>(address);
    }
}

// One element under a predicate, zeros otherwise, as load_vector_if.
template <class E>
__device__ __forceinline__ E load_element_if(bool wanted, const E* address) {
    if constexpr (sizeof(E) == 16) {
        return bit_cast<E>(load_vector_if(wanted, address));
    } else if constexpr (sizeof(E) == 8) {
        unsigned long long v = 0;
        asm("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.nc.u64 %0, [%1]; }"
            : "+l"(v)
            : "l"(address), "r"(int(wanted)));
        return bit_cast<E>(v);
    } else {
        unsigned v = 0;
        if constexpr (sizeof(E) == 4)
            asm("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.nc.u32 %0, [%1]; }"
                : "+r"(v)
                : "l"(address), "r"(int(wanted)));
        else if constexpr (sizeof(E) == 2)
            asm("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.nc.u16 %0, [%1]; }"
                : "+r"(v)
                : "l"(address), "r"(int(wanted)));
        else
            asm("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.nc.u8 %0, [%1]; }"
                : "+r"(v)
                : "l"(address), "r"(int(wanted)));
        using Bits =
            std::conditional_t<sizeof(E) == 4, unsigned, std::conditional_t<sizeof(E) == 2, uint16_t, uint8_t>>;
        return bit_cast<E>(Bits(v));
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

// Ones in the first `count` of 16 bytes; and for each bit, that of `ones` or of `zeros`.
__device__ __forceinline__ uint4 bytes_below(int count) {
    auto const word = [&](int first) {
        int const bytes = count - first;
        return bytes >= 4 ? ~0u : bytes <= 0 ? 0u : (1u << (8 * bytes)) - 1u;
    };
    return {word(0), word(4), word(8), word(12)};
}
__device__ __forceinline__ uint4 select_bits(uint4 mask, uint4 ones, uint4 zeros) {
    return {(ones.x & mask.x) | (zeros.x & ~mask.x), (ones.y & mask.y) | (zeros.y & ~mask.y),
            (ones.z & mask.z) | (zeros.z & ~mask.z), (ones.w & mask.w) | (zeros.w & ~mask.w)};
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
    __device__ Raw fetch() const { return {load_cached_vector(base), load_cached_vector(base + kVectorBytes)}; }
    __device__ Raw fetch_if(bool wanted) const {
        return {load_cached_vector_if(wanted, base), load_cached_vector_if(wanted, base + kVectorBytes)};
    }
    template <class E>
    __device__ Pack<E> pack(Raw raw) const {
        return as_pack<E>(shifted<E>(raw.low, raw.high, shift));
    }
};

}  // namespace gpureduce::cuda
