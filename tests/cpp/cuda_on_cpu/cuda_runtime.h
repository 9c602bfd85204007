// As much of CUDA as the ladder's kernels use, on one thread of a CPU, so that they can be tested where there is no GPU.
//
// A block runs at a time; its threads are contexts that take turns and give up theirs at barriers and shuffles. Between two
// barriers every thread runs as far as it can, in rising order of its index or, every other turn, in falling order: so a result
// that depends on which of two threads comes first is likely to be wrong. What only a GPU has is not here: blocks at once,
// memory that is seen late, speed. Launches are translated by tests/cuda_on_cpu.py.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)

struct CUstream_st;
struct CUevent_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1 };
enum { cudaEventDisableTiming = 2 };

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline dim3 threadIdx, blockIdx, blockDim, gridDim;
using std::max;
using std::min;

namespace emulated {

constexpr int kWarp = 32;
constexpr size_t kStackBytes = 32 << 10;

enum class State { ready, at_barrier, at_shuffle, done };

struct Thread {
    State state;
    dim3 index;
    bool started;
    jmp_buf place;         // where it goes on
    char handed_over[16];  // what other lanes read in a shuffle
};

inline std::vector<Thread> threads;
inline std::vector<char> stacks;
inline std::function<void()> kernel;
inline jmp_buf scheduler;
inline size_t current;

[[noreturn]] inline void fail(const char* what) {
    std::fprintf(stderr, "cuda_on_cpu: %s\n", what);
    std::abort();
}

// Gives up the turn.
inline void wait(State state) {
    Thread& self = threads[current];
    self.state = state;
    if (_setjmp(self.place) == 0) _longjmp(scheduler, 1);
}

inline void run_kernel() {
    kernel();
    wait(State::done);
    fail("a thread went on after its end");
}

// Runs a thread until it gives up its turn. Contexts only serve to start threads on stacks of their own: to switch by them takes
// a call of the system each time.
inline void give_turn(size_t i) {
    Thread& thread = threads[current = i];
    threadIdx = thread.index;
    thread.state = State::ready;
    if (_setjmp(scheduler) != 0) return;
    if (thread.started) _longjmp(thread.place, 1);
    thread.started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks.data() + i * kStackBytes;
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, run_kernel, 0);
    setcontext(&context);
}

// Lets those threads of a range go on that wait for one another, if all of them do; threads that have ended wait for nobody.
inline bool release(State state, size_t first, size_t end, bool ended_count) {
    bool any = false;
    for (size_t i = first; i < end; ++i) {
        if (threads[i].state != state && !(ended_count && threads[i].state == State::done)) return false;
        any = any || threads[i].state == state;
    }
    for (size_t i = first; i < end; ++i)
        if (threads[i].state == state) threads[i].state = State::ready;
    return any;
}

inline void run_block() {
    size_t const count = size_t(blockDim.x) * blockDim.y * blockDim.z;
    threads.resize(count);
    stacks.resize(std::max(stacks.size(), count * kStackBytes));
    for (size_t i = 0; i < count; ++i) {
        threads[i].state = State::ready;
        threads[i].started = false;
        threads[i].index = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y);
    }
    for (bool rising = true;; rising = !rising) {
        bool all_done = true, released = false;
        for (size_t j = 0; j < count; ++j) {
            size_t const i = rising ? j : count - 1 - j;
            if (threads[i].state == State::ready) give_turn(i);
        }
        for (Thread const& thread : threads) all_done = all_done && thread.state == State::done;
        if (all_done) return;
        for (size_t first = 0; first < count; first += kWarp)
            released |= release(State::at_shuffle, first, std::min(first + kWarp, count), false);
        if (!released && !release(State::at_barrier, 0, count, true)) fail("threads wait for each other for ever");
    }
}

// kernel<<<grid, block, shared, stream>>>(arguments) is Launch(grid, block, shared, stream)(kernel, arguments) here.
class Launch {
  public:
    Launch(dim3 grid, dim3 block, size_t, cudaStream_t) : grid_(grid), block_(block) {
        if (grid.x == 0 || grid.y != 1 || block.x * block.y * block.z > 1024) fail("no such grid");
    }
    template <class... Parameters, class... Arguments>
    void operator()(void (*function)(Parameters...), Arguments... arguments) const {
        kernel = [=] { function(arguments...); };
        blockDim = block_;
        gridDim = grid_;
        for (unsigned x = 0; x < grid_.x; ++x) {
            blockIdx = dim3(x);
            run_block();
        }
    }

  private:
    dim3 grid_, block_;
};

template <class T>
T of_lane(T value, int lane) {
    size_t const self = current;
    std::memcpy(threads[self].handed_over, &value, sizeof(T));
    wait(State::at_shuffle);
    T result;
    std::memcpy(&result, threads[self / kWarp * kWarp + lane].handed_over, sizeof(T));
    wait(State::at_shuffle);
    return result;
}

}  // namespace emulated

inline void __syncthreads() { emulated::wait(emulated::State::at_barrier); }
inline void __threadfence() {}
template <class T>
T __shfl_down_sync(unsigned, T value, int distance) {
    int const lane = int(emulated::current % emulated::kWarp), from = lane + distance;
    return emulated::of_lane(value, from < emulated::kWarp ? from : lane);
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
    return emulated::of_lane(value, lane);
}
template <class T, class U>
T atomicAdd(T* target, U value) {
    T const before = *target;
    *target += value;
    return before;
}

inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t) {
    std::memset(target, value, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind, cudaStream_t) {
    std::memcpy(target, source, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned) { return cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
