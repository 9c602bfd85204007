// Geometry of norms over lists: how many leaves a block takes.
#include "list.h"
#include "planners.h"

namespace gpureduce {
namespace {

int accumulator_bytes(const ListProblem& p) {
    int bytes = 0;
    visit_list_operator(p, [&](auto op) { bytes = int(sizeof(typename decltype(op)::acc)); });
    return bytes;
}

}  // namespace

ListProblem make_list_problem(const Piece* pieces, int64_t count, DType in, Norm norm) {
    ListProblem p{pieces, count, 0, in, norm};
    int const bytes = dtype_info(in).bytes;
    for (int64_t i = 0; i < count; ++i) p.leaves += leaves_of(Family::row, bytes, pieces[i].n);
    return p;
}

// As plan_block_row: a block an SM for a few MB, then small chunks, so that all SMs read close together in memory.
ListPlan make_list_plan(const ListProblem& p, const DeviceTraits& device, const Geometry& force) {
    ListPlan plan;
    int const entry_bytes = 2 * accumulator_bytes(p);  // every 4 bytes travel with a mark
    bool const brief = p.leaves <= 64 * int64_t(device.sm_count);
    int64_t const blocks = int64_t(device.sm_count) * (brief ? 1 : 2 * kBlocksPerSm);
    int64_t const share = next_power_of_two(ceil_div(p.leaves, blocks));
    plan.chunk_leaves =
        std::min<int64_t>(pick(force.chunk_leaves, std::clamp<int64_t>(share, brief ? 8 : 16, 256)), kRowGroups);
    set_chunks(plan, p.leaves, entry_bytes);
    int64_t const warps = std::min<int64_t>(plan.chunk_leaves, kMaxThreads / kWarp);
    plan.threads = int(std::min<int64_t>(pick(force.threads, warps * kWarp), kMaxThreads));
    if (plan.chunks > 1) plan.mailbox_bytes = plan.chunks * entry_bytes;
    return plan;
}

std::string to_json(const ListProblem& p, const ListPlan& plan) {
    constexpr const char* norms[] = {"1", "2", "inf"};
    auto const field = [](const char* name, int64_t value) {
        return std::string(", \"").append(name).append("\": ") + std::to_string(value);
    };
    std::string text = std::string("{\"op\": \"total_norm\", \"in\": \"") + dtype_info(p.in).name + "\"";
    text.append(", \"ord\": \"").append(norms[int(p.norm)]).append("\"");
    text += field("tensors", p.count) + field("tree_version", kTreeVersion) + field("leaves", p.leaves);
    text += field("threads", plan.threads) + field("chunk_leaves", plan.chunk_leaves) + field("chunks", plan.chunks);
    return text + field("mailbox_bytes", plan.mailbox_bytes) + "}";
}

}  // namespace gpureduce
