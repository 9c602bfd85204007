#include "plan.h"

#include <algorithm>

namespace gpureduce {
namespace {

constexpr int kWarp = 32;
constexpr int kFastAxes = 4;  // axes that the kernels with vector loads take
constexpr int64_t kMaxGridY = 65535;
constexpr int64_t kNarrowLimit = int64_t(1) << 31;
constexpr int64_t kSharedBytes = 48 << 10;          // of a block, without asking for more
constexpr int64_t kSectorBytes = 32;                // of a line of the cache, the least that memory gives
constexpr int64_t kStagedTileBytes = 17 << 10;      // four times 32 rows of 33 floats
constexpr int64_t kNarrowIndex = int64_t(1) << 31;  // indices below it fit a Divisor
constexpr int64_t kPieceBytes = 256;                // of a row that a block of column.cu reads at once, at most
constexpr int64_t kManyUnits = 4096;                // columns that give every SM several blocks
constexpr int kCounterLevels = 5;                   // of a thread's counter in shared memory
constexpr int64_t kMaxFreeRun = 1024;               // leaves that narrow integers add as int
constexpr int64_t kNarrowBytes = 128;               // of a row of narrow_column
constexpr int64_t kNarrowRows = 1024;               // narrow_column pays from here on
constexpr int64_t kNarrowTileBytes = 3 << 10;       // of a warp

int64_t pick(int forced, int64_t chosen) { return forced > 0 ? forced : chosen; }

struct Accumulator {
    int bytes;
    bool order_free;
    int mailbox_bytes() const { return 2 * bytes; }  // every 4 bytes travel with a mark
};

Accumulator accumulator_of(const Problem& p) {
    Accumulator found{};
    OpKey const key{p.op, p.in, p.accumulate};
    visit_first(
        AllOps{}, [&](auto op) { return op.key == key; },
        [&](auto op) { found = {int(sizeof(typename decltype(op)::acc)), decltype(op)::order_free}; });
    return found;
}

// Whether a position in a row becomes an offset by arithmetic on 31 bits.
bool is_walk(const Problem& p, int element_bytes) {
    if (p.reduced.count < 1 || p.reduced.count > 2 || p.n >= kNarrowLimit) return false;
    auto const fits = [&](int64_t elements) { return elements < kNarrowLimit / element_bytes; };
    Axis const inner = p.reduced.last();
    if (p.reduced.count == 1) return fits(inner.stride);
    return fits(inner.stride) && fits(p.reduced.axis[0].stride) && fits(inner.stride * inner.size);
}

Loader row_loader(const Problem& p, int element_bytes) {
    bool const flat = p.reduced.count == 0 || (p.reduced.count == 1 && p.reduced.last().stride == 1);
    if (p.kept.count > kFastAxes || p.misalignment % element_bytes != 0) return Loader::gather;
    bool const is_long = p.n > kLanes * components_of(element_bytes);
    if (!flat && is_long && is_walk(p, element_bytes)) return is_grouped(p) ? Loader::nested : Loader::strided;
    if (!flat) return Loader::gather;
    bool const aligned = p.misalignment == 0 && strides_fit_vectors(p.kept, p.kept.count, element_bytes);
    return aligned ? Loader::vector : Loader::unaligned;
}

int64_t previous_power_of_two(int64_t n) { return next_power_of_two(n + 1) / 2; }

// Doubles the chunk until the chunks of one reduction fit the mailbox and one block can fold them.
void set_chunks(Plan& plan, int64_t leaves, int64_t bytes_per_chunk) {
    for (;; plan.chunk_leaves *= 2) {
        plan.chunks = std::max<int64_t>(1, ceil_div(leaves, plan.chunk_leaves));
        bool const fits = plan.chunks <= kMaxFold && plan.chunks * bytes_per_chunk <= kMaxMailboxBytes;
        if (plan.chunks == 1 || fits) return;
    }
}

void plan_short_row(Plan& plan, const Problem& p, int element_components, const DeviceTraits& device,
                    const Geometry& force) {
    plan.path = Path::short_row;
    plan.lanes_per_row = int(next_power_of_two(std::max<int64_t>(1, ceil_div(p.n, element_components))));
    plan.threads = int(std::min<int64_t>(pick(force.threads, 256), kMaxThreads));
    int64_t const groups = plan.threads / plan.lanes_per_row;
    int64_t const share = ceil_div(p.outputs, groups * device.sm_count * (kBlocksPerSm * kMaxThreads / plan.threads));
    plan.rows_per_group =
        int(std::min<int64_t>(pick(force.rows_per_group, next_power_of_two(share)), kMaxRowsPerGroup));
    plan.grid_x = ceil_div(p.outputs, groups * plan.rows_per_group);
}

// Whether memory is one run of rows, with no more between them than is read anyway.
bool is_one_run(const Problem& p, int element_bytes) {
    if (p.kept.count != 1 || p.n == 0) return false;
    int64_t const pitch = p.kept.last().stride;
    return pitch >= p.n && pitch * element_bytes <= std::max(2 * p.n * element_bytes, kSectorBytes);
}

// Tiles of about 16 KB, which a block reads, adds and is done with. H200, fp32: (16777216, 3) in tiles of 12 KB 64.2 us, of 36
// 64.8, of 10 67; (1048576, 33) in tiles of 17 KB 35.0, of 34 35.3, of 8 35.6. Rings of tiles are slower.
void plan_staged_row(Plan& plan, const Problem& p, int element_bytes, const DeviceTraits& device,
                     const Geometry& force) {
    plan.path = Path::staged_row;
    plan.threads = kStagedThreads;
    plan.lanes_per_row = int(next_power_of_two(ceil_div(p.n, kPart)));
    int64_t const group_bytes = kWarp * p.kept.last().stride * element_bytes;  // of 32 rows
    int64_t const share = ceil_div(p.outputs, kWarp * int64_t(device.sm_count) * kStagedBlocksPerSm);
    int64_t const groups = std::min(previous_power_of_two(std::max<int64_t>(1, kStagedTileBytes / group_bytes)), share);
    int64_t const most = (kSharedBytes - kVectorBytes) / group_bytes;
    plan.tile_rows = int(kWarp * std::min(pick(force.rows_per_group, groups), most));
    plan.grid_x = ceil_div(p.outputs, plan.tile_rows);
}

void plan_warp_row(Plan& plan, const Problem& p, const Geometry& force) {
    plan.path = Path::warp_row;
    plan.threads = int(std::min<int64_t>(pick(force.threads, p.outputs == 1 ? kWarp : 256), kMaxThreads));
    plan.grid_x = ceil_div(p.outputs, plan.threads / kWarp);
}

// Chunks of 16 to 256 leaves, so that a GPU gets at least two blocks an SM where there is work for them, and many small
// ones where there is more: their order keeps the reads of all SMs close together in memory, and none of them ends late.
// H200, fp32, in bench/results: 16,384 elements in one block of 32 leaves 2.67 us, in two 3.22; 10M in chunks of 64 12.5,
// of 16 12.9, of 128 13.0; 2^30 in chunks of 256 940, of 1,024 943, in one wave of 8,192 949.
void plan_block_row(Plan& plan, const Problem& p, int64_t leaves, const DeviceTraits& device, Accumulator acc,
                    const Geometry& force) {
    // Integers fold once a block, not once a leaf: one wave of large chunks suits them better.
    int64_t const blocks = int64_t(device.sm_count) * kBlocksPerSm * (acc.order_free ? 1 : 2);
    int64_t const most = acc.order_free ? 4096 : 256;
    int64_t const share = next_power_of_two(ceil_div(leaves * p.outputs, blocks));
    plan.path = Path::block_row;
    plan.chunk_leaves = leaves <= kWarp ? kWarp : std::clamp<int64_t>(share, 16, most);
    plan.chunk_leaves = std::min(pick(force.chunk_leaves, plan.chunk_leaves), next_power_of_two(leaves));
    set_chunks(plan, leaves, acc.mailbox_bytes());
    // Half-sized blocks overlap better with each other; a single row has too few of them to care. float16 needs so many
    // registers that only half-sized ones come in pairs.
    bool const single = p.outputs == 1 && plan.chunk_leaves > 64 && p.in != DType::float16;
    bool const large_blocks = leaves <= kWarp || single;
    int64_t const most_warps = (large_blocks ? kMaxThreads : kMaxThreads / 2) / kWarp;
    int64_t const warps = std::min({leaves, plan.chunk_leaves, most_warps});
    plan.threads = int(std::min<int64_t>(pick(force.threads, next_power_of_two(warps) * kWarp), kMaxThreads));
    plan.grid_x = plan.chunks;
    plan.grid_y = std::min(p.outputs, kMaxGridY);  // rows in one launch
    if (plan.chunks == 1) return;
    plan.grid_y = std::min(plan.grid_y, kMaxMailboxBytes / (plan.chunks * acc.mailbox_bytes()));
    plan.mailbox_bytes = plan.grid_y * plan.chunks * acc.mailbox_bytes();
}

void plan_row(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc, const Geometry& force) {
    int const element_bytes = dtype_info(p.in).bytes;
    int64_t const leaves = leaves_of(Family::row, element_bytes, p.n);
    int64_t const short_limit = int64_t(kLanes) * components_of(element_bytes);
    plan.loader = row_loader(p, element_bytes);
    // A warp a row needs no barrier, and pays where the rows fill whole waves of warps.
    int64_t const warps = int64_t(device.sm_count) * kBlocksPerSm * (kMaxThreads / kWarp);
    bool const short_enough = leaves <= kWarp && 2 * p.outputs >= warps;
    bool const full_waves = leaves <= kMaxGroup && 10 * p.outputs >= 9 * warps * ceil_div(p.outputs, warps);
    Path path = p.n <= short_limit                          ? Path::short_row
                : leaves <= 2 || short_enough || full_waves ? Path::warp_row
                                                            : Path::block_row;
    Path const forced = Path(std::max(0, force.path - 1));
    if (force.path > 0 && p.n > 0) {
        bool const allowed = forced == Path::block_row || (forced == Path::warp_row && leaves <= kMaxGroup) ||
                             (forced == Path::short_row && p.n <= short_limit);
        if (allowed) path = forced;
    }
    // Through shared memory, unless short_row is wanted.
    if (path == Path::short_row && plan.loader == Loader::unaligned && forced != Path::short_row &&
        is_one_run(p, element_bytes))
        return plan_staged_row(plan, p, element_bytes, device, force);
    if (path == Path::short_row) return plan_short_row(plan, p, components_of(element_bytes), device, force);
    if (path == Path::warp_row) return plan_warp_row(plan, p, force);
    plan_block_row(plan, p, leaves, device, acc, force);
}

bool columns_fit_vectors(const Problem& p, int element_bytes) {
    return p.kept.last().stride == 1 && p.kept.last().size % components_of(element_bytes) == 0 && p.misalignment == 0 &&
           p.kept.count <= kFastAxes && p.reduced.count <= 2 && p.n < kNarrowIndex &&
           strides_fit_vectors(p.kept, p.kept.count - 1, element_bytes) &&
           strides_fit_vectors(p.reduced, p.reduced.count, element_bytes);
}

struct ColumnTask {
    int64_t leaves, units;
    int unit_bytes;  // of the accumulators of a thread
    int load_bytes;  // of its loads
    int together;    // leaves in flight
    bool order_free;
};

// Of a row, at once: as much as memory likes, but few accumulators, or joins take long, and few of the rows' odd ends.
// H200: (65536, 1024) fp32 64.1 us with 256 bytes, 65.4 with 128; (1048576, 128) bf16 67.9 with 128, 68.2 with 256;
// (100003, 257) fp32 31.0 with 128, 31.7 with 256.
int64_t piece_bytes(const ColumnTask& task) {
    if (task.load_bytes < kVectorBytes) return (task.units < kManyUnits ? kPieceBytes / 2 : 2 * kPieceBytes);
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

// Equal chunks, so that all blocks are resident at once: bandwidth is there with half of them, and a second wave of a few
// blocks would take as long as the first.
void set_column_chunks(Plan& plan, const ColumnTask& task, const DeviceTraits& device, int64_t entry_bytes,
                       const Geometry& force) {
    int64_t const tiles = ceil_div(task.units, plan.threads_across), down = plan.threads / plan.threads_across;
    int64_t const columns = plan.threads_across * plan.vector_columns;
    int64_t const resident =
        int64_t(device.sm_count) * column_blocks_per_sm(task.unit_bytes) * kColumnThreads / plan.threads;
    int64_t const wanted = std::max<int64_t>(1, resident / tiles);
    plan.chunk_leaves = pick(force.chunk_leaves, next_power_of_two(ceil_div(task.leaves, wanted)));
    plan.chunk_leaves = std::max<int64_t>(down * task.together, plan.chunk_leaves);
    for (;; plan.chunk_leaves *= 2) {
        plan.chunks = std::max<int64_t>(1, ceil_div(task.leaves, plan.chunk_leaves));
        plan.mailbox_bytes = join_entries(plan.chunks, join_group(plan.threads, columns)) * task.units * entry_bytes;
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

void plan_column(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc, const Geometry& force) {
    int const element_bytes = dtype_info(p.in).bytes;
    bool const vector = columns_fit_vectors(p, element_bytes);
    plan.path = Path::column;
    plan.loader = vector ? Loader::vector : Loader::gather;
    plan.vector_columns = vector ? components_of(element_bytes) : 1;
    int64_t const columns = p.kept.last().size;
    ColumnTask task{};
    task.leaves = leaves_of(Family::column, element_bytes, p.n);
    task.units = columns / plan.vector_columns * (p.outputs / columns);
    task.unit_bytes = plan.vector_columns * acc.bytes;
    task.load_bytes = plan.vector_columns * element_bytes;
    task.together = column_leaves_in_flight(task.load_bytes);
    task.order_free = acc.order_free;
    int64_t const entry_bytes = plan.vector_columns * acc.mailbox_bytes();
    for (int64_t most_threads = kColumnThreads;; most_threads /= 2) {
        set_column_block(plan, task, most_threads, force);
        set_column_chunks(plan, task, device, entry_bytes, force);
        if (set_column_runs(plan, task)) return;
    }
}

// Rows of few bytes, one after the other: memory between them, if any, is little.
bool is_narrow(const Problem& p, int element_bytes) {
    if (columns_fit_vectors(p, element_bytes)) return false;
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

void set_narrow_chunks(Plan& plan, int64_t leaves, int64_t columns, int64_t entry_bytes, const DeviceTraits& device,
                       const Geometry& force) {
    int64_t const wanted = int64_t(device.sm_count) * kNarrowBlocksPerSm * 8;  // small chunks follow each other closely
    int64_t const least = kNarrowThreads / kWarp * plan.tile_leaves;
    plan.chunk_leaves = std::max(least, pick(force.chunk_leaves, next_power_of_two(ceil_div(leaves, wanted))));
    for (;; plan.chunk_leaves *= 2) {
        plan.chunks = ceil_div(leaves, plan.chunk_leaves);
        plan.mailbox_bytes = join_entries(plan.chunks, join_group(kNarrowThreads, columns)) * columns * entry_bytes;
        if (plan.mailbox_bytes <= kMaxMailboxBytes) break;
    }
    plan.counter_levels = ceil_log2(plan.chunk_leaves / least) + 1;
    plan.grid_x = plan.chunks;
}

// Tiles of up to 3 KB, so that a lane has few leaves of each column to fold.
void plan_narrow_column(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc,
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
        set_narrow_chunks(plan, leaves, columns, acc.mailbox_bytes(), device, force);
        int64_t const values = columns * (plan.value_pitch + plan.counter_levels);
        plan.shared_bytes = int(kNarrowThreads / kWarp * (kNarrowStages * plan.stage_bytes + values * acc.bytes));
        plan.shared_bytes += 2 * kNarrowThreads * acc.bytes;
        if (plan.shared_bytes <= kSharedBytes) return;
    }
}

const char* name_of(Path path) {
    constexpr const char* names[] = {"nothing", "short_row",     "warp_row",  "block_row",
                                     "column",  "narrow_column", "staged_row"};
    return names[int(path)];
}
const char* name_of(Loader loader) {
    constexpr const char* names[] = {"vector", "unaligned", "gather", "nested", "strided"};
    return names[int(loader)];
}
const char* name_of(Accumulate accumulate) {
    constexpr const char* names[] = {"native", "compensated", "double"};
    return names[int(accumulate)];
}

struct JsonObject {
    std::string text = "{";
    void key(const char* name) {
        if (text.size() > 1) text += ", ";
        text.append("\"").append(name).append("\": ");
    }
    void add(const char* name, const char* value) {
        key(name);
        text.append("\"").append(value).append("\"");
    }
    void add(const char* name, int64_t value) {
        key(name);
        text += std::to_string(value);
    }
};

}  // namespace

bool strides_fit_vectors(const AxisList& axes, int count, int element_bytes) {
    for (int i = 0; i < count; ++i)
        if (axes.axis[i].stride * element_bytes % kVectorBytes != 0) return false;
    return true;
}

bool is_grouped(const Problem& p) {
    int const bytes = dtype_info(p.in).bytes;
    if (p.reduced.count == 0 || p.misalignment != 0) return false;
    if (p.reduced.last().stride != 1 || p.reduced.last().size % components_of(bytes) != 0) return false;
    return strides_fit_vectors(p.kept, p.kept.count, bytes) &&
           strides_fit_vectors(p.reduced, p.reduced.count - 1, bytes);
}

Plan make_plan(const Problem& p, const DeviceTraits& device, const Geometry& force) {
    Plan plan;
    if (p.outputs == 0) return plan;
    Accumulator const acc = accumulator_of(p);
    if (p.family == Family::row)
        plan_row(plan, p, device, acc, force);
    else if (is_narrow(p, dtype_info(p.in).bytes) && force.path != 1 + int(Path::column))
        plan_narrow_column(plan, p, device, acc, force);
    else
        plan_column(plan, p, device, acc, force);
    return plan;
}

std::string to_json(const Problem& p, const Plan& plan) {
    DTypeInfo const in = dtype_info(p.in);
    bool const row = p.family == Family::row;
    JsonObject json;
    json.add("op", "sum");
    json.add("in", in.name);
    json.add("out", dtype_info(p.out).name);
    json.add("accumulate", name_of(p.accumulate));
    json.add("family", row ? "row" : "column");
    json.add("n", p.n);
    json.add("outputs", p.outputs);
    json.add("tree_version", kTreeVersion);
    json.add("leaf_elements", row ? row_leaf_elements(in.bytes) : kColumnLeafRows);
    json.add("leaves", leaves_of(p.family, in.bytes, p.n));
    json.add("depth", tree_depth(p.family, in.bytes, p.n));
    json.add("path", name_of(plan.path));
    json.add("loader", name_of(plan.loader));
    json.add("threads", plan.threads);
    json.add("lanes_per_row", plan.lanes_per_row);
    json.add("rows_per_group", plan.rows_per_group);
    json.add("tile_rows", plan.tile_rows);
    json.add("threads_across", plan.threads_across);
    json.add("vector_columns", plan.vector_columns);
    json.add("run_leaves", plan.run_leaves);
    json.add("tile_leaves", plan.tile_leaves);
    json.add("shared_bytes", plan.shared_bytes);
    json.add("chunk_leaves", plan.chunk_leaves);
    json.add("chunks", plan.chunks);
    json.add("grid_x", plan.grid_x);
    json.add("grid_y", plan.grid_y);
    json.add("mailbox_bytes", plan.mailbox_bytes);
    return json.text + "}";
}

}  // namespace gpureduce
