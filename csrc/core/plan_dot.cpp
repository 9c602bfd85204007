// Two inputs -> what is kept and reduced, and who does it.
#include "dot.h"
#include "planners.h"

namespace gpureduce {
namespace {

// Appends an axis, or widens the last one where the pair walks both inputs like a single axis.
void append(PairAxes& list, const PairAxis& next) {
    if (list.count > 0) {
        PairAxis& outer = list.last();
        bool one = outer.out_stride == next.size * next.out_stride;
        for (int i = 0; i < kInputs; ++i) one = one && outer.stride[i] == next.size * next.stride[i];
        if (one) {
            PairAxis widened = next;
            widened.size *= outer.size;
            outer = widened;
            return;
        }
    }
    list.axis[list.count++] = next;
}

int fastest_axis(const PairAxes& list, int input) {
    int best = -1;
    for (int i = 0; i < list.count; ++i) {
        int64_t const stride = list.axis[i].stride[input];
        if (stride != 0 && (best < 0 || stride < list.axis[best].stride[input])) best = i;
    }
    return best;
}

Accumulator accumulator_of(const DotProblem& p) {
    Accumulator found{};
    visit_first(
        DotOps{}, [&](auto op) { return is_operator_of<decltype(op)>(p); },
        [&](auto op) {
            using Op = decltype(op);
            found = {int(sizeof(typename Op::acc)), unit_columns<Op>, false, false, false, Coverage::common};
        });
    return found;
}

// Whether 16 bytes of each input lie together along an axis with steps of one element, and all other steps keep to them. Of
// columns, one input may instead be the same along that axis; of complex ones y, since x is conjugated.
bool fits_vectors(const DotProblem& p, bool along_rows) {
    DTypeInfo const in = dtype_info(p.in);
    if (in.kind == Kind::integer || p.kept.count > kFastAxes) return false;
    auto const fits = [&](int64_t stride) { return stride * in.bytes % kVectorBytes == 0; };
    for (int i = 0; i < kInputs; ++i) {
        if (!along_rows && is_same_along_columns(p, i) && (i == 1 || in.kind == Kind::real)) continue;
        if (p.misalignment[i] != 0) return false;
        if (along_rows ? p.step[i] != 1 : !fits(p.step[i])) return false;
        for (int d = 0; d < p.kept.count; ++d) {
            bool const along = !along_rows && d == p.kept.count - 1;
            if (along ? p.kept.axis[d].stride[i] != 1 : !fits(p.kept.axis[d].stride[i])) return false;
        }
    }
    return along_rows || p.kept.last().size % components_of(in.bytes) == 0;
}

// The problem of one input, for the planner of columns, which only looks at what the two have in common.
Problem columns_of(const DotProblem& p, bool vector) {
    Problem one;
    one.in = one.out = p.in;
    one.family = Family::column;
    one.outputs = p.outputs;
    one.n = p.n;
    one.misalignment = vector ? 0 : 1;
    one.kept.count = p.kept.count;
    int const input = p.kept.count > 0 && is_same_along_columns(p, 0) ? 1 : 0;
    for (int d = 0; d < p.kept.count; ++d)
        one.kept.axis[d] = {p.kept.axis[d].size, p.kept.axis[d].stride[input], p.kept.axis[d].out_stride};
    one.reduced.count = 1;
    one.reduced.axis[0] = {p.n, p.step[input], 0};
    return one;
}

// A lane an element, and several rows a warp.
void plan_dot_short_row(Plan& plan, const DotProblem& p, const Geometry& force) {
    plan.path = Path::short_row;
    plan.lanes_per_row = int(next_power_of_two(std::max<int64_t>(1, p.n)));
    plan.threads = int(std::min<int64_t>(pick(force.threads, 256), kMaxThreads));
    plan.rows_per_group = kDotRowsAtOnce;
    plan.grid_x = ceil_div(p.outputs, int64_t(plan.threads / plan.lanes_per_row) * plan.rows_per_group);
}

// A warp a row where there are enough of them, and a block for each chunk of longer ones; two inputs are in flight at once,
// so chunks are half of those of a sum.
void plan_dot_row(Plan& plan, const DotProblem& p, const DeviceTraits& device, Accumulator acc, const Geometry& force) {
    int64_t const leaves = leaves_of(Family::row, dtype_info(p.in).bytes, p.n);
    int64_t const warps = int64_t(device.sm_count) * kBlocksPerSm * (kMaxThreads / kWarp);
    if (p.n <= kLanes && force.path <= 1 + int(Path::short_row)) return plan_dot_short_row(plan, p, force);
    bool by_warps = leaves <= 2 || (leaves <= kWarp && 2 * p.outputs >= warps);
    if (force.path == 1 + int(Path::warp_row) && leaves <= kWarp) by_warps = true;
    if (force.path == 1 + int(Path::block_row)) by_warps = false;
    if (by_warps) {
        plan.path = Path::warp_row;
        plan.threads = int(std::min<int64_t>(pick(force.threads, p.outputs == 1 ? kWarp : 256), kMaxThreads));
        plan.grid_x = ceil_div(p.outputs, plan.threads / kWarp);
        return;
    }
    bool const brief = p.outputs == 1 && leaves <= 32 * int64_t(device.sm_count);
    int64_t const blocks = int64_t(device.sm_count) * (brief ? 1 : 2 * kBlocksPerSm);
    int64_t const share = next_power_of_two(ceil_div(std::max<int64_t>(1, leaves) * p.outputs, blocks));
    plan.path = Path::block_row;
    plan.chunk_leaves = pick(force.chunk_leaves, std::clamp<int64_t>(share, brief ? 8 : 16, 128));
    plan.chunk_leaves =
        std::min({plan.chunk_leaves, next_power_of_two(std::max<int64_t>(1, leaves)), int64_t(kRowGroups)});
    set_chunks(plan, leaves, acc.mailbox_bytes());
    int64_t const most_warps = (p.outputs == 1 ? kMaxThreads : kMaxThreads / 2) / kWarp;
    int64_t const chosen = std::min({next_power_of_two(std::max<int64_t>(1, leaves)), plan.chunk_leaves, most_warps});
    plan.threads = int(std::min<int64_t>(pick(force.threads, chosen * kWarp), kMaxThreads));
    plan.grid_x = plan.chunks;
    plan.grid_y = std::min(p.outputs, kMaxGridY);  // rows in one launch
    if (plan.chunks == 1) return;
    plan.grid_y = std::min(plan.grid_y, kMaxMailboxBytes / (plan.chunks * acc.mailbox_bytes()));
    plan.mailbox_bytes = plan.grid_y * plan.chunks * acc.mailbox_bytes();
}

}  // namespace

DotProblem make_dot_problem(const int64_t* sizes, const int64_t* x_strides, const int64_t* y_strides, int dims,
                            int reduced, DType in, Accumulate accumulate, bool conjugate) {
    DotProblem p;
    p.in = in;
    p.accumulate = accumulate;
    p.conjugate = conjugate;
    for (int d = 0; d < dims; ++d) (d == reduced ? p.n : p.outputs) *= sizes[d];

    int64_t out_stride = p.outputs;
    for (int d = 0; d < dims; ++d) {
        if (sizes[d] == 1) continue;  // dropped before the family is chosen
        if (d == reduced) {
            p.step[0] = x_strides[d];
            p.step[1] = y_strides[d];
        } else {
            out_stride = sizes[d] > 0 ? out_stride / sizes[d] : 0;
            append(p.kept, {sizes[d], {x_strides[d], y_strides[d]}, out_stride});
        }
    }
    // A row of one element has no step, and its load is a run of one.
    if (p.n == 1) p.step[0] = p.step[1] = 1;

    int const leader = fastest_axis(p.kept, 0) >= 0 ? 0 : 1;
    int const kept = fastest_axis(p.kept, leader);
    int64_t const step = p.step[leader];
    if (kept >= 0 && p.n > 1 && (step == 0 || p.kept.axis[kept].stride[leader] < step)) {
        p.family = Family::column;
        PairAxis const columns = p.kept.axis[kept];
        for (int i = kept; i + 1 < p.kept.count; ++i) p.kept.axis[i] = p.kept.axis[i + 1];
        p.kept.last() = columns;
    }
    return p;
}

void set_addresses(DotProblem& problem, const void* x, const void* y) {
    problem.misalignment[0] = int(reinterpret_cast<uintptr_t>(x) % kVectorBytes);
    problem.misalignment[1] = int(reinterpret_cast<uintptr_t>(y) % kVectorBytes);
}

Plan make_dot_plan(const DotProblem& p, const DeviceTraits& device, const Geometry& force) {
    Plan plan;
    if (p.outputs == 0) return plan;
    Accumulator const acc = accumulator_of(p);
    bool const row = p.family == Family::row, vector = fits_vectors(p, row);
    if (row)
        plan_dot_row(plan, p, device, acc, force);
    else
        plan_column(plan, columns_of(p, vector), device, acc, force);
    plan.loader = vector ? Loader::vector : Loader::strided;
    return plan;
}

std::string to_json(const DotProblem& p, const Plan& plan) {
    Problem one = columns_of(p, true);
    one.accumulate = p.accumulate;
    one.family = p.family;
    std::string text = to_json(one, plan);
    std::string const name = "\"sum\"";
    return text.replace(text.find(name), name.size(), "\"vecdot\"");
}

}  // namespace gpureduce
