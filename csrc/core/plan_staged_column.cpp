// Geometry of staged_column.cu: rows of odd width, one after the other.
#include "planners.h"

namespace gpureduce {
namespace {

constexpr int64_t kLeastRows = 256;
constexpr int64_t kFewChunks = 12;     // of a batch: joins of many take long, with all its columns in one block
constexpr int64_t kThreadsOfSm = 384;  // from which on it pays

// Shared memory of a block of so many warps: stages, counters; where the stages were, what joins.
int64_t shared_bytes(const Plan& plan, int64_t warps, int64_t columns, int accumulator_bytes) {
    int64_t const stages = warps * kStagedColumnStages * plan.stage_bytes;
    int64_t const joining = (columns + warps * kWarp) * accumulator_bytes;
    return std::max(stages + warps * plan.counter_levels * columns * accumulator_bytes, joining);
}

}  // namespace

// Rows that vectors do not fit, of more than 128 bytes, with few bytes between them, and with gaps between runs of them at whole leaves
// only; which column.cu, that reads them element by element, takes long for: of 16 bits, or along two axes.
bool is_staged_column(const Problem& p, int element_bytes) {
    if (p.reduced.count < 1 || p.reduced.count > 2 || p.kept.count < 1 || p.kept.count > kFastAxes) return false;
    if (columns_fit_vectors(p, element_bytes, components_of(element_bytes))) return false;
    if (p.kept.last().stride != 1 || p.misalignment % element_bytes != 0) return false;
    int64_t const columns = p.kept.last().size, pitch = p.reduced.last().stride;
    bool const one_run = pitch >= columns && pitch <= columns + columns / 8 && pitch * element_bytes > kNarrowBytes;
    bool const whole_leaves = p.reduced.count == 1 || p.reduced.last().size % kColumnLeafRows == 0;
    bool const slow = element_bytes == 2 || (element_bytes > 2 && p.reduced.count == 2);
    return slow && one_run && whole_leaves && p.n >= kLeastRows && p.n < kNarrowIndex &&
           p.outputs / columns <= kMaxGridY;
}

// False if it does not pay, as of few or of wide columns, whose chunks join slowly, or there is no room for the warps. H200,
// (7, 11, 13, 1000, 101) dims 1, 3: fp32 110 us (by 4 warps 116), by column.cu 117, bf16 65 (by 2 warps 66) and 94; (64, 4096, 201) dim
// 1 bf16 35.9 (38.0) and 40.6; but (1000, 304, 255) bf16 72.8 and 52.1, (1000000, 101) fp32 106.9 and 101.6.
bool plan_staged_column(Plan& plan, const Problem& p, const DeviceTraits& device, Accumulator acc,
                        const Geometry& force) {
    int const element_bytes = dtype_info(p.in).bytes;
    int64_t const leaves = leaves_of(Family::column, element_bytes, p.n), columns = p.kept.last().size;
    int64_t const batches = p.outputs / columns;
    bool const forced = force.path == 1 + int(Path::staged_column);
    plan.path = Path::staged_column;
    plan.loader = Loader::gather;
    plan.stage_bytes = int(staged_bytes(kColumnLeafRows * p.reduced.last().stride * element_bytes));
    int64_t const threads = pick(force.threads, kStagedColumnThreads / (element_bytes > 2 ? 2 : 1));
    int64_t const warps = std::clamp<int64_t>(threads, kWarp, kStagedColumnThreads) / kWarp;
    int64_t const share = next_power_of_two(ceil_div(leaves, kFewChunks));
    plan.chunk_leaves = std::max(warps, pick(force.chunk_leaves, share));
    for (;; plan.chunk_leaves *= 2) {
        plan.chunks = ceil_div(leaves, plan.chunk_leaves);
        int64_t const entries = join_entries(plan.chunks, join_group(warps * kWarp, columns, acc.bytes));
        plan.mailbox_bytes = entries * p.outputs * acc.mailbox_bytes();
        if (plan.mailbox_bytes <= kMaxMailboxBytes) break;
    }
    plan.run_leaves = int(plan.chunk_leaves / warps);
    plan.counter_levels = acc.order_free ? 1 : ceil_log2(plan.run_leaves) + 1;
    plan.threads = int(warps * kWarp);
    plan.shared_bytes = int(shared_bytes(plan, warps, columns, acc.bytes));
    plan.grid_x = plan.chunks;
    plan.grid_y = batches;
    bool const pays = plan.chunks * batches * plan.threads >= kThreadsOfSm * device.sm_count;
    return plan.shared_bytes <= kSharedBytes && (pays || forced);
}

}  // namespace gpureduce
