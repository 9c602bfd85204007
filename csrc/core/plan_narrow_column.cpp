// Geometry of narrow_column.cu: rows of few bytes, one after the other.
#include "planners.h"

namespace gpureduce {
namespace {

constexpr int64_t kNarrowRows = 1024;          // narrow_column pays from here on
constexpr int64_t kNarrowTileBytes = 3 << 10;  // of a warp
constexpr int64_t kNarrowLeastBlocks = 64;
constexpr int64_t kNarrowWaves = 8;  // of blocks: small chunks follow each other closely

// A tile of so many leaves, and lanes that fold a column of it.
void set_narrow_tile(Plan& plan, int64_t tile_leaves, int64_t columns, int64_t leaf_bytes) {
    int64_t const alone = std::max<int64_t>(1, kWarp / next_power_of_two(columns));  // lanes that a column can have
    plan.tile_leaves = int(std::clamp<int64_t>(tile_leaves, 1, kNarrowEach * alone));
    plan.lanes_per_column = int(std::min<int64_t>(alone, plan.tile_leaves));
    plan.value_pitch = int(alone * (ceil_div(plan.tile_leaves, alone) | 1));  // lanes meet in few banks
    plan.stage_bytes = int(staged_bytes(plan.tile_leaves * leaf_bytes));
}

void set_narrow_chunks(Plan& plan, int64_t leaves, int64_t columns, Accumulator acc, const DeviceTraits& device,
                       const Geometry& force) {
    int64_t const wanted = int64_t(device.sm_count) * kNarrowBlocksPerSm * kNarrowWaves;
    int64_t const least = kNarrowThreads / kWarp * plan.tile_leaves;
    int64_t const group = join_group(kNarrowThreads, columns, acc.bytes);
    plan.chunk_leaves = std::max(least, pick(force.chunk_leaves, next_power_of_two(ceil_div(leaves, wanted))));
    for (;; plan.chunk_leaves *= 2) {
        plan.chunks = ceil_div(leaves, plan.chunk_leaves);
        plan.mailbox_bytes = join_entries(plan.chunks, group) * columns * acc.mailbox_bytes();
        bool const level_less = force.chunk_leaves == 0 && plan.chunks > group && plan.chunks <= 2 * group;
        if (plan.mailbox_bytes <= kMaxMailboxBytes && !level_less) break;
    }
    plan.counter_levels = acc.order_free ? 1 : ceil_log2(plan.chunk_leaves / least) + 1;
    plan.grid_x = plan.chunks;
}

}  // namespace

// Rows of few bytes, one after the other: memory between them, if any, is little.
bool is_narrow(const Problem& p, int element_bytes) {
    if (columns_fit_vectors(p, element_bytes, components_of(element_bytes))) return false;
    if (p.kept.count != 1 || p.kept.last().stride != 1 || p.reduced.count != 1) return false;
    int64_t const columns = p.kept.last().size, pitch = p.reduced.last().stride;
    return pitch >= columns && pitch <= 2 * columns && pitch * element_bytes <= kNarrowBytes && p.n >= kNarrowRows;
}

// Tiles of up to 3 KB, so that a lane has few leaves of each column to fold. False if not even one leaf fits.
bool plan_narrow_column(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc,
                        const Geometry& force) {
    int const element_bytes = dtype_info(p.in).bytes;
    int64_t const leaves = leaves_of(Family::column, element_bytes, p.n);
    int64_t const columns = p.kept.last().size;
    int64_t const leaf_bytes = p.reduced.last().stride * element_bytes * kColumnLeafRows;
    plan.path = Path::narrow_column;
    plan.threads = kNarrowThreads;
    // Smaller ones where few blocks would come of it. H200, (16384, 8) bool in 16 blocks 5.2 us, in 64 4.4.
    int64_t const few = next_power_of_two(leaves) / (kNarrowThreads / kWarp * kNarrowLeastBlocks);
    int64_t const most = std::max<int64_t>(1, std::min(previous_power_of_two(kNarrowTileBytes / leaf_bytes), few));
    int64_t tile_leaves = pick(force.rows_per_group, most);
    for (;; tile_leaves = plan.tile_leaves / 2) {
        set_narrow_tile(plan, tile_leaves, columns, leaf_bytes);
        set_narrow_chunks(plan, leaves, columns, acc, device, force);
        int64_t const values = columns * (plan.value_pitch + plan.counter_levels);
        plan.shared_bytes = int(kNarrowThreads / kWarp * (kNarrowStages * plan.stage_bytes + values * acc.bytes));
        plan.shared_bytes += 2 * kNarrowThreads * acc.bytes;
        if (plan.shared_bytes <= kSharedBytes) return true;
        if (plan.tile_leaves == 1) return false;
    }
}

}  // namespace gpureduce
