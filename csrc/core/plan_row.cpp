// Geometry of the row family: which kernel takes rows of a length, how they are loaded, and in which pieces.
#include "planners.h"

namespace gpureduce {
namespace {

constexpr int64_t kStagedTileBytes = 17 << 10;  // four times 32 rows of 33 floats
constexpr int64_t kStagedLeafBytes = 34 << 10;  // of rows longer than one load a lane

// Whether a position in a row becomes an offset by arithmetic on 31 bits.
bool is_walk(const Problem& p, int element_bytes) {
    if (p.reduced.count < 1 || p.reduced.count > 2 || p.n >= kNarrowIndex) return false;
    auto const fits = [&](int64_t elements) { return elements < kNarrowIndex / element_bytes; };
    Axis const inner = p.reduced.last();
    if (p.reduced.count == 1) return fits(inner.stride);
    return fits(inner.stride) && fits(p.reduced.axis[0].stride) && fits(inner.stride * inner.size);
}

Loader row_loader(const Problem& p, int element_bytes, Accumulator acc) {
    bool const flat = p.reduced.count == 0 || (p.reduced.count == 1 && p.reduced.last().stride == 1);
    if (p.kept.count > kFastAxes || p.misalignment % element_bytes != 0) return Loader::gather;
    bool const is_long = p.n > kLanes * components_of(element_bytes), basic = acc.coverage == Coverage::basic;
    if (!flat && is_long && !basic && is_walk(p, element_bytes))
        return is_grouped(p) ? Loader::nested : Loader::strided;
    if (!flat) return Loader::gather;
    bool const aligned = p.misalignment == 0 && strides_fit_vectors(p.kept, p.kept.count, element_bytes);
    if (acc.coverage == Coverage::every) return aligned ? Loader::vector : Loader::unaligned;
    // The others have no loader for odd addresses: long rows go element by element, side by side.
    bool const whole = p.kept.count <= 1 && p.n % components_of(element_bytes) == 0;
    if (aligned && (is_long || (whole && !basic))) return Loader::vector;
    return is_long && !basic && is_walk(p, element_bytes) ? Loader::strided : Loader::gather;
}

// One load a lane for as few lanes as that takes, or two or four for a whole warp.
void plan_short_row(Plan& plan, const Problem& p, int element_components, const DeviceTraits& device, Accumulator acc,
                    const Geometry& force) {
    plan.path = Path::short_row;
    int64_t const packs = next_power_of_two(std::max<int64_t>(1, ceil_div(p.n, element_components)));
    plan.lanes_per_row = int(std::min<int64_t>(packs, kLanes));
    plan.lane_loads = int(packs / plan.lanes_per_row);
    if (plan.lane_loads == 2 && acc.coverage != Coverage::every) plan.lane_loads = kLoads;
    plan.threads = int(std::min<int64_t>(pick(force.threads, 256), kMaxThreads));
    int64_t const groups = plan.threads / plan.lanes_per_row;
    int64_t const share = ceil_div(p.outputs, groups * device.sm_count * (kBlocksPerSm * kMaxThreads / plan.threads));
    int64_t const rows = pick(force.rows_per_group, next_power_of_two(share));
    plan.rows_per_group = int(std::min<int64_t>(rows, short_rows_at_once(plan.lane_loads)));
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
    int64_t const most = (kSharedBytes - 2 * kVectorBytes) / group_bytes;
    plan.tile_rows = int(kWarp * std::min(pick(force.rows_per_group, groups), most));
    plan.grid_x = ceil_div(p.outputs, plan.tile_rows);
}

// As plan_staged_row, for rows up to a leaf: as many as whole warps add, if a tile holds so many. Six tiles fit an SM of the H200, and
// each has few warps that add: the copies of the others hide them.
void plan_staged_leaf(Plan& plan, const Problem& p, int element_bytes, const DeviceTraits& device, Accumulator acc,
                      const Geometry& force) {
    plan.path = Path::staged_row;
    plan.threads = kStagedThreads;
    plan.lanes_per_row = staged_lanes(element_bytes, acc.order_free);
    int64_t const row_bytes = p.kept.last().stride * element_bytes, warp_rows = kWarp / plan.lanes_per_row;
    int64_t const share = ceil_div(p.outputs, int64_t(device.sm_count) * kStagedBlocksPerSm);
    int64_t const chosen = std::min(kStagedLeafBytes / row_bytes, share);
    int64_t rows =
        std::min(pick(force.rows_per_group * int(warp_rows), chosen), (kSharedBytes - 2 * kVectorBytes) / row_bytes);
    if (rows > warp_rows) rows -= rows % warp_rows;
    plan.tile_rows = int(rows);
    plan.grid_x = ceil_div(p.outputs, rows);
}

// A warp a leaf; the kernel is compiled for 1, 4, 16 and kTinyLeaves of them. Two leaves by one warp: 2.1 us instead of 1.8.
void plan_tiny_row(Plan& plan, int64_t leaves) {
    plan.path = Path::tiny_row;
    plan.threads = kWarp * (leaves <= 1 ? 1 : leaves <= 4 ? 4 : leaves <= 16 ? 16 : kTinyLeaves);
    plan.grid_x = 1;
}

void plan_thread_row(Plan& plan, const Problem& p, int components, const Geometry& force) {
    plan.path = Path::thread_row;
    plan.threads = int(std::min<int64_t>(pick(force.threads, kThreadRowThreads), kThreadRowThreads));
    plan.grid_x = ceil_div(p.outputs, int64_t(plan.threads) * components);
}

void plan_warp_row(Plan& plan, const Problem& p, const Geometry& force) {
    plan.path = Path::warp_row;
    plan.threads = int(std::min<int64_t>(pick(force.threads, p.outputs == 1 ? kWarp : 256), kMaxThreads));
    plan.grid_x = ceil_div(p.outputs, plan.threads / kWarp);
}

// How much of the SMs' time `blocks` equal blocks fill that are all there at once, in percent.
int64_t filled(int64_t blocks, const DeviceTraits& device) {
    return 100 * blocks / (ceil_div(blocks, device.sm_count) * device.sm_count);
}

// Whether a block owns a whole row, so that none join: if the SMs have about as many each. H200, fp32, (200, 65536) 14.4 us, in
// chunks 15.4; (512, 512, 300) dims 0, 2 73.7 and 75.2; bf16, 256 rows of 40,960 7.4 and 8.7, 128 of 163,840 12.2 and 13.1.
bool takes_whole_rows(int64_t outputs, const DeviceTraits& device) { return filled(outputs, device) >= 75; }

// Whether little is done with an element: one addition, of integers also more.
bool is_cheap(const Problem& p, Accumulator acc) {
    return acc.order_free ||
           (p.accumulate == Accumulate::native && (acc.coverage == Coverage::every || acc.bytes <= int(sizeof(float))));
}

// Leaves of a chunk. Integers fold once a block, not once a leaf: one wave of large chunks suits them better. Of the others
// chunks are small and many: their order keeps the reads of all SMs close together in memory, and none of them ends late.
// Operators that do more with a leaf have larger ones. H200, fp32: 2^21 elements in chunks of 32 leaves 5.1 us, of 16 5.4; 2^24 of
// 32 18.3, of 64 and 128 18.5; bf16, 2^28 of 128 121.4, of 256 122.4, but its 2-norm of 128 123.4 and of
// 256 122.8. Rows of two axes, fp32, (256, 64, 56, 56) of 64 49.8, of 256 50.8.
int64_t chunk_share(const Problem& p, int64_t leaves, bool brief, const DeviceTraits& device, Accumulator acc) {
    if (leaves <= kWarp) return kWarp;
    auto const share = [&](int64_t per_sm) {
        return next_power_of_two(ceil_div(leaves * p.outputs, per_sm * device.sm_count));
    };
    if (brief) return std::clamp<int64_t>(share(1), 8, 4096);
    if (acc.order_free) return std::clamp<int64_t>(share(kBlocksPerSm), 16, 4096);
    if (takes_whole_rows(p.outputs, device)) return next_power_of_two(leaves);
    if (p.outputs == 1 && p.accumulate != Accumulate::native)
        return std::clamp<int64_t>(share(leaves <= 64 * int64_t(device.sm_count) ? 1 : kBlocksPerSm), 16, 512);
    if (is_cheap(p, acc)) return std::clamp<int64_t>(share(16), 32, 256);
    return std::clamp<int64_t>(share(2 * kBlocksPerSm), 16, 256);
}

// Warps of the largest block. Half-sized blocks overlap better with each other; long rows of few sums have too few of them to care.
// float16 needs so many registers that only half-sized ones come in pairs. H200, 2^28 elements, by 4, 8 and 16 warps: variance of
// fp32 247, 248, 254 us, of bf16 135, 140, 156; sums without NaN of fp32 237, 240, 241, 2-norm of bf16 125, 123, 123.
int64_t most_warps(const Plan& plan, const Problem& p, bool brief, const DeviceTraits& device, Accumulator acc) {
    int64_t const all = kMaxThreads / kWarp, blocks = plan.chunks * p.outputs;
    if (blocks == 1 || (brief && acc.pivoted)) return all;
    if (brief || (p.in == DType::float16 && blocks > device.sm_count)) return all / 2;
    if (plan.chunks == 1) return blocks <= device.sm_count ? all : all / 2;
    if (acc.pivoted) return all / 4;
    bool const one_sum = p.outputs == 1 && (is_cheap(p, acc) || p.accumulate != Accumulate::native);
    return plan.chunk_leaves > 64 || one_sum ? all : all / 2;
}

// Two leaves a warp, in flight together. A leaf in which the row ends, or begins beside a boundary, takes a warp long: others in
// the meantime add more, unless there is room for all at once. H200, fp32: (8192, 4096) by 4 warps 31.9 us, by 8 32.2;
// (4096, 8192) by 8 31.8, by 16 34.1; (64, 1024, 14, 14) dims 0, 2, 3 by 4 15.1, by 8 16.4, by 16 18.5; (5000, 5001) by 2 28.5,
// by 4 30.7, by 8 40.2.
int64_t block_warps(const Plan& plan, const Problem& p, int64_t leaves, int64_t most, bool whole,
                    const DeviceTraits& device) {
    if (plan.chunks > 1 || p.outputs == 1) return std::min({plan.chunk_leaves, leaves, most});
    int64_t const some = next_power_of_two(leaves);
    int64_t const resident = int64_t(device.sm_count) * kBlocksPerSm * kMaxThreads / kWarp;
    int64_t warps = std::clamp<int64_t>(some / 2, 1, most);
    bool const overlaps = !whole && plan.loader != Loader::strided;  // whose loads take a leaf at a time
    while (overlaps && warps > std::max<int64_t>(1, some / 8) && p.outputs * warps > resident) warps /= 2;
    return warps;
}

void plan_block_row(Plan& plan, const Problem& p, int64_t leaves, bool whole, const DeviceTraits& device,
                    Accumulator acc, const Geometry& force) {
    // A row of a few MB is done soonest by small blocks, one an SM: fewer join.
    bool const brief = p.outputs == 1 && leaves <= 16 * int64_t(device.sm_count);
    plan.path = Path::block_row;
    plan.chunk_leaves = pick(force.chunk_leaves, chunk_share(p, leaves, brief, device, acc));
    plan.chunk_leaves = std::min(plan.chunk_leaves, next_power_of_two(leaves));
    set_chunks(plan, leaves, acc.mailbox_bytes());
    int64_t const most = most_warps(plan, p, brief, device, acc);
    int64_t const warps = next_power_of_two(block_warps(plan, p, leaves, most, whole, device));
    plan.threads = int(std::min<int64_t>(pick(force.threads, warps * kWarp), kMaxThreads));
    plan.grid_x = plan.chunks;
    plan.grid_y = std::min(p.outputs, kMaxGridY);  // rows in one launch
    if (plan.chunks == 1) return;
    plan.grid_y = std::min(plan.grid_y, kMaxMailboxBytes / (plan.chunks * acc.mailbox_bytes()));
    plan.mailbox_bytes = plan.grid_y * plan.chunks * acc.mailbox_bytes();
}

}  // namespace

void plan_row(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc, const Geometry& force) {
    int const element_bytes = dtype_info(p.in).bytes;
    int64_t const leaves = leaves_of(Family::row, element_bytes, p.n);
    int64_t const short_limit = int64_t(kLanes) * components_of(element_bytes);
    bool const may_transpose = force.path == 0 || force.path == 1 + int(Path::transposed_row);
    if (may_transpose && is_transposed_row(p, element_bytes, acc)) {
        if (plan_transposed_row(plan, p, device, acc, force)) return;
        plan = Plan{};
    }
    plan.loader = row_loader(p, element_bytes, acc);
    // A warp a row needs no barrier, and pays for few leaves, some more with a ragged end or looked at twice, if the rows fill half
    // a wave of warps. The reads of longer rows would be far apart in memory. Places (12 bytes or more) take a block long to fold.
    // H200, fp32: (16384, 2048) 32.0 us by warps, 31.5 by blocks, its variance 33.0 and 42.6; (8192, 4096) 36.5 and 31.9;
    // (32768, 1500) 45.6 and 50.6; (16384, 2049) 35.9 and 36.6; argmax, (4096, 16384) bf16 33.4 and 37.1.
    int64_t const warps = int64_t(device.sm_count) * kBlocksPerSm * (kMaxThreads / kWarp);
    bool const whole_leaves = plan.loader != Loader::unaligned && p.n % row_leaf_elements(element_bytes) == 0;
    bool const places = acc.order_free && acc.bytes > 8;
    int64_t const few = places ? kWarp : whole_leaves && !acc.pivoted ? 3 : 7;
    bool const short_enough = leaves <= few && 2 * p.outputs >= warps;
    bool const whole = is_whole_row(p, plan.loader);
    bool const every = acc.coverage == Coverage::every;
    bool const has_whole_leaves = every || (acc.coverage == Coverage::common && p.accumulate == Accumulate::native);
    bool const is_short = p.n <= short_limit || (has_whole_leaves && leaves <= 1 && whole);
    bool const flat = plan.loader == Loader::unaligned || (plan.loader == Loader::vector && !whole);
    bool const staged_leaf = every && flat && leaves <= 1 && p.n > short_limit && is_one_run(p, element_bytes);
    bool const tiny = every && whole && p.outputs == 1 && p.n > 0 && leaves <= kTinyLeaves;
    bool const by_thread = every && (p.n == 2 || p.n == 3) && p.kept.count == 1 && p.kept.last().stride == p.n &&
                           p.reduced.last().stride == 1 && p.misalignment == 0;
    // A tile takes longer than a row does, so it pays where a warp a row would be more than one wave of warps.
    Path path = by_thread                          ? Path::thread_row
                : tiny                             ? Path::tiny_row
                : is_short                         ? Path::short_row
                : staged_leaf && p.outputs > warps ? Path::staged_row
                : leaves <= 2 || short_enough      ? Path::warp_row
                                                   : Path::block_row;
    if (!is_built(acc.coverage, path, plan.loader)) path = Path::block_row;
    Path const forced = Path(std::max(0, force.path - 1));
    if (force.path > 0 && p.n > 0) {
        bool const allowed = forced == Path::block_row || (forced == Path::warp_row && leaves <= kMaxGroup) ||
                             (forced == Path::short_row && is_short) || (forced == Path::staged_row && staged_leaf) ||
                             (forced == Path::tiny_row && tiny) || (forced == Path::thread_row && by_thread);
        if (allowed && is_built(acc.coverage, forced, plan.loader)) path = forced;
    }
    if (path == Path::thread_row) return plan_thread_row(plan, p, components_of(element_bytes), force);
    if (path == Path::tiny_row) return plan_tiny_row(plan, leaves);
    if (path == Path::staged_row) return plan_staged_leaf(plan, p, element_bytes, device, acc, force);
    // Through shared memory, unless short_row is wanted.
    if (path == Path::short_row && plan.loader == Loader::unaligned && forced != Path::short_row &&
        is_one_run(p, element_bytes))
        return plan_staged_row(plan, p, element_bytes, device, force);
    if (path == Path::short_row) return plan_short_row(plan, p, components_of(element_bytes), device, acc, force);
    if (path == Path::warp_row) return plan_warp_row(plan, p, force);
    plan_block_row(plan, p, leaves, whole_leaves, device, acc, force);
}

}  // namespace gpureduce
