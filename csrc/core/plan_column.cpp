// Geometry of the column family: who owns which columns, and in which pieces their rows go.
#include "planners.h"

namespace gpureduce {
namespace {

constexpr int64_t kPieceBytes = 256;  // of a row that a block of column.cu reads at once
constexpr int64_t kManyUnits = 4096;  // columns that give every SM several blocks
constexpr int64_t kLittleWork = 1 << 16, kMuchWork = 1 << 18, kMostReadOnce = 3 << 17,
                  kLargeWork = 1 << 20;  // leaves of units
constexpr int64_t kFewChunks = 4;        // whose joins take no time
constexpr int64_t kWholeRounds = 4;      // of batch_column, that take no longer than a join
constexpr int kCounterLevels = 5;        // of a thread's counter in shared memory
constexpr int64_t kMaxFreeRun = 1024;    // leaves that narrow integers add as int

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

// Three columns without gaps between rows, at 16-byte boundaries: in batches that threads of a block share, or in long ones, of which
// every SM gets some. H200, fp32: one of 100,003 rows 5.2 us, by narrow_column 4.7; of 16,777,216 51.0 and 55.6.
bool is_batch_column(const Problem& p, const DeviceTraits& device, Accumulator acc) {
    int const element_bytes = dtype_info(p.in).bytes;
    if (acc.coverage != Coverage::every || !has_batch_columns(element_bytes, p.accumulate) || p.n == 0) return false;
    bool const three = p.kept.count >= 1 && p.kept.count <= kFastAxes && p.kept.last().size == kBatchColumns &&
                       p.kept.last().stride == 1;
    bool const one_run = p.reduced.count == 1 && p.reduced.last().stride == kBatchColumns && p.misalignment == 0;
    if (!three || !one_run || !strides_fit_vectors(p.kept, p.kept.count - 1, element_bytes)) return false;
    int64_t const leaves = leaves_of(Family::column, element_bytes, p.n), batches = p.outputs / kBatchColumns;
    if (leaves > kColumnThreads) return leaves * batches >= int64_t(kColumnThreads) * device.sm_count;
    return p.n * kBatchColumns % components_of(element_bytes) == 0 && p.kept.count >= 2;
}

// Whole batches of a few rounds; of others as many rounds as leave each SM about 48 KB in flight, but no more than a warp has lanes.
// False if more were needed. H200, (16777216, 3) in chunks of 32 rounds, which are 256 blocks, 50.9 us, of 16 53.0.
bool set_rounds(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc, const Geometry& force) {
    int const element_bytes = dtype_info(p.in).bytes;
    int64_t const leaves = leaves_of(Family::column, element_bytes, p.n), batches = p.outputs / kBatchColumns;
    plan.threads = int(std::clamp<int64_t>(pick(force.threads, kColumnThreads), kWarp, kColumnThreads));
    plan.threads_across = plan.run_leaves = 1;
    plan.vector_columns = kBatchColumns;
    int64_t const round_bytes = plan.threads * kColumnLeafRows * kBatchColumns * element_bytes;
    int64_t const rounds = ceil_div(leaves, plan.threads), busy = (int64_t(40) << 10) * device.sm_count;
    int64_t share = std::min<int64_t>(next_power_of_two(rounds), kWarp);
    if (rounds > kWholeRounds)
        while (share > 1 && ceil_div(rounds, share) * batches * round_bytes < busy) share /= 2;
    plan.chunk_leaves = plan.threads * std::clamp<int64_t>(pick(force.chunk_leaves / plan.threads, share), 1, kWarp);
    plan.chunks = ceil_div(leaves, plan.chunk_leaves);
    int64_t const group = join_group(plan.threads, kBatchColumns, acc.bytes);
    plan.mailbox_bytes = join_entries(plan.chunks, group) * p.outputs * acc.mailbox_bytes();
    plan.shared_bytes = plan.threads * kBatchColumns * acc.bytes;
    plan.grid_x = batches;
    plan.grid_y = plan.chunks;
    return plan.mailbox_bytes <= kMaxMailboxBytes && plan.chunks <= kMaxGridY;
}

bool plan_batch_column(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc,
                       const Geometry& force) {
    int64_t const down = next_power_of_two(leaves_of(Family::column, dtype_info(p.in).bytes, p.n)),
                  batches = p.outputs / kBatchColumns;
    plan.path = Path::batch_column;
    if (down > kColumnThreads || p.kept.count == 1) return set_rounds(plan, p, device, acc, force);
    int64_t const wanted = std::max(kWarp / down, next_power_of_two(batches));  // whole warps
    plan.tile_batches = int(std::min<int64_t>(kColumnThreads / down, wanted));
    plan.threads = int(down * plan.tile_batches);
    plan.grid_x = ceil_div(batches, plan.tile_batches);
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

// Of a row, at once: as much as memory likes, but few accumulators where few leaves come to a thread, or joins take long, and
// few of the rows' odd ends. H200: (1024, 65536) fp32 63.4 us with 512 bytes, 63.9 with 256; (65536, 1024) fp32 64.1 with 256, 65.4 with 128; (1048576, 128) bf16
// 69.1 with 128, 68.1 with 256; (16384, 768) bf16 11.3 with 128, 11.8 with 256; (100003, 257)
// fp32 31.0 with 128, 31.7 with 256.
int64_t piece_bytes(const ColumnTask& task) {
    if (task.columns > 1 && task.load_bytes < kVectorBytes) return kWarp * task.load_bytes;
    if (task.load_bytes < kVectorBytes) return (task.units < kManyUnits ? kPieceBytes / 2 : 2 * kPieceBytes);
    if (task.units >= kManyUnits) return 2 * kPieceBytes;  // no joins
    if (task.unit_bytes <= task.load_bytes) return kPieceBytes;
    bool const much = task.unit_bytes <= 2 * task.load_bytes && task.units * task.leaves >= kMuchWork;
    return much ? kPieceBytes : kPieceBytes / 2;
}

// Whether so many blocks read enough at once: 128 bytes a thread, and 48 KB an SM. H200, (200704, 256) bf16: 392 blocks of 256
// threads 30.0 us, 196 31.2, 100 37.7.
bool keeps_busy(int64_t blocks, int64_t threads, const DeviceTraits& device) {
    return blocks * threads * 128 >= (int64_t(48) << 10) * device.sm_count;
}

// Units of a block that owns whole columns, from `most` down; 0 if there is none that pays. Joins take a microsecond or two, so it
// does if no thread has more than it reads at once, in small pieces only where there is little to read, or if pieces are large,
// blocks enough, and threads have not very much each. H200, fp32: (32, 512, 768) dim 1 16.6 us in two chunks of 32 units, 14.9 in
// one of 16; (256, 1024, 64) dim 1 20.3 and 18.9; (700, 2600) 8.4 in chunks, 7.5 in one of 2 units; (640, 256) 4.7 and 3.9; but
// (2048, 4096) 12.2 in chunks, 13.8 in one of 2 units; (8192, 16384) 120.9, 119.5 in one of 8, 197 in one of 4, bf16 64.8 and 63.5
// in one of 8; (4096, 8192) 34.3 and 32.9, (4096, 16384) bf16 35.8 and 33.8.
int64_t whole_column_units(const ColumnTask& task, int64_t most, int64_t threads, const DeviceTraits& device) {
    int64_t const least_bytes = task.units * task.leaves <= kLittleWork ? kSectorBytes : kPieceBytes / 2;
    for (int64_t across = most; across * task.load_bytes >= least_bytes; across /= 2) {
        int64_t const bytes = across * task.load_bytes, at_once = threads / across * task.together;
        if (task.leaves <= at_once * (bytes < 2 * kSectorBytes ? 2 : 1)) return across;
        bool const vectors = task.load_bytes == kVectorBytes;
        bool const large = vectors ? bytes >= kPieceBytes / 2 && task.leaves <= 32 * at_once
                                   : bytes >= kPieceBytes && task.leaves <= 16 * at_once;
        if (large && keeps_busy(ceil_div(task.units, across), threads, device)) return across;
    }
    return 0;
}

// Units of a block whose threads read once and are done, if their chunks then join in one level; else 0. H200, fp32: (4096, 1024)
// 8.4 us, in larger chunks 8.5; (64, 197, 768) dims 0, 1 13.4 and 13.7; (4096, 4096) 20.8 and 20.1; bf16, (8192, 3072) 16.6 and
// 16.9; (8192, 4096) 21.3 and 20.4.
int64_t units_read_once(const ColumnTask& task, int64_t threads, const DeviceTraits& device, Accumulator acc) {
    if (task.load_bytes < kVectorBytes || task.units * task.leaves > kMostReadOnce) return 0;
    bool const narrow = task.unit_bytes <= task.load_bytes;
    for (int64_t across = kPieceBytes / (narrow ? 1 : 2) / kVectorBytes; across >= 8; across /= 2) {
        int64_t const chunks = ceil_div(task.leaves, threads / across * task.together);
        bool const one_level = chunks <= join_group(threads, across * task.columns, acc.bytes);
        bool const fits = chunks * task.units * task.columns * acc.mailbox_bytes() <= kMaxMailboxBytes;
        if (one_level && fits && ceil_div(task.units, across) * chunks >= device.sm_count) return across;
    }
    return 0;
}

// Threads side by side over units, and the others down over leaves. Returns the leaves of a chunk, if they follow from that.
int64_t set_column_block(Plan& plan, const ColumnTask& task, int64_t most_threads, const DeviceTraits& device,
                         Accumulator acc, const Geometry& force) {
    int64_t const groups = next_power_of_two(ceil_div(task.leaves, task.together));
    int64_t threads = std::min<int64_t>(pick(force.threads, kColumnThreads), most_threads);
    int64_t const piece = std::max(piece_bytes(task) / task.load_bytes, threads / groups);
    int64_t const most = std::min({piece, next_power_of_two(task.units), threads});
    int64_t const whole = whole_column_units(task, most, threads, device);
    int64_t const once = whole > 0 ? 0 : units_read_once(task, threads, device, acc);
    int64_t across = pick(force.threads_across, whole > 0 ? whole : once > 0 ? once : most);
    if (whole + once == 0 && force.threads == 0) {  // smaller blocks where there would be few
        auto const blocks = [&] { return ceil_div(task.units, across) * ceil_div(groups, threads / across); };
        while (threads > 2 * kWarp && across < threads && 2 * blocks() < device.sm_count) threads /= 2;
    }
    across = std::min(across, threads);
    plan.threads_across = int(across);
    plan.threads = int(std::max<int64_t>(kWarp, across * std::min(threads / across, groups)));
    return whole > 0 ? next_power_of_two(task.leaves) : once > 0 ? threads / across * task.together : 0;
}

// Whether half as many blocks as fit the SMs are enough, of which fewer join, if they keep_busy: not where much is done with an
// element, as of pivoted operators, or, of bf16, argmax (82 us instead of 71). H200, (8192, 8192) dim 0 fp32, argmax 63.0 us
// instead of 65.0; (8192, 16384) dim 0 bf16, count_nonzero 63.7 instead of 65.1; sums, (4096, 4096) bf16 12.6 instead of 13.1. Large
// sums of wider elements like all of them: (65536, 1024) fp32 64.2 instead of 64.7, (1048576, 128) 122.6 instead of 123.9.
bool takes_half(const ColumnTask& task, Accumulator acc) {
    bool const wide = task.load_bytes == kVectorBytes && task.load_bytes >= 4 * task.columns && !task.order_free;
    if (acc.pivoted || (wide && task.units * task.leaves >= kLargeWork)) return false;
    if (task.columns == 1 || task.load_bytes == kVectorBytes) return true;
    return task.load_bytes >= 4 * task.columns || (task.order_free && acc.bytes <= 8);
}

// Equal chunks, so that all blocks are resident at once: a second wave of a few blocks would take as long as the first.
int64_t chunk_share(const Plan& plan, const ColumnTask& task, const DeviceTraits& device, Accumulator acc) {
    int64_t const tiles = ceil_div(task.units, plan.threads_across), down = plan.threads / plan.threads_across;
    int64_t const resident =
        int64_t(device.sm_count) * column_blocks_per_sm(task.unit_bytes, acc.heavy) * kColumnThreads / plan.threads;
    int64_t share = next_power_of_two(ceil_div(task.leaves, std::max<int64_t>(1, resident / tiles)));
    share = std::max<int64_t>(down * task.together, share);
    auto const chunks = [&] { return ceil_div(task.leaves, share); };
    auto const busy_with_half = [&] {
        return keeps_busy(tiles * ceil_div(task.leaves, 2 * share), plan.threads, device);
    };
    bool const plain = task.columns > 1 && task.load_bytes == kVectorBytes && !task.order_free;
    if (takes_half(task, acc) && (chunks() > kFewChunks || !plain) && busy_with_half()) share *= 2;
    // A level of joins less, if that keeps_busy, too, or a thread has little anyway.
    int64_t const group = join_group(plan.threads, plan.threads_across * plan.vector_columns, acc.bytes);
    bool const little = share <= down * task.together;
    return chunks() > group && chunks() <= 2 * group && (little || busy_with_half()) ? 2 * share : share;
}

void set_column_chunks(Plan& plan, const ColumnTask& task, int64_t share, const DeviceTraits& device, Accumulator acc,
                       const Geometry& force) {
    int64_t const entry_bytes = plan.vector_columns * acc.mailbox_bytes();
    int64_t const down = plan.threads / plan.threads_across, columns = plan.threads_across * plan.vector_columns;
    if (share == 0) share = chunk_share(plan, task, device, acc);
    plan.chunk_leaves = std::max<int64_t>(down * task.together, pick(force.chunk_leaves, share));
    for (;; plan.chunk_leaves *= 2) {
        plan.chunks = std::max<int64_t>(1, ceil_div(task.leaves, plan.chunk_leaves));
        plan.mailbox_bytes =
            join_entries(plan.chunks, join_group(plan.threads, columns, acc.bytes)) * task.units * entry_bytes;
        if (plan.chunks == 1 || (plan.chunks <= kMaxGridY && plan.mailbox_bytes <= kMaxMailboxBytes)) break;
    }
    plan.grid_x = ceil_div(task.units, plan.threads_across);
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
        int64_t const share = set_column_block(plan, task, most_threads, device, acc, force);
        set_column_chunks(plan, task, share, device, acc, force);
        if (set_column_runs(plan, task)) return;
    }
}

}  // namespace

// Whether a thread can read `columns` columns at once.
bool columns_fit_vectors(const Problem& p, int element_bytes, int columns) {
    int const bytes = columns * element_bytes;
    return p.kept.last().stride == 1 && p.kept.last().size % columns == 0 && p.misalignment % bytes == 0 &&
           p.kept.count <= kFastAxes && (p.reduced.count == 1 || (p.reduced.count == 2 && p.n < kNarrowIndex)) &&
           strides_fit_vectors(p.kept, p.kept.count - 1, element_bytes, bytes) &&
           strides_fit_vectors(p.reduced, p.reduced.count, element_bytes, bytes);
}

void plan_column(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc, const Geometry& force) {
    bool const every = acc.coverage == Coverage::every, wide = force.path == 1 + int(Path::column) || !every;
    bool const forced = force.path > 0 && force.path != 1 + int(Path::batch_column);
    if (!forced && is_batch_column(p, device, acc) && plan_batch_column(plan, p, device, acc, force)) return;
    if (!wide && is_walk(p) && plan_thread_column(plan = Plan{}, p, device, force)) return;
    bool const narrow = !wide && is_narrow(p, dtype_info(p.in).bytes);
    if (narrow && plan_narrow_column(plan = Plan{}, p, device, acc, force)) return;
    bool const staged = (force.path == 0 || force.path == 1 + int(Path::staged_column)) && every &&
                        is_staged_column(p, dtype_info(p.in).bytes);
    if (staged && plan_staged_column(plan = Plan{}, p, device, acc, force)) return;
    plan_wide_column(plan = Plan{}, p, device, acc, force);
}

}  // namespace gpureduce
