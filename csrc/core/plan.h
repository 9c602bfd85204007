// Problem -> Plan: the only place where geometry is decided. A plan may depend on the device and the batch; it never
// changes a bit of the result, because the tree (tree.h) is not in it.
#pragma once

#include <string>

#include "shape.h"

namespace gpureduce {

// What the planner may know of a device, as plain numbers.
struct DeviceTraits {
    int sm_count = 132;
    int shared_bytes = 227 << 10;  // of shared memory that a block can have
};

enum class Path : uint8_t {
    nothing,         // no outputs
    short_row,       // a group of 1 to 32 lanes per row of at most one leaf, several rows in flight
    warp_row,        // a warp per row
    block_row,       // a block per chunk of leaves; the block of the last chunk collects the others
    column,          // threads own columns; the block of the last chunk of a tile collects the others
    narrow_column,   // few columns, read as one run through shared memory
    staged_row,      // rows of at most one leaf at any alignment, read as one run through shared memory
    tiny_row,        // one row of a few leaves of whole packs, by one block
    thread_column,   // columns of few rows, a thread each
    batch_column,    // three columns in one or many batches, a thread a leaf
    thread_row,      // rows of two or three elements without gaps, a thread for as many as are whole packs
    staged_column,   // columns of odd width, read as runs of rows through shared memory
    transposed_row,  // rows that go down the columns of memory, read as tiles through shared memory
};

enum class Loader : uint8_t {
    vector,     // aligned 16-byte loads
    unaligned,  // aligned 16-byte loads around elements that are not, and a shift
    gather,     // element by element through the axes
    nested,     // long rows of two axes: aligned 16-byte loads, the inner runs being whole groups of 16 bytes
    strided,    // long rows of one or two axes: element by element
};

// Whether an operator's kernels include those of a path and loader.
constexpr bool is_built(Coverage coverage, Path path, Loader loader) {
    if (coverage == Coverage::every) return true;
    bool const common = coverage == Coverage::common;
    switch (path) {
        case Path::short_row: return loader == Loader::gather || (common && loader == Loader::vector);  // whole rows
        case Path::warp_row: return common && loader != Loader::unaligned && loader != Loader::nested;
        case Path::block_row:
            return loader == Loader::vector || loader == Loader::gather || (common && loader != Loader::unaligned);
        case Path::column: return true;
        default: return false;
    }
}

struct Plan {
    Path path = Path::nothing;
    Loader loader = Loader::vector;
    int threads = 0;           // per block
    int lanes_per_row = 0;     // short_row, staged_row
    int lane_loads = 0;        // short_row: 16-byte loads of a lane, 1, 2 or 4
    int rows_per_group = 0;    // short_row: rows of a lane group
    int tile_rows = 0;         // staged_row, transposed_row: rows in shared memory, of one block
    int threads_across = 0;    // column, thread_column: threads side by side over columns, the others share the rows
    int vector_columns = 0;    // columns of a load: column, transposed_row, and thread_column, of each of its units
    int tile_batches = 0;      // batch_column: batches of a block, 0 if a batch has several blocks, or rounds of one
    int run_leaves = 0;        // column: consecutive leaves of a thread; staged_column: of a warp
    int counter_levels = 0;    // column, narrow_column, staged_column: of a counter in shared memory
    int tile_leaves = 0;       // narrow_column: leaves in shared memory at once
    int lanes_per_column = 0;  // narrow_column: that fold a column of a tile
    int value_pitch = 0;       // narrow_column: values of leaves from column to column
    int stage_bytes = 0;       // narrow_column: a tile in shared memory; staged_column: a leaf
    int shared_bytes = 0;      // kernels of columns, transposed_row: per block
    int tile_columns = 0;      // transposed_row: columns of a tile
    int tile_starts = 0;       // transposed_row: rows of a tile in which leaves begin that it owns
    int64_t chunk_leaves = 0;  // leaves per block, a power of two
    int64_t chunks = 1;        // blocks per row or column tile
    int64_t grid_x = 0, grid_y = 1;
    int64_t rows_of_launch = 1, leaves_of_launch = 0;  // transposed_row: of each of some launches
    int64_t mailbox_bytes = 0;  // zeroed memory through which blocks join; it is zero again afterwards
};

// Overrides for tests and tuning; 0 leaves a field to the planner. Values must be powers of two.
struct Geometry {
    int path = 0;  // 1 + Path, within the family
    int threads = 0;
    int chunk_leaves = 0;
    int threads_across = 0;
    int rows_per_group = 0;  // staged_row: 32 rows of the tile each, or as many as a warp adds at once
};

inline constexpr int64_t kMaxMailboxBytes = 1 << 20;

// What the kernels are compiled for, and plans must keep to.
inline constexpr int kMaxThreads = 512;  // of a block of a row kernel
inline constexpr int kBlocksPerSm = 2;   // of so many threads, with 64 registers each
// Rows that a group of short_row.cu reads at once, with so many loads a lane and row.
GPUREDUCE_HD constexpr int short_rows_at_once(int loads) { return loads >= kLoads ? 2 : 4; }
inline constexpr int kMaxGroup = 1024;      // leaves that a warp folds
inline constexpr int kRowGroups = 1024;     // leaves that a block folds at once
inline constexpr int kRowLevels = 12;       // of its counter over so many
inline constexpr int kMaxFold = 32768;      // chunks that a block folds
inline constexpr int kStagedThreads = 256;  // of a block of staged_row.cu
inline constexpr int kStagedBlocksPerSm = 6;
inline constexpr int kPart = 64;  // elements that one of its lanes adds, of rows of at most one load a lane
// Lanes that add a longer row, up to a leaf: few, since what they read at once is in few banks of shared memory; up to
// 128 positions each. Small integers, whose order is free, have more lanes.
GPUREDUCE_HD constexpr int staged_lanes(int element_bytes, bool any_order) {
    return any_order && element_bytes <= 2 ? 8 : element_bytes <= 4 ? 2 : 1;
}
// Of shared memory, for a run of so many bytes at any alignment, in whole packs (staging.cuh).
constexpr int64_t staged_bytes(int64_t run_bytes) { return (ceil_div(run_bytes, kVectorBytes) + 1) * kVectorBytes; }
inline constexpr int kThreadRowThreads = 256;
inline constexpr int kTinyLeaves = 32;      // of the one row of tiny_row.cu
inline constexpr int kColumnThreads = 256;  // of a block of column.cu, at most
inline constexpr int kNarrowThreads = 128;  // of a block of narrow_column.cu
inline constexpr int kNarrowBlocksPerSm = 8;
inline constexpr int kNarrowStages = 2;           // tiles of a warp in shared memory
inline constexpr int kNarrowEach = 8;             // leaves that a lane of narrow_column.cu folds
inline constexpr int kStagedColumnThreads = 128;  // of a block of staged_column.cu, at most
inline constexpr int kStagedColumnStages = 2;     // leaves of a warp in shared memory
inline constexpr int kThreadRows = 128;           // of a column of thread_column.cu
inline constexpr int kFewRows = 4;                // all of which are in flight there
inline constexpr int kBatchColumns = 3;           // of batch_column.cu, of whose elements a leaf is whole packs
inline constexpr int kTransposedThreads = 512;    // of a block of transposed_row.cuh, at most
inline constexpr int kTransposedGroup = 1024;     // leaves whose values one block collects
constexpr bool has_batch_columns(int element_bytes, Accumulate accumulate) {
    return element_bytes >= 2 && element_bytes <= 8 && accumulate == Accumulate::native;
}
// Units (16 bytes of columns, or one column) of a thread of thread_column.cu that has so many rows of each in flight.
constexpr int thread_units(int load_bytes, int rows) {
    return (load_bytes >= kVectorBytes ? 1 : 2) * (kColumnLeafRows / rows);
}
// Integers of one or two bytes add to 32 bits, a word of them at a time and in any order. A lane adds at most 256 of them
// before the sum becomes 64 bits, and a short row has at most 2,048, so it fits.
template <class Op>
inline constexpr bool adds_words = Op::additive && Op::order_free && sizeof(typename Op::element) <= 2;
// Columns of a unit of column.cu: what 16 bytes hold, or, as counters of the tree take shared memory, what 32 bytes of
// accumulators do. A warp still reads whole sectors of a row. H200, (8192, 16384) dim 0 bf16, var: 657 us with 8 columns, 90 with 2.
constexpr int unit_columns_of(int element_bytes, int accumulator_bytes) {
    int columns = components_of(element_bytes);
    while (columns > 1 && columns * accumulator_bytes > 32) columns /= 2;
    return columns;
}
template <class Op>
inline constexpr int unit_columns =
    unit_columns_of(int(sizeof(typename Op::element)), adds_words<Op> ? 1 : int(sizeof(typename Op::acc)));
// Leaves that a thread of column.cu has in flight: up to 128 bytes, from loads of `load_bytes` each, and 64 bytes of accumulators.
constexpr int column_leaves_in_flight(int load_bytes, int unit_bytes, bool heavy) {
    int leaves = load_bytes >= 16 ? 1 : load_bytes >= 8 ? 2 : 4;
    while (leaves > 1 && leaves * unit_bytes > 64 && !heavy) leaves /= 2;
    return leaves;
}
// Blocks of column.cu on an SM, by the bytes of a thread's accumulators. Moments have their registers, and so few blocks.
constexpr int column_blocks_per_sm(int unit_bytes, bool heavy) {
    return heavy ? 2 : unit_bytes <= 32 ? 4 : unit_bytes <= 64 ? 3 : 2;
}
template <class Op>
inline constexpr bool is_heavy = Op::pivoted && sizeof(typename Op::acc) > 8;

// Chunks that a thread collects at once: eight letters, or two accumulators.
constexpr int join_chunks(int accumulator_bytes) { return accumulator_bytes <= 4 ? 8 : accumulator_bytes <= 8 ? 4 : 2; }
// Chunks that join in one group, with `columns` columns of a block of `threads` threads.
constexpr int64_t join_group(int64_t threads, int64_t columns, int accumulator_bytes) {
    int64_t const down = threads / next_power_of_two(columns);
    return join_chunks(accumulator_bytes) * (down > 1 ? down : 1);
}

// Mailbox entries for `chunks` chunks that join in groups, and the groups in groups, until one is left.
constexpr int64_t join_entries(int64_t chunks, int64_t group) {
    int64_t entries = 0;
    for (; chunks > 1; chunks = ceil_div(chunks, group)) entries += chunks;
    return entries;
}

// Whether the first `count` axes keep an address aligned that is.
bool strides_fit_vectors(const AxisList& axes, int count, int element_bytes, int vector_bytes = kVectorBytes);

// Whether every 16-byte group of a row is one aligned run of memory.
bool is_grouped(const Problem& problem);

// Whether rows consist of whole aligned 16-byte packs, side by side along one axis.
bool is_whole_row(const Problem& problem, Loader loader);

Plan make_plan(const Problem& problem, const DeviceTraits& device, const Geometry& force = {});

// The plan and the tree as one JSON object.
std::string to_json(const Problem& problem, const Plan& plan);

}  // namespace gpureduce
