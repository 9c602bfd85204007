// The ladder's kernels behind a C function, for tests/test_ladder_on_cpu.py. Workspace and mailbox lie between guards.
#include "ladder/ladder.h"

#include <cuda_runtime.h>

using namespace gpureduce::ladder;

namespace gpureduce::ladder {
Needs Production::needs(const SumArgs&, const Launch&) { return {}; }
Error Production::launch(const SumArgs&, const Launch&) { return cudaErrorInvalidValue; }  // the engine is not emulated
}  // namespace gpureduce::ladder

namespace {

constexpr size_t kGuardBytes = 256;
constexpr char kGuard = 0x5a;
constexpr int kOverrun = 1000, kMailboxLeft = 1001, kUnknown = 1002;

struct Memory {
    std::vector<char> bytes;
    size_t size;
    Memory(int64_t needed, char fill) : bytes(size_t(needed) + 3 * kGuardBytes, kGuard), size(size_t(needed)) {
        std::memset(begin(), fill, size);
    }
    char* begin() {
        return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(bytes.data()) + 2 * kGuardBytes - 1) / kGuardBytes *
                                       kGuardBytes);
    }
    bool is_guarded() {
        return std::all_of(bytes.data(), begin(), [](char c) { return c == kGuard; }) &&
               std::all_of(begin() + size, bytes.data() + bytes.size(), [](char c) { return c == kGuard; });
    }
};

struct Call {
    const float* self;
    const void* other;
    const int64_t* sizes;
    float* out;
    const float* second() const { return static_cast<const float*>(other); }
};

SumArgs arguments(SumArgs, const Call& c) { return {c.self, c.sizes[0], c.out}; }
PipelineArgs arguments(PipelineArgs, const Call& c) { return {c.self, c.sizes[0], c.out}; }
MapArgs arguments(MapArgs, const Call& c) { return {c.self, c.second(), c.out, c.sizes[0]}; }
TileArgs arguments(TileArgs, const Call& c) { return {c.self, c.second(), c.out, c.sizes[0], c.sizes[1], c.sizes[2]}; }
ColumnsArgs arguments(ColumnsArgs, const Call& c) { return {c.self, c.out, c.sizes[0], c.sizes[1]}; }
AdaptiveArgs arguments(AdaptiveArgs, const Call& c) {
    return {c.self, static_cast<const int64_t*>(c.other), c.out, c.sizes[0], c.sizes[1]};
}

template <class R>
Error run(const Call& call, int parameter) {
    Stream const streams[8] = {};
    auto const args = arguments(typename R::Args{}, call);
    Launch launch{parameter, 2, nullptr, streams, nullptr, nullptr};
    Needs const needs = R::needs(args, launch);
    Memory workspace(needs.workspace_bytes, 0x7f), mailbox(needs.mailbox_bytes, 0);
    launch.workspace = workspace.begin();
    launch.mailbox = mailbox.begin();
    Error const error = R::launch(args, launch);
    if (!workspace.is_guarded() || !mailbox.is_guarded()) return kOverrun;
    bool const left = std::any_of(mailbox.begin(), mailbox.begin() + mailbox.size, [](char c) { return c != 0; });
    return error == cudaSuccess && left ? kMailboxLeft : error;
}

}  // namespace

// sizes: n; n; rows, columns, inner; rows, columns; n, rows. A cudaError_t, or one of the codes above.
extern "C" int run_rung(const char* rung, const float* self, const void* other, const int64_t* sizes, float* out) {
    Error result = kUnknown;
    visit_rung(rung, [&](auto chosen, int parameter) {
        result = run<decltype(chosen)>({self, other, sizes, out}, parameter);
    });
    return result;
}
