#include "plan.h"

#include "planners.h"
#include "transposed.h"

namespace gpureduce {
namespace {

Accumulator accumulator_of(const Problem& p) {
    Accumulator found{};
    OpKey const key{p.op, p.in, p.accumulate};
    visit_first(
        AllOps{}, [&](auto op) { return op.key == key; },
        [&](auto op) {
            using Op = decltype(op);
            found = {int(sizeof(typename Op::acc)),
                     unit_columns<Op>,
                     Op::order_free,
                     Op::pivoted,
                     is_heavy<Op>,
                     Op::coverage,
                     has_transposed_rows<Op>};
        });
    return found;
}

const char* name_of(Path path) {
    constexpr const char* names[] = {"nothing",       "short_row",     "warp_row",      "block_row",     "column",
                                     "narrow_column", "staged_row",    "tiny_row",      "thread_column", "batch_column",
                                     "thread_row",    "staged_column", "transposed_row"};
    return names[int(path)];
}
const char* name_of(Loader loader) {
    constexpr const char* names[] = {"vector", "unaligned", "gather", "nested", "strided"};
    return names[int(loader)];
}
const char* name_of(OpId op) {
    constexpr const char* names[] = {"sum",     "nansum",  "squares",  "magnitudes",
                                     "product", "nonzero", "extremes", "extreme_magnitudes",
                                     "argmin",  "argmax",  "moments",  "exponentials"};
    return names[int(op)];
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

bool strides_fit_vectors(const AxisList& axes, int count, int element_bytes, int vector_bytes) {
    for (int i = 0; i < count; ++i)
        if (axes.axis[i].stride * element_bytes % vector_bytes != 0) return false;
    return true;
}

bool is_grouped(const Problem& p) {
    int const bytes = dtype_info(p.in).bytes;
    if (p.reduced.count == 0 || p.misalignment != 0) return false;
    if (p.reduced.last().stride != 1 || p.reduced.last().size % components_of(bytes) != 0) return false;
    return strides_fit_vectors(p.kept, p.kept.count, bytes) &&
           strides_fit_vectors(p.reduced, p.reduced.count - 1, bytes);
}

bool is_whole_row(const Problem& p, Loader loader) {
    return loader == Loader::vector && p.kept.count <= 1 && p.n % components_of(dtype_info(p.in).bytes) == 0;
}

Plan make_plan(const Problem& p, const DeviceTraits& device, const Geometry& force) {
    Plan plan;
    if (p.outputs == 0) return plan;
    Accumulator const acc = accumulator_of(p);
    if (p.family == Family::row)
        plan_row(plan, p, device, acc, force);
    else
        plan_column(plan, p, device, acc, force);
    return plan;
}

std::string to_json(const Problem& p, const Plan& plan) {
    DTypeInfo const in = dtype_info(p.in);
    bool const row = p.family == Family::row;
    JsonObject json;
    json.add("op", name_of(p.op));
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
    json.add("lane_loads", plan.lane_loads);
    json.add("rows_per_group", plan.rows_per_group);
    json.add("tile_rows", plan.tile_rows);
    json.add("threads_across", plan.threads_across);
    json.add("vector_columns", plan.vector_columns);
    json.add("tile_batches", plan.tile_batches);
    json.add("tile_columns", plan.tile_columns);
    json.add("tile_starts", plan.tile_starts);
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
