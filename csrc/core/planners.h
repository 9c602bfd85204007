// The planners of the two families, and what they share. Included by plan*.cpp only.
#pragma once

#include <algorithm>

#include "plan.h"

namespace gpureduce {

inline constexpr int kWarp = 32;
inline constexpr int kFastAxes = 4;  // axes that the kernels with vector loads take
inline constexpr int64_t kMaxGridY = 65535;
inline constexpr int64_t kSectorBytes = 32;                // of a line of the cache, the least that memory gives
inline constexpr int64_t kNarrowIndex = int64_t(1) << 31;  // indices below it fit a Divisor
inline constexpr int64_t kNarrowBytes = 128;               // of a row of narrow_column.cu, at most
inline constexpr int64_t kSharedBytes = 48 << 10;          // of a block, without asking for more; whole words

// The accumulator of a problem's operator.
struct Accumulator {
    int bytes;
    int unit_columns;  // of column.cu
    bool order_free, pivoted, heavy;
    Coverage coverage;
    bool has_transposed_rows;
    int mailbox_bytes() const { return 2 * bytes; }  // every 4 bytes travel with a mark
};

inline int64_t pick(int forced, int64_t chosen) { return forced > 0 ? forced : chosen; }
inline int64_t previous_power_of_two(int64_t n) { return next_power_of_two(n + 1) / 2; }

// Doubles the chunk until the chunks of one row fit the mailbox and one block can fold them.
template <class AnyPlan>
void set_chunks(AnyPlan& plan, int64_t leaves, int64_t bytes_per_chunk) {
    for (;; plan.chunk_leaves *= 2) {
        plan.chunks = std::max<int64_t>(1, ceil_div(leaves, plan.chunk_leaves));
        bool const fits = plan.chunks <= kMaxFold && plan.chunks * bytes_per_chunk <= kMaxMailboxBytes;
        if (plan.chunks == 1 || fits) return;
    }
}

void plan_row(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc, const Geometry& force);
void plan_column(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc, const Geometry& force);
bool columns_fit_vectors(const Problem& p, int element_bytes, int columns);
bool is_staged_column(const Problem& p, int element_bytes);
bool plan_staged_column(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc,
                        const Geometry& force);
bool is_transposed_row(const Problem& p, int element_bytes, Accumulator acc);
bool plan_transposed_row(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc,
                         const Geometry& force);
bool is_narrow(const Problem& p, int element_bytes);
bool plan_narrow_column(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc,
                        const Geometry& force);

}  // namespace gpureduce
