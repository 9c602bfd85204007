// Memory for partial results, and walks over axes.
#pragma once

inline constexpr int64_t kParallelBytes = 128 * 1024;  // less work than this is done by the calling thread
inline constexpr int kLevels = 48;                     // of a binary counter: 2^48 leaves

template <class T>
struct Buffer {  // not std::vector, whose code another instruction set's copy could replace at link time
    T* data;
    explicit Buffer(int64_t count)
        : data(static_cast<T*>(std::aligned_alloc(64, (size_t(count) * sizeof(T) + 63) / 64 * 64))) {
        if (data == nullptr) throw std::bad_alloc();
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(data); }
    T& operator[](int64_t i) { return data[i]; }
};

// Walks the offsets of consecutive indices of an axis list, last axis fastest.
struct Odometer {
    const AxisList& axes;
    int64_t offset = 0;
    int64_t position[kMaxDims];

    Odometer(const AxisList& list, int64_t index) : axes(list) {
        for (int d = axes.count - 1; d >= 0; --d) {
            int64_t const outer = index == 0 ? 0 : index / axes.axis[d].size;  // an axis may be empty
            position[d] = index - outer * axes.axis[d].size;
            offset += position[d] * axes.axis[d].stride;
            index = outer;
        }
    }
    // How many steps along the last axis remain before an outer axis moves.
    int64_t run() const { return axes.count == 0 ? 1 : axes.last().size - position[axes.count - 1]; }
    void advance(int64_t steps) {  // at most run()
        int d = axes.count - 1;
        if (d < 0) return;
        position[d] += steps;
        offset += steps * axes.axis[d].stride;
        while (d > 0 && position[d] == axes.axis[d].size) {
            offset += axes.axis[d - 1].stride - position[d] * axes.axis[d].stride;
            position[d--] = 0;
            ++position[d];
        }
    }
};

template <class E>
E load_element(const E* address) {  // the address may be misaligned
    E value;
    memcpy(&value, address, sizeof(E));
    return value;
}
