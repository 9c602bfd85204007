// Geometry of the row family: which kernel takes rows of a length, how they are loaded, and in which pieces.
#include "planners.h"

namespace gpureduce {
namespace {

constexpr int64_t kSectorBytes = 32;            // of a line of the cache, the least that memory gives
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

// Doubles the chunk until the chunks of one reduction fit the mailbox and one block can fold them.
void set_chunks(Plan& plan, int64_t leaves, int64_t bytes_per_chunk) {
    for (;; plan.chunk_leaves *= 2) {
        plan.chunks = std::max<int64_t>(1, ceil_div(leaves, plan.chunk_leaves));
        bool const fits = plan.chunks <= kMaxFold && plan.chunks * bytes_per_chunk <= kMaxMailboxBytes;
        if (plan.chunks == 1 || fits) return;
    }
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
    int64_t const most = (kSharedBytes - kVectorBytes) / group_bytes;
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
        std::min(pick(force.rows_per_group * int(warp_rows), chosen), (kSharedBytes - kVectorBytes) / row_bytes);
    if (rows > warp_rows) rows -= rows % warp_rows;
    plan.tile_rows = int(rows);
    plan.grid_x = ceil_div(p.outputs, rows);
}

// A warp a leaf; the kernel is compiled for 1, 4 and kTinyLeaves of them.
void plan_tiny_row(Plan& plan, int64_t leaves) {
    plan.path = Path::tiny_row;
    plan.threads = kWarp * (leaves <= 1 ? 1 : leaves <= 4 ? 4 : kTinyLeaves);
    plan.grid_x = 1;
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
    // A row of a few MB is done soonest by a block an SM: fewer join.
    bool const brief = p.outputs == 1 && leaves <= 32 * int64_t(device.sm_count);
    int64_t const blocks = int64_t(device.sm_count) * (brief ? 1 : acc.order_free ? kBlocksPerSm : 2 * kBlocksPerSm);
    int64_t const most = acc.order_free ? 4096 : 256;
    int64_t const share = next_power_of_two(ceil_div(leaves * p.outputs, blocks));
    plan.path = Path::block_row;
    plan.chunk_leaves = leaves <= kWarp ? kWarp : std::clamp<int64_t>(share, brief ? 8 : 16, most);
    plan.chunk_leaves = std::min(pick(force.chunk_leaves, plan.chunk_leaves), next_power_of_two(leaves));
    set_chunks(plan, leaves, acc.mailbox_bytes());
    // Half-sized blocks overlap better with each other; a single row has too few of them to care. float16 needs so many
    // registers that only half-sized ones come in pairs.
    bool const single = p.outputs == 1 && plan.chunk_leaves > (brief ? 32 : 64) && p.in != DType::float16;
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

}  // namespace

void plan_row(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc, const Geometry& force) {
    int const element_bytes = dtype_info(p.in).bytes;
    int64_t const leaves = leaves_of(Family::row, element_bytes, p.n);
    int64_t const short_limit = int64_t(kLanes) * components_of(element_bytes);
    plan.loader = row_loader(p, element_bytes, acc);
    // A warp a row needs no barrier, and pays where the rows fill whole waves of warps.
    int64_t const warps = int64_t(device.sm_count) * kBlocksPerSm * (kMaxThreads / kWarp);
    bool const short_enough = leaves <= kWarp && 2 * p.outputs >= warps;
    bool const full_waves = leaves <= kMaxGroup && 10 * p.outputs >= 9 * warps * ceil_div(p.outputs, warps);
    bool const whole = is_whole_row(p, plan.loader);
    bool const every = acc.coverage == Coverage::every;
    bool const has_whole_leaves = every || (acc.coverage == Coverage::common && p.accumulate == Accumulate::native);
    bool const is_short = p.n <= short_limit || (has_whole_leaves && leaves <= 1 && whole);
    bool const flat = plan.loader == Loader::unaligned || (plan.loader == Loader::vector && !whole);
    bool const staged_leaf = every && flat && leaves <= 1 && p.n > short_limit && is_one_run(p, element_bytes);
    bool const tiny = every && whole && p.outputs == 1 && p.n > 0 && leaves <= kTinyLeaves;
    // A tile takes longer than a row does, so it pays where a warp a row would be more than one wave of warps.
    Path path = tiny                                        ? Path::tiny_row
                : is_short                                  ? Path::short_row
                : staged_leaf && p.outputs > warps          ? Path::staged_row
                : leaves <= 2 || short_enough || full_waves ? Path::warp_row
                                                            : Path::block_row;
    if (!is_built(acc.coverage, path, plan.loader)) path = Path::block_row;
    Path const forced = Path(std::max(0, force.path - 1));
    if (force.path > 0 && p.n > 0) {
        bool const allowed = forced == Path::block_row || (forced == Path::warp_row && leaves <= kMaxGroup) ||
                             (forced == Path::short_row && is_short) || (forced == Path::staged_row && staged_leaf) ||
                             (forced == Path::tiny_row && tiny);
        if (allowed && is_built(acc.coverage, forced, plan.loader)) path = forced;
    }
    if (path == Path::tiny_row) return plan_tiny_row(plan, leaves);
    if (path == Path::staged_row) return plan_staged_leaf(plan, p, element_bytes, device, acc, force);
    // Through shared memory, unless short_row is wanted.
    if (path == Path::short_row && plan.loader == Loader::unaligned && forced != Path::short_row &&
        is_one_run(p, element_bytes))
        return plan_staged_row(plan, p, element_bytes, device, force);
    if (path == Path::short_row) return plan_short_row(plan, p, components_of(element_bytes), device, acc, force);
    if (path == Path::warp_row) return plan_warp_row(plan, p, force);
    plan_block_row(plan, p, leaves, device, acc, force);
}

}  // namespace gpureduce
