// columns, column_tile: the sums of the columns of a row-major matrix.
//
// Who owns what: columns: a thread owns a column. column_tile: a block of 32 x N threads owns 32 columns of 32 N rows, a thread
// 32 rows of one column, N apart. Valid: in row 0 of the block's threads. Moves: 4 bytes an element in. Barriers: none; log2(N) + 1.
// Alignment: any.
#include "../block.cuh"
#include "strategies.h"

namespace gpureduce::ladder {
namespace {

__global__ void columns_kernel(const float* __restrict__ in, int64_t rows, int64_t columns, float* __restrict__ out) {
    int64_t const column = int64_t(blockIdx.x) * kBlock + threadIdx.x;
    if (column >= columns) return;
    float sum = 0;
#pragma unroll 8
    for (int64_t row = 0; row < rows; ++row) sum += in[row * columns + column];
    out[column] = sum;
}

// out has a row for every tile down.
template <int N>
__global__ void __launch_bounds__(kTileAcross* N)
    column_tile_kernel(const float* __restrict__ in, int64_t rows, int64_t columns, float* __restrict__ out) {
    __shared__ float sum[N][kTileAcross];
    int const x = int(threadIdx.x), y = int(threadIdx.y);
    int64_t const across = blocks_for(columns, kTileAcross), down = int64_t(blockIdx.x) / across;
    int64_t const column = int64_t(blockIdx.x) % across * kTileAcross + x;
    int64_t const first = down * (N * kRowsOfAThread) + y;
    float mine = 0;
#pragma unroll 8
    for (int i = 0; i < kRowsOfAThread; ++i)
        if (first + i * N < rows && column < columns) mine += in[(first + i * N) * columns + column];
    sum[y][x] = mine;
    __syncthreads();
#pragma unroll
    for (int stride = N / 2; stride > 0; stride /= 2) {
        if (y < stride) sum[y][x] += sum[y + stride][x];
        __syncthreads();
    }
    if (y == 0 && column < columns) out[down * columns + column] = sum[0][x];
}

}  // namespace

Error Columns::launch(const ColumnsArgs& args, const Launch& launch) {
    auto const blocks = unsigned(blocks_for(args.columns, kBlock));
    columns_kernel<<<blocks, kBlock, 0, launch.stream>>>(args.in, args.rows, args.columns, args.out);
    return cudaGetLastError();
}

Error ColumnTile::launch(const ColumnsArgs& args, const Launch& launch) {
    return with_parameter(Parameters{}, launch.parameter, [&](auto value) -> Error {
        constexpr int N = decltype(value)::value;
        const float* in = args.in;
        auto* results = static_cast<float*>(launch.workspace);
        for (int64_t rows = args.rows;;) {
            int64_t const down = blocks_for(rows, of_block(N));
            auto const blocks = unsigned(down * blocks_for(args.columns, kTileAcross));
            column_tile_kernel<N><<<blocks, dim3(kTileAcross, N), 0, launch.stream>>>(in, rows, args.columns,
                                                                                      down == 1 ? args.out : results);
            if (cudaError_t const error = cudaGetLastError(); error != cudaSuccess || down == 1) return error;
            in = results;
            results += down * args.columns;
            rows = down;
        }
    });
}

}  // namespace gpureduce::ladder
