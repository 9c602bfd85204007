// A kernel that the checker of the ladder must catch: serial with the index that is often written. A block begins where the one
// before it has only read a part, so elements whose index is a multiple of kItems are read several times, and others never.
// With data that are all ones the sum is nearly right, whatever n is.
#include <cuda_runtime.h>

#include <cstdint>

namespace {

constexpr int kBlock = 256, kItems = 4;

__global__ void faulty_serial_kernel(const float* in, int64_t n, float* out) {
    int64_t const first = (int64_t(blockIdx.x) * kBlock + threadIdx.x) * kItems;
    float sum = 0;
    for (int i = 0; i < kItems; ++i)
        if (first + i * kBlock < n) sum += in[first + i * kBlock];
    atomicAdd(out, sum);
}

}  // namespace

// out = "the sum of" in[0..n); a cudaError_t.
extern "C" int faulty_serial(const float* in, int64_t n, float* out, cudaStream_t stream) {
    if (cudaError_t const error = cudaMemsetAsync(out, 0, sizeof(float), stream); error != cudaSuccess) return error;
    auto const blocks = unsigned((n + kBlock * kItems - 1) / (kBlock * kItems));
    faulty_serial_kernel<<<blocks, kBlock, 0, stream>>>(in, n, out);
    return cudaGetLastError();
}
