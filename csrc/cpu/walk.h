// Memory for partial results, walks over axes, and how work is cut for threads.
#pragma once

inline constexpr int64_t kParallelBytes = 128 * 1024;  // less work than this is done by the calling thread

template <class T>
struct Buffer {  // not std::vector, whose code another instruction set's copy could replace at link time
    T* data;
    explicit Buffer(int64_t count)
        : data(count ? static_cast<T*>(std::aligned_alloc(64, (size_t(count) * sizeof(T) + 63) / 64 * 64)) : nullptr) {
        if (count && data == nullptr) throw std::bad_alloc();
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(data); }
    T& operator[](int64_t i) { return data[i]; }
};

// Walks the offsets of consecutive indices of an axis list, last axis fastest.
struct Odometer {
    const AxisList* axes;
    int64_t offset = 0;
    int64_t position[kMaxDims];

    Odometer(const AxisList& list, int64_t index) : axes(&list) {
        for (int d = list.count - 1; d >= 0; --d) {
            int64_t const outer = index == 0 ? 0 : index / list.axis[d].size;  // an axis may be empty
            position[d] = index - outer * list.axis[d].size;
            offset += position[d] * list.axis[d].stride;
            index = outer;
        }
    }
    // How many steps along the last axis remain before an outer axis moves.
    int64_t run() const { return axes->count == 0 ? 1 : axes->last().size - position[axes->count - 1]; }
    void advance(int64_t steps) {  // at most run()
        int d = axes->count - 1;
        if (d < 0) return;
        position[d] += steps;
        offset += steps * axes->axis[d].stride;
        while (d > 0 && position[d] == axes->axis[d].size) {
            offset += axes->axis[d - 1].stride - position[d] * axes->axis[d].stride;
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

// Behind the last element that the problem reads.
template <class E>
const E* end_of(const Problem& p, const E* in) {
    int64_t last = 0;
    for (const AxisList* list : {&p.kept, &p.reduced})
        for (int d = 0; d < list->count; ++d) last += (list->axis[d].size - 1) * list->axis[d].stride;
    return in + last + 1;
}

// Units (rows, strips of columns) cut into chunks of a power of two of leaves, each of which is a node of the tree: as
// few as keep all threads busy.
struct Cut {
    int64_t units, leaves;  // leaves of each unit
    int64_t chunk, chunks;  // leaves of a chunk, chunks of a unit

    Cut(int64_t units, int64_t leaves, int64_t bytes, int threads) : units(units), leaves(leaves), chunk(leaves) {
        constexpr int kTasks = 4;  // per thread
        if (threads > 1 && bytes >= kParallelBytes && units < kTasks * threads)
            chunk = next_power_of_two(ceil_div(leaves, ceil_div(kTasks * threads, units)));
        chunks = chunk > 0 ? ceil_div(leaves, chunk) : 1;
    }
    int64_t first(int64_t c) const { return c * chunk; }
    int64_t last(int64_t c) const { return (c + 1) * chunk < leaves ? (c + 1) * chunk : leaves; }
};
