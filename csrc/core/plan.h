// Problem -> Plan: the only place where geometry is decided. A plan may depend on the device and the batch; it never
// changes a bit of the result, because the tree (tree.h) is not in it.
#pragma once

#include <string>

#include "shape.h"

namespace gpureduce {

// What the planner may know of a device, as plain numbers.
struct DeviceTraits {
    int sm_count = 132;
    int max_threads_per_sm = 2048;
};

enum class Path : uint8_t {
    nothing,        // no outputs
    short_row,      // a group of 1 to 32 lanes per row, several rows in flight
    warp_row,       // a warp per row of at most 32 leaves
    block_row,      // a block per chunk of leaves; the last block of a row folds its chunks
    column,         // threads own columns; the block of the last chunk of a tile collects the others
    narrow_column,  // few columns, read as one run through shared memory
};

enum class Loader : uint8_t {
    vector,     // aligned 16-byte loads
    unaligned,  // 16 bytes from two aligned loads and a shift
    gather,     // element by element through the axes
};

struct Plan {
    Path path = Path::nothing;
    Loader loader = Loader::vector;
    int threads = 0;           // per block
    int lanes_per_row = 0;     // short_row
    int rows_per_group = 0;    // short_row: rows in flight per lane group
    int threads_across = 0;    // column: threads side by side over columns, the others share the rows
    int vector_columns = 0;    // column: columns per thread
    int tile_leaves = 0;       // narrow_column: leaves in shared memory at once
    int64_t chunk_leaves = 0;  // leaves per block, a power of two
    int64_t chunks = 1;        // blocks per row or column tile
    int64_t grid_x = 0, grid_y = 1;
    int64_t mailbox_bytes = 0;  // zeroed memory through which blocks join; it is zero again afterwards
};

// Overrides for tests and tuning; 0 leaves a field to the planner. Values must be powers of two.
struct Geometry {
    int path = 0;  // 1 + Path, within the family
    int threads = 0;
    int chunk_leaves = 0;
    int threads_across = 0;
    int rows_per_group = 0;
};

inline constexpr int64_t kMaxMailboxBytes = 1 << 20;

Plan make_plan(const Problem& problem, const DeviceTraits& device, const Geometry& force = {});

// The plan and the tree as one JSON object.
std::string to_json(const Problem& problem, const Plan& plan);

}  // namespace gpureduce
