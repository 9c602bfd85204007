// warp_per_row, adaptive: the sums of rows of any lengths.
//
// Who owns what: a warp owns a row; in adaptive a row of more than 2,048 elements is split into pieces, of which a block owns one.
// Valid: in lane 0, in thread 0. Moves: 4 bytes an element, 8 an offset; 16 a piece out and in. Barriers: 2 a piece. Alignment: any.
#include "../block.cuh"
#include "strategies.h"

namespace gpureduce::ladder {
namespace {

constexpr int kRowsOfABlock = kBlock / kWarp;
constexpr int kBlocksPerSm = 8;  // of the second kernel

struct Row {
    int64_t begin, end;
    // Offsets that lead out of the values, or back, are cut, so that nothing else is read.
    __device__ __forceinline__ Row(const AdaptiveArgs& args, int64_t row) {
        begin = min(max(args.offsets[row], int64_t(0)), args.n);
        end = min(max(args.offsets[row + 1], begin), args.n);
    }
};

// Every `step`-th element from `first` on, 4 loads in flight.
__device__ __forceinline__ float sum_every(const float* values, int64_t first, int64_t end, int step) {
    float sum = 0;
#pragma unroll 4
    for (int64_t i = first; i < end; i += step) sum += values[i];
    return sum;
}

__device__ __forceinline__ void add_row(const AdaptiveArgs& args, int64_t row, const Row& own, int lane) {
    float const sum = warp_sum(sum_every(args.values, own.begin + lane, own.end, kWarp));
    if (lane == 0) args.out[row] = sum;
}

__global__ void __launch_bounds__(kBlock) warp_per_row_kernel(AdaptiveArgs args) {
    int64_t const row = int64_t(blockIdx.x) * kRowsOfABlock + threadIdx.x / kWarp;
    if (row < args.rows) add_row(args, row, Row(args, row), int(threadIdx.x) % kWarp);
}

// Lists the pieces of a long row; false if they do not fit, which takes rows that overlap. The room is then marked as empty.
__device__ __forceinline__ bool list_row(int64_t row, const Row& own, unsigned long long* count,
                                         Adaptive::Piece* pieces, int64_t capacity, int lane) {
    int64_t const mine = blocks_for(own.end - own.begin, kPieceElements);
    unsigned long long place = 0;
    if (lane == 0) place = atomicAdd(count, static_cast<unsigned long long>(mine));
    int64_t const first = int64_t(__shfl_sync(0xffffffffu, place, 0));
    bool const fits = first + mine <= capacity;
    for (int64_t i = lane; i < mine && first + i < capacity; i += kWarp)
        pieces[first + i] = {fits ? row : int64_t(-1), own.begin + i * kPieceElements};
    return fits;
}

__global__ void __launch_bounds__(kBlock)
    short_rows_kernel(AdaptiveArgs args, unsigned long long* count, Adaptive::Piece* pieces, int64_t capacity) {
    int64_t const row = int64_t(blockIdx.x) * kRowsOfABlock + threadIdx.x / kWarp;
    int const lane = int(threadIdx.x) % kWarp;
    if (row >= args.rows) return;
    Row const own(args, row);
    if (own.end - own.begin > kPieceElements && list_row(row, own, count, pieces, capacity, lane)) {
        if (lane == 0) args.out[row] = 0;  // its pieces will be added to it
        return;
    }
    add_row(args, row, own, lane);
}

__global__ void __launch_bounds__(kBlock)
    pieces_kernel(AdaptiveArgs args, const unsigned long long* count, const Adaptive::Piece* pieces, int64_t capacity) {
    int64_t const listed = min(int64_t(*count), capacity);
    for (int64_t i = blockIdx.x; i < listed; i += gridDim.x) {
        Adaptive::Piece const piece = pieces[i];
        if (piece.row < 0) continue;  // the same for all threads of the block
        int64_t const end = min(piece.begin + kPieceElements, Row(args, piece.row).end);
        float const sum = shuffle_sum(sum_every(args.values, piece.begin + threadIdx.x, end, kBlock));
        if (threadIdx.x == 0) atomicAdd(args.out + piece.row, sum);
        __syncthreads();  // before the next piece's sums go to shared memory
    }
}

}  // namespace

Error WarpPerRow::launch(const AdaptiveArgs& args, const Launch& launch) {
    auto const blocks = unsigned(blocks_for(args.rows, kRowsOfABlock));
    warp_per_row_kernel<<<blocks, kBlock, 0, launch.stream>>>(args);
    return cudaGetLastError();
}

Error Adaptive::launch(const AdaptiveArgs& args, const Launch& launch) {
    auto* const count = static_cast<unsigned long long*>(launch.workspace);
    auto* const pieces = static_cast<Piece*>(launch.workspace) + 1;
    int64_t const capacity = most_pieces(args.n);
    if (cudaError_t const error = cudaMemsetAsync(count, 0, sizeof(*count), launch.stream); error != cudaSuccess)
        return error;
    auto const blocks = unsigned(blocks_for(args.rows, kRowsOfABlock));
    short_rows_kernel<<<blocks, kBlock, 0, launch.stream>>>(args, count, pieces, capacity);
    if (args.n > kPieceElements)
        pieces_kernel<<<launch.sm_count * kBlocksPerSm, kBlock, 0, launch.stream>>>(args, count, pieces, capacity);
    return cudaGetLastError();
}

}  // namespace gpureduce::ladder
