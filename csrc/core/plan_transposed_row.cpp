// Geometry of transposed_row.cuh: tiles of memory whose columns are runs of a row.
#include "planners.h"

namespace gpureduce {
namespace {

constexpr int64_t kLeastRows = 32;         // so that what a lane reads at once is in two columns at most
constexpr int64_t kLeastLeaves = 16;       // of a row
constexpr int64_t kTileBytes = 112 << 10;  // of which two fit an SM of 227 KB
constexpr int64_t kMostGroups = 4096;      // of leaves of a row
constexpr int kMostAcross = 2048;          // bytes of a row of a tile

// Elements that are 4 bytes, or one.
constexpr int least_cell(int element_bytes) { return element_bytes < 4 ? 4 / element_bytes : 1; }

// Whether the rows of memory are aligned groups of `bytes` bytes.
bool consists_of_cells(const Problem& p, int bytes) {
    int const element_bytes = dtype_info(p.in).bytes;
    AxisList around = p.reduced;
    Axis const columns = around.axis[around.count - 2], rows = around.last();
    around.axis[around.count - 2] = rows;
    --around.count;
    return p.misalignment % bytes == 0 && columns.size * element_bytes % bytes == 0 &&
           strides_fit_vectors(p.kept, p.kept.count, element_bytes, bytes) &&
           strides_fit_vectors(around, around.count, element_bytes, bytes);
}

struct TransposedTask {
    int element_bytes;
    int64_t rows, columns, leaf;
    // Of a tile of so many columns, with room for a leaf behind it.
    int64_t rows_that_fit(int64_t width, int64_t bytes) const {
        return (bytes - leaf * element_bytes) / (width * element_bytes);
    }
};

// Whether it pays. H200: (512, 512) transposed fp32 4.0 us, by block_row.cu 4.8; (1200, 1200) 7.9 and 10.3, (1000, 1000) 7.3 and 6.8;
// bf16, (1500, 1500) 10.1 and 13.1, (1000, 1000) 8.0 and 5.7; fp64, (1500, 1500) 13.2 and 18.4, (1000, 1000) 9.0 and 8.7.
bool has_many_leaves(const Problem& p, int element_bytes) {
    int64_t const leaf = row_leaf_elements(element_bytes), rows = p.reduced.last().size;
    int64_t const many = rows % leaf == 0 ? 512 : element_bytes <= 4 ? 2048 : 512 * element_bytes;
    return p.n >= kLeastLeaves * leaf && p.n * p.outputs >= many * leaf;
}

}  // namespace

// Rows whose last axis goes down the columns that the axis before it lies along, in memory of whole cells.
bool is_transposed_row(const Problem& p, int element_bytes, Accumulator acc) {
    if (!acc.has_transposed_rows || p.reduced.count < 2 || p.reduced.count > kFastAxes || p.kept.count > kFastAxes)
        return false;
    Axis const columns = p.reduced.axis[p.reduced.count - 2], rows = p.reduced.last();
    if (columns.stride != 1 || rows.stride * element_bytes < kSectorBytes || rows.size < kLeastRows) return false;
    if (p.n == 0 || columns.size >= kNarrowIndex || rows.size >= kNarrowIndex) return false;
    return p.n / (rows.size * columns.size) <= kMaxGridY &&
           consists_of_cells(p, least_cell(element_bytes) * element_bytes);
}

// Tiles of whole columns, if these are short; of leaves side by side, if columns consist of them; else of as many rows as fit, with
// those below in which the last leaves end. Two fit an SM of 227 KB. Narrow ones, for more blocks, down to 64 bytes a row, of
// 16 bits 32. H200, (4096, 4096) transposed fp32 of 128 bytes 22.5 us, of 64 28; (64, 512, 28, 28) channels_last
// fp16 33.8, 41; (1500, 1500) fp32 of 64 bytes 9.9, of 32 11.1. False if it does not pay or the mailbox has no room for the leaves.
bool plan_transposed_row(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc,
                         const Geometry& force) {
    int const element_bytes = dtype_info(p.in).bytes;
    if (force.path == 0 && !has_many_leaves(p, element_bytes)) return false;
    TransposedTask const task{element_bytes, p.reduced.last().size, p.reduced.axis[p.reduced.count - 2].size,
                              row_leaf_elements(element_bytes)};
    int64_t const outers = p.n / (task.rows * task.columns), pack = components_of(element_bytes);
    int64_t const all = std::max(pack, next_power_of_two(task.columns));
    int64_t const least = std::min(2 * pack, all), narrow = std::min<int64_t>({16, 64 / element_bytes, all});
    int64_t const folding = kWarp * acc.bytes;  // beside the tile
    int64_t const most_bytes = std::min<int64_t>(kTileBytes, device.shared_bytes - folding);
    auto const fits = [&](int64_t width, int64_t rows) { return task.rows_that_fit(width, most_bytes) >= rows; };
    bool const side_by_side = task.rows % task.leaf == 0, whole = !side_by_side && fits(least, task.rows);
    int64_t const needed = whole ? task.rows : task.leaf;
    int64_t width = whole || side_by_side ? least : std::min(2 * least, all);
    if (whole || side_by_side)
        while (2 * width * element_bytes <= kMostAcross && fits(2 * width, needed)) width *= 2;
    auto const strips = [&] { return ceil_div(task.columns, width); };
    int64_t const tiles_down = side_by_side ? task.rows / task.leaf : 1;
    while (width > narrow && outers * strips() * tiles_down * p.outputs < device.sm_count) width /= 2;
    width = std::max(pack, std::min(pick(force.threads_across, width), all));
    while (width > pack && !fits(width, needed)) width /= 2;

    int64_t starts = needed, depth = needed;
    if (!whole && !side_by_side) {
        int64_t const most = task.rows_that_fit(width, most_bytes) - (task.leaf - 1);
        if (most < 1) return false;
        starts = ceil_div(task.rows, ceil_div(task.rows, most));
        depth = starts + task.leaf - 1;
    }
    // Letters of leaves, some groups of them at a time, and of all groups.
    int64_t const leaves = leaves_of(Family::row, element_bytes, p.n), groups = ceil_div(leaves, kTransposedGroup);
    int64_t const room = kMaxMailboxBytes / acc.mailbox_bytes() - groups;
    int64_t const at_once = std::min(groups, std::min(room, pick(force.chunk_leaves, room)) / kTransposedGroup);
    int64_t const row_letters = std::min(leaves, at_once * kTransposedGroup) + groups;
    plan.vector_columns = int(consists_of_cells(p, kVectorBytes) ? pack : least_cell(element_bytes));
    plan.tile_columns = int(width);
    plan.tile_rows = int(depth);
    plan.tile_starts = int(starts);
    plan.shared_bytes = int((depth * width + task.leaf) * element_bytes);
    plan.grid_x = strips() * ceil_div(task.rows, starts);
    if (groups > kMostGroups || at_once < 1 || plan.grid_x >= kNarrowIndex || plan.shared_bytes > most_bytes)
        return false;
    plan.path = Path::transposed_row;
    plan.loader = Loader::strided;
    plan.threads = int(std::min<int64_t>(pick(force.threads, kTransposedThreads), kTransposedThreads));
    plan.grid_y = outers;
    plan.leaves_of_launch = at_once * kTransposedGroup;
    if (at_once == groups) plan.rows_of_launch = std::min({p.outputs, kMaxGridY, (room + groups) / row_letters});
    plan.mailbox_bytes = plan.rows_of_launch * row_letters * acc.mailbox_bytes();
    return true;
}

}  // namespace gpureduce
