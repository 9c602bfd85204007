// Geometry of the column family: who owns which columns, and in which pieces their rows go.
#include "planners.h"

namespace gpureduce {
namespace {

constexpr int64_t kPieceBytes = 256;           // of a row that a block of column.cu reads at once
constexpr int64_t kManyUnits = 4096;           // columns that give every SM several blocks
constexpr int kCounterLevels = 5;              // of a thread's counter in shared memory
constexpr int64_t kMaxFreeRun = 1024;          // leaves that narrow integers add as int
constexpr int64_t kNarrowBytes = 128;          // of a row of narrow_column
constexpr int64_t kNarrowRows = 1024;          // narrow_column pays from here on
constexpr int64_t kNarrowTileBytes = 3 << 10;  // of a warp
constexpr int64_t kNarrowWaves = 8;            // of blocks: small chunks follow each other closely

// Whether a thread can read `columns` columns at once.
bool columns_fit_vectors(const Problem& p, int element_bytes, int columns) {
    int const bytes = columns * element_bytes;
    return p.kept.last().stride == 1 && p.kept.last().size % columns == 0 && p.misalignment % bytes == 0 &&
           p.kept.count <= kFastAxes && (p.reduced.count == 1 || (p.reduced.count == 2 && p.n < kNarrowIndex)) &&
           strides_fit_vectors(p.kept, p.kept.count - 1, element_bytes, bytes) &&
           strides_fit_vectors(p.reduced, p.reduced.count, element_bytes, bytes);
}

// Columns that a thread can walk on its own.
bool is_walk(const Problem& p) {
    return p.n <= kThreadRows && p.reduced.count == 1 && p.kept.count <= kFastAxes && p.outputs < kNarrowIndex;
}

// Threads of thread_column on an SM from which on it beats sharing rows among threads. H200, fp32, us by threads and by column.cu:
// (16, 32768) 2.87, 3.06; (32, 65536) 4.78, 4.73; (32, 131072) 6.12, 6.61; (64, 131072) 10.23, 10.51; (128, 131072) 18.58, 18.32;
// (128, 262144) 31.95, 33.44; single columns: (25, 30001) 4.13, 4.86; (64, 100001) 9.29, 9.48; (128, 100001) 16.87, 16.76;
// (128, 300001) 39.98, 42.18; 16 columns of a byte: (16, 16777216) 207, 173.
int64_t least_threads(int64_t n, bool vector, int element_bytes) {
    if (n <= kColumnLeafRows) return 0;
    if (vector && element_bytes == 1) return int64_t(1) << 32;
    if (n <= 16) return 60;
    if (vector) return n <= 64 ? 240 : 480;
    return n <= 32 ? 100 : n <= 64 ? 370 : 1000;
}

// False where a column has several leaves and too few threads would walk them one by one: those of column.cu share them.
bool plan_thread_column(Plan& plan, const Problem& p, const DeviceTraits& device, const Geometry& force) {
    int const element_bytes = dtype_info(p.in).bytes;
    bool const vector = columns_fit_vectors(p, element_bytes, components_of(element_bytes)),
               forced = force.path == 1 + int(Path::thread_column);
    plan.path = Path::thread_column;
    plan.loader = vector ? Loader::vector : Loader::gather;
    plan.vector_columns = vector ? components_of(element_bytes) : 1;
    int const rows = p.n <= kFewRows ? kFewRows : kColumnLeafRows;
    int64_t const each = thread_units(plan.vector_columns * element_bytes, rows) * plan.vector_columns;
    int64_t const threads = ceil_div(p.outputs, each);
    if (threads < device.sm_count * least_threads(p.n, vector, element_bytes) && !forced) return false;
    // Blocks so small that every SM gets one, and that 16-bit columns, of which few fit an SM, end one by one: H200, (16384, 2, 4096)
    // dim 1 bf16 96.8 us with 64 threads, 101.0 with 256.
    int64_t const share = next_power_of_two(ceil_div(threads, device.sm_count));
    int64_t const most = vector && element_bytes == 2 ? 64 : kColumnThreads;
    plan.threads = int(std::clamp<int64_t>(pick(force.threads, std::min(share, most)), kWarp, kColumnThreads));
    plan.threads_across = plan.threads;
    plan.grid_x = ceil_div(threads, plan.threads);
    return true;
}

struct ColumnTask {
    int64_t leaves, units;
    int columns;     // of a thread
    int unit_bytes;  // of its accumulators
    int load_bytes;  // of its loads
    int together;    // leaves in flight
    bool order_free;
};

// Of a row, at once: as much as memory likes, but few accumulators, or joins take long, and few of the rows' odd ends.
// H200: (1024, 65536) fp32 63.4 us with 512 bytes, 63.9 with 256; (65536, 1024) fp32 64.1 with 256, 65.4 with 128;
// (1048576, 128) bf16 67.9 with 128, 68.2 with 256; (100003, 257) fp32 31.0 with 128, 31.7 with 256.
int64_t piece_bytes(const ColumnTask& task) {
    if (task.columns > 1 && task.load_bytes < kVectorBytes) return kWarp * task.load_bytes;
    if (task.load_bytes < kVectorBytes) return (task.units < kManyUnits ? kPieceBytes / 2 : 2 * kPieceBytes);
    if (task.units >= kManyUnits) return 2 * kPieceBytes;  // no joins
    return task.unit_bytes > task.load_bytes ? kPieceBytes / 2 : kPieceBytes;
}

// Threads side by side over units, and the others down over leaves.
void set_column_block(Plan& plan, const ColumnTask& task, int64_t most_threads, const Geometry& force) {
    int64_t const groups = next_power_of_two(ceil_div(task.leaves, task.together));
    int64_t const threads = std::min<int64_t>(pick(force.threads, kColumnThreads), most_threads);
    int64_t const piece = std::max(piece_bytes(task) / task.load_bytes, threads / groups);
    int64_t const across = pick(force.threads_across, std::min(piece, next_power_of_two(task.units)));
    plan.threads_across = int(std::min(across, threads));
    plan.threads = int(std::max<int64_t>(kWarp, plan.threads_across * std::min(threads / plan.threads_across, groups)));
}

// Whether half as many blocks are enough, of which fewer join: where each thread has little to read for what it adds (single
// columns, and narrow types), and where loads are narrow or the order is free, if there is one `for_all` SMs. H200, (8192, 8192)
// dim 0 fp32, argmax 63.0 us instead of 65.0; (8192, 16384) dim 0 bf16, count_nonzero 63.7 instead of 65.1. Not where much is done
// with an element: of bf16, argmax 82 instead of 71; pivoted operators.
bool takes_half(const ColumnTask& task, Accumulator acc, bool for_all, bool long_chunks) {
    if (acc.pivoted) return false;
    if (task.columns == 1) return true;
    bool const whole = task.load_bytes == kVectorBytes;
    if (whole && !task.order_free) return task.unit_bytes > task.load_bytes && long_chunks;
    bool const cheap = task.load_bytes >= 4 * task.columns || (task.order_free && acc.bytes <= 8);
    return cheap && for_all;
}

// Equal chunks, so that all blocks are resident at once: bandwidth is there with half of them, and a second wave of a few
// blocks would take as long as the first.
void set_column_chunks(Plan& plan, const ColumnTask& task, const DeviceTraits& device, Accumulator acc,
                       const Geometry& force) {
    int64_t const entry_bytes = plan.vector_columns * acc.mailbox_bytes();
    int64_t const tiles = ceil_div(task.units, plan.threads_across), down = plan.threads / plan.threads_across;
    int64_t const columns = plan.threads_across * plan.vector_columns;
    int64_t const group = join_group(plan.threads, columns, acc.bytes);
    int64_t const resident =
        int64_t(device.sm_count) * column_blocks_per_sm(task.unit_bytes, acc.heavy) * kColumnThreads / plan.threads;
    int64_t const wanted = std::max<int64_t>(1, resident / tiles);
    int64_t share = next_power_of_two(ceil_div(task.leaves, wanted));
    bool const for_all = tiles * ceil_div(task.leaves, 2 * share) >= device.sm_count;
    if (takes_half(task, acc, for_all, share >= 4 * down)) share *= 2;
    int64_t const chunks = ceil_div(task.leaves, share);
    bool const one_level_less = chunks > group && chunks <= 2 * group;  // again, half as many are enough
    plan.chunk_leaves = pick(force.chunk_leaves, one_level_less ? 2 * share : share);
    plan.chunk_leaves = std::max<int64_t>(down * task.together, plan.chunk_leaves);
    for (;; plan.chunk_leaves *= 2) {
        plan.chunks = std::max<int64_t>(1, ceil_div(task.leaves, plan.chunk_leaves));
        plan.mailbox_bytes = join_entries(plan.chunks, group) * task.units * entry_bytes;
        if (plan.chunks == 1 || (plan.chunks <= kMaxGridY && plan.mailbox_bytes <= kMaxMailboxBytes)) break;
    }
    plan.grid_x = tiles;
    plan.grid_y = plan.chunks;
}

// How long the runs of leaves are, so that the counters over them and over rounds fit shared memory. False if none do.
bool set_column_runs(Plan& plan, const ColumnTask& task) {
    int64_t const each = plan.chunk_leaves / (plan.threads / plan.threads_across);
    int64_t run = std::min(each, task.order_free ? kMaxFreeRun : int64_t(task.together) << (kCounterLevels - 1));
    for (; run >= task.together; run /= 2) {
        int const round_levels = run < each ? ceil_log2(each / run) + 1 : 0;
        plan.run_leaves = int(run);
        plan.counter_levels = task.order_free ? 1 : ceil_log2(run / task.together) + 1;
        plan.shared_bytes = (plan.threads * plan.counter_levels + plan.threads_across * round_levels) * task.unit_bytes;
        int const joining = (plan.threads_across + ceil_div(plan.threads, plan.vector_columns)) * task.unit_bytes;
        if (plan.chunks > 1) plan.shared_bytes = std::max(plan.shared_bytes, joining);
        if (plan.shared_bytes <= kSharedBytes) return true;
    }
    return false;
}

void plan_wide_column(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc,
                      const Geometry& force) {
    int const element_bytes = dtype_info(p.in).bytes;
    bool const vector = columns_fit_vectors(p, element_bytes, acc.unit_columns) &&
                        (acc.coverage != Coverage::basic || p.reduced.count == 1);
    plan.path = Path::column;
    plan.loader = vector ? Loader::vector : Loader::gather;
    plan.vector_columns = vector ? acc.unit_columns : 1;
    int64_t const columns = p.kept.last().size;
    ColumnTask task{};
    task.leaves = leaves_of(Family::column, element_bytes, p.n);
    task.units = columns / plan.vector_columns * (p.outputs / columns);
    task.columns = plan.vector_columns;
    task.unit_bytes = plan.vector_columns * acc.bytes;
    task.load_bytes = plan.vector_columns * element_bytes;
    task.together = column_leaves_in_flight(task.load_bytes, task.unit_bytes, acc.heavy);
    task.order_free = acc.order_free;
    for (int64_t most_threads = kColumnThreads;; most_threads /= 2) {
        set_column_block(plan, task, most_threads, force);
        set_column_chunks(plan, task, device, acc, force);
        if (set_column_runs(plan, task)) return;
    }
}

// Rows of few bytes, one after the other: memory between them, if any, is little.
bool is_narrow(const Problem& p, int element_bytes) {
    if (columns_fit_vectors(p, element_bytes, components_of(element_bytes))) return false;
    if (p.kept.count != 1 || p.kept.last().stride != 1 || p.reduced.count != 1) return false;
    int64_t const columns = p.kept.last().size, pitch = p.reduced.last().stride;
    return pitch >= columns && pitch <= 2 * columns && pitch * element_bytes <= kNarrowBytes && p.n >= kNarrowRows;
}

// A tile of so many leaves, and lanes that fold a column of it.
void set_narrow_tile(Plan& plan, int64_t tile_leaves, int64_t columns, int64_t leaf_bytes) {
    int64_t const alone = std::max<int64_t>(1, kWarp / next_power_of_two(columns));  // lanes that a column can have
    plan.tile_leaves = int(std::clamp<int64_t>(tile_leaves, 1, kNarrowEach * alone));
    plan.lanes_per_column = int(std::min<int64_t>(alone, plan.tile_leaves));
    plan.value_pitch = int(alone * (ceil_div(plan.tile_leaves, alone) | 1));  // lanes meet in few banks
    plan.stage_bytes = int(ceil_div(plan.tile_leaves * leaf_bytes, kVectorBytes) + 1) * kVectorBytes;
}

void set_narrow_chunks(Plan& plan, int64_t leaves, int64_t columns, Accumulator acc, const DeviceTraits& device,
                       const Geometry& force) {
    int64_t const wanted = int64_t(device.sm_count) * kNarrowBlocksPerSm * kNarrowWaves;
    int64_t const least = kNarrowThreads / kWarp * plan.tile_leaves;
    plan.chunk_leaves = std::max(least, pick(force.chunk_leaves, next_power_of_two(ceil_div(leaves, wanted))));
    for (;; plan.chunk_leaves *= 2) {
        plan.chunks = ceil_div(leaves, plan.chunk_leaves);
        plan.mailbox_bytes =
            join_entries(plan.chunks, join_group(kNarrowThreads, columns, acc.bytes)) * columns * acc.mailbox_bytes();
        if (plan.mailbox_bytes <= kMaxMailboxBytes) break;
    }
    plan.counter_levels = acc.order_free ? 1 : ceil_log2(plan.chunk_leaves / least) + 1;
    plan.grid_x = plan.chunks;
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
    int64_t tile_leaves = pick(force.rows_per_group, previous_power_of_two(kNarrowTileBytes / leaf_bytes));
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

}  // namespace

void plan_column(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc, const Geometry& force) {
    bool const every = acc.coverage == Coverage::every, wide = force.path == 1 + int(Path::column) || !every;
    if (!wide && is_walk(p) && plan_thread_column(plan, p, device, force)) return;
    bool const narrow = !wide && is_narrow(p, dtype_info(p.in).bytes);
    if (narrow && plan_narrow_column(plan = Plan{}, p, device, acc, force)) return;
    plan_wide_column(plan = Plan{}, p, device, acc, force);
}

}  // namespace gpureduce
