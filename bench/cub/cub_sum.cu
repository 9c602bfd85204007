// CUB's full sum behind a C function, as a rival for the benchmarks; not part of the package.
// Half-precision inputs are accumulated in float and integers in int64, as torch.sum does.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <type_traits>

namespace {

template <class Acc>
struct Add {
    __host__ __device__ Acc operator()(Acc a, Acc b) const { return a + b; }
};

// With temp == nullptr only temp_bytes is written, CUB's own convention.
template <class In, class Out, class Acc, class Count>
cudaError_t reduce(void* temp, size_t& temp_bytes, const void* in, void* out, Count n, cudaStream_t stream) {
    auto const from = static_cast<const In*>(in);
    auto const to = static_cast<Out*>(out);
    if constexpr (std::is_same_v<In, Acc>) return cub::DeviceReduce::Sum(temp, temp_bytes, from, to, n, stream);
    return cub::DeviceReduce::Reduce(temp, temp_bytes, from, to, n, Add<Acc>{}, Acc(0), stream);
}

template <class In, class Out, class Acc = Out>
cudaError_t sum(void* temp, size_t& temp_bytes, const void* in, void* out, int64_t n, cudaStream_t stream) {
    if (n <= INT32_MAX) return reduce<In, Out, Acc>(temp, temp_bytes, in, out, int32_t(n), stream);
    return reduce<In, Out, Acc>(temp, temp_bytes, in, out, n, stream);
}

}  // namespace

// dtype: 0 float32, 1 float64, 2 float16, 3 bfloat16, 4 int8, 5 int32, 6 int64. Returns a cudaError_t, -1 for another
// dtype.
extern "C" int cub_sum(int dtype, void* temp, size_t* temp_bytes, const void* in, void* out, int64_t n, void* stream) {
    auto const s = static_cast<cudaStream_t>(stream);
    switch (dtype) {
        case 0: return sum<float, float>(temp, *temp_bytes, in, out, n, s);
        case 1: return sum<double, double>(temp, *temp_bytes, in, out, n, s);
        case 2: return sum<__half, __half, float>(temp, *temp_bytes, in, out, n, s);
        case 3: return sum<__nv_bfloat16, __nv_bfloat16, float>(temp, *temp_bytes, in, out, n, s);
        case 4: return sum<int8_t, int64_t>(temp, *temp_bytes, in, out, n, s);
        case 5: return sum<int32_t, int64_t>(temp, *temp_bytes, in, out, n, s);
        case 6: return sum<int64_t, int64_t>(temp, *temp_bytes, in, out, n, s);
        default: return -1;
    }
}
