// matmul, tile, tile_buffered: a matrix product.
//
// Who owns what: a block of T x T threads owns T x T outputs, a thread one of them. Tiles behind an edge are zeros. Moves: matmul
// 8 bytes a multiplication through the caches, the others 8 / T. Barriers: none, 2 a tile, 1 a tile. Alignment: any.
#include "../block.cuh"
#include "strategies.h"

namespace gpureduce::ladder {
namespace {

constexpr int kNaiveTile = 16;

// The output of this thread, of a grid in which blocks lie row after row.
struct Place {
    int64_t row, column;
    bool inside;
    __device__ __forceinline__ Place(int tile, const TileArgs& args) {
        int64_t const across = blocks_for(args.columns, tile);
        row = int64_t(blockIdx.x) / across * tile + threadIdx.y;
        column = int64_t(blockIdx.x) % across * tile + threadIdx.x;
        inside = row < args.rows && column < args.columns;
    }
};

__global__ void matmul_kernel(TileArgs args) {
    Place const place(kNaiveTile, args);
    if (!place.inside) return;
    float sum = 0;
    for (int64_t i = 0; i < args.inner; ++i)
        sum = fmaf(args.a[place.row * args.inner + i], args.b[i * args.columns + place.column], sum);
    args.out[place.row * args.columns + place.column] = sum;
}

// This thread's element of the tile of a, and of b, that begins at `first` of the inner dimension.
__device__ __forceinline__ float element_of_a(const TileArgs& args, const Place& place, int64_t first) {
    int64_t const i = first + threadIdx.x;
    return place.row < args.rows && i < args.inner ? args.a[place.row * args.inner + i] : 0.0f;
}
__device__ __forceinline__ float element_of_b(const TileArgs& args, const Place& place, int64_t first) {
    int64_t const i = first + threadIdx.y;
    return i < args.inner && place.column < args.columns ? args.b[i * args.columns + place.column] : 0.0f;
}

template <int T>
__device__ __forceinline__ float multiply(const float (&a)[T][T], const float (&b)[T][T], float sum) {
#pragma unroll
    for (int i = 0; i < T; ++i) sum = fmaf(a[threadIdx.y][i], b[i][threadIdx.x], sum);
    return sum;
}

template <int T>
__global__ void __launch_bounds__(T* T) tile_kernel(TileArgs args) {
    __shared__ float a[T][T], b[T][T];
    Place const place(T, args);
    float sum = 0;
    for (int64_t first = 0; first < args.inner; first += T) {
        a[threadIdx.y][threadIdx.x] = element_of_a(args, place, first);
        b[threadIdx.y][threadIdx.x] = element_of_b(args, place, first);
        __syncthreads();
        sum = multiply<T>(a, b, sum);
        __syncthreads();  // all have read before the next tile is written
    }
    if (place.inside) args.out[place.row * args.columns + place.column] = sum;
}

// One barrier: a tile is written to one buffer while slower threads may still read the other.
template <int T>
__global__ void __launch_bounds__(T* T) tile_buffered_kernel(TileArgs args) {
    __shared__ float a[2][T][T], b[2][T][T];
    Place const place(T, args);
    float sum = 0, next_a = element_of_a(args, place, 0), next_b = element_of_b(args, place, 0);
    int buffer = 0;
    for (int64_t first = 0; first < args.inner; first += T, buffer ^= 1) {
        a[buffer][threadIdx.y][threadIdx.x] = next_a;
        b[buffer][threadIdx.y][threadIdx.x] = next_b;
        __syncthreads();
        next_a = element_of_a(args, place, first + T);
        next_b = element_of_b(args, place, first + T);
        sum = multiply<T>(a[buffer], b[buffer], sum);
    }
    if (place.inside) args.out[place.row * args.columns + place.column] = sum;
}

unsigned blocks_of(const TileArgs& args, int tile) {
    return unsigned(blocks_for(args.rows, tile) * blocks_for(args.columns, tile));
}

}  // namespace

Error Matmul::launch(const TileArgs& args, const Launch& launch) {
    matmul_kernel<<<blocks_of(args, kNaiveTile), dim3(kNaiveTile, kNaiveTile), 0, launch.stream>>>(args);
    return cudaGetLastError();
}

Error Tile::launch(const TileArgs& args, const Launch& launch) {
    return with_parameter(Parameters{}, launch.parameter, [&](auto value) -> Error {
        constexpr int N = decltype(value)::value;
        tile_kernel<N><<<blocks_of(args, N), dim3(N, N), 0, launch.stream>>>(args);
        return cudaGetLastError();
    });
}

Error TileBuffered::launch(const TileArgs& args, const Launch& launch) {
    return with_parameter(Parameters{}, launch.parameter, [&](auto value) -> Error {
        constexpr int N = decltype(value)::value;
        tile_buffered_kernel<N><<<blocks_of(args, N), dim3(N, N), 0, launch.stream>>>(args);
        return cudaGetLastError();
    });
}

}  // namespace gpureduce::ladder
