// The other ways to spread work over threads, as rungs of the same form: a map, a tile, a pipeline, work that adapts.
#pragma once

#include "../rung.h"

namespace gpureduce::ladder {

struct Map : Rung<MapArgs> {
    static constexpr const char* name = "map";
    static constexpr const char* idea =
        "A thread owns N elements, a block apart: lanes side by side read and write side by side, and a bounds check "
        "ends the last block.";
    static constexpr const char* cost = "12 bytes an element, 8 in and 4 out; no barrier.";
    static constexpr const char* limits = "The memory.";
    using Parameters = Values<1, 2, 4>;
    static Error launch(const MapArgs& args, const Launch& launch);
};

struct Uncoalesced : Rung<MapArgs> {
    static constexpr const char* name = "uncoalesced";
    static constexpr const char* idea =
        "Bad on purpose: a thread owns N elements in a row, as a thread of a CPU would, so lanes side by side are N "
        "apart.";
    static constexpr const char* cost =
        "An instruction of a warp touches up to N times as many 32-byte sectors as it has use for, and leaves it to "
        "the caches to keep the rest of each until its turn comes.";
    static constexpr const char* limits = "The number of sectors, up to 32 an instruction instead of 4.";
    using Parameters = Values<4, 32>;
    static Error launch(const MapArgs& args, const Launch& launch);
};

struct Divergent : Rung<MapArgs> {
    static constexpr const char* name = "divergent";
    static constexpr const char* idea =
        "Bad on purpose: the lanes of a warp take N different ways through the code, one way after the other.";
    static constexpr const char* cost = "The instructions and the waiting of N warps for the work of one.";
    static constexpr const char* limits = "The latency of the memory, N times in turn.";
    using Parameters = Values<1, 2, 8, 32>;
    static Error launch(const MapArgs& args, const Launch& launch);
};

struct Matmul : Rung<TileArgs> {
    static constexpr const char* name = "matmul";
    static constexpr const char* idea =
        "A matrix product with a thread for each output, which reads its row and its column from memory.";
    static constexpr const char* cost = "8 bytes through the caches for each multiplication.";
    static constexpr const char* limits = "The L1 cache: each element is read once for every output that needs it.";
    static Error launch(const TileArgs& args, const Launch& launch);
};

struct Tile : Rung<TileArgs> {
    static constexpr const char* name = "tile";
    static constexpr const char* idea =
        "N x N threads copy a tile of each matrix to shared memory, and every element of a tile serves N outputs.";
    static constexpr const char* cost =
        "8 / N bytes from memory for each multiplication, 8 from shared memory; 2 barriers a tile.";
    static constexpr const char* limits = "Shared memory; and all threads of a block wait for each copy.";
    using Parameters = Values<16, 32>;
    static Error launch(const TileArgs& args, const Launch& launch);
};

struct TileBuffered : Rung<TileArgs> {
    static constexpr const char* name = "tile_buffered";
    static constexpr const char* idea =
        "tile with two buffers: the next tile is on its way, in registers, while the present one is multiplied.";
    static constexpr const char* cost = "Twice the shared memory; 1 barrier a tile.";
    static constexpr const char* limits =
        "Shared memory: 8 bytes for each multiplication. cuBLAS gives a thread 64 outputs or more, and reads 16 times "
        "less.";
    using Parameters = Values<16, 32>;
    static Error launch(const TileArgs& args, const Launch& launch);
};

struct Columns : Rung<ColumnsArgs> {
    static constexpr const char* name = "columns";
    static constexpr const char* idea =
        "Sums of columns with a thread for each column, which walks down all rows; lanes read side by side.";
    static constexpr const char* cost = "4 bytes an element; no barrier.";
    static constexpr const char* limits = "As many threads as columns: few columns leave most of the GPU idle.";
    static Error launch(const ColumnsArgs& args, const Launch& launch);
};

inline constexpr int kTileAcross = 32;     // threads of a column tile side by side
inline constexpr int kRowsOfAThread = 32;  // that a thread of a column tile adds

struct ColumnTile : Rung<ColumnsArgs> {
    static constexpr const char* name = "column_tile";
    static constexpr const char* idea =
        "A tile of 32 x N threads takes 32 columns and 32 N rows: N threads share a column, and fold through shared "
        "memory. Tiles leave a smaller matrix, which the same kernel adds, until one row is left. The production "
        "kernels for columns do this with loads of 16 bytes.";
    static constexpr const char* cost = "4 bytes an element; log2(N) + 1 barriers a tile.";
    static constexpr const char* limits = "128 bytes of a row at a time; a thread has few loads in flight.";
    using Parameters = Values<8, 32>;
    static constexpr int64_t of_block(int parameter) { return int64_t(kRowsOfAThread) * parameter; }
    static Needs needs(const ColumnsArgs& args, const Launch& launch) {
        return {results_between(args.rows, of_block(launch.parameter)) * args.columns * int64_t(sizeof(float)), 0};
    }
    static Error launch(const ColumnsArgs& args, const Launch& launch);
};

inline constexpr int64_t kChunkElements = 1 << 20;  // of the host's memory, copied at once: 4 MiB
inline constexpr int64_t kChunkBlocks = 256;        // that add a chunk

struct Pipeline : Rung<PipelineArgs> {
    static constexpr const char* name = "pipeline";
    static constexpr const char* idea =
        "An array in the host's memory goes through N buffers of 4 MiB, each with a stream of its own: while one "
        "chunk is added, others are copied. With N = 1 the copy waits for the kernel.";
    static constexpr const char* cost = "N buffers; a copy and a launch for each chunk.";
    static constexpr const char* limits =
        "The bus: all copies of one direction take turns. Pageable memory cannot be read by the GPU, so the host "
        "copies it to pinned memory first, and its thread is busy meanwhile.";
    using Parameters = Values<1, 2, 4>;
    static constexpr int64_t slots(int64_t n) { return blocks_for(n, kChunkElements) * kChunkBlocks; }
    static Needs needs(const PipelineArgs& args, const Launch& launch) {
        return {(slots(args.n) + launch.parameter * kChunkElements) * int64_t(sizeof(float)), 0};
    }
    static Error launch(const PipelineArgs& args, const Launch& launch);
};

struct WarpPerRow : Rung<AdaptiveArgs> {
    static constexpr const char* name = "warp_per_row";
    static constexpr const char* idea =
        "Sums of rows of any lengths with one kernel for all: a warp adds a row, however long it is.";
    static constexpr const char* cost = "4 bytes an element and 8 a row; no barrier.";
    static constexpr const char* limits = "The longest row: its one warp works on when all others are done.";
    static Error launch(const AdaptiveArgs& args, const Launch& launch);
};

inline constexpr int64_t kPieceElements = 2048;  // a longer row is split into such pieces

struct Adaptive : Rung<AdaptiveArgs> {
    static constexpr const char* name = "adaptive";
    static constexpr const char* idea =
        "Two kernels: the first adds the short rows, a warp each, and lists the pieces of the long ones on the "
        "device; the second gives each piece a block. The host learns neither and waits for nothing.";
    static constexpr const char* cost = "A second launch; 16 bytes a piece of 2,048 elements, and one atomic each.";
    static constexpr const char* limits =
        "The pieces of a row are added in the order in which they end, which changes from run to run.";
    static constexpr bool deterministic = false;
    struct Piece {
        int64_t row, begin;
    };
    // A row with more elements than a piece has less than twice as many pieces as it fills.
    static constexpr int64_t most_pieces(int64_t n) { return 2 * (n / kPieceElements) + 2; }
    static Needs needs(const AdaptiveArgs& args, const Launch&) {
        return {(1 + most_pieces(args.n)) * int64_t(sizeof(Piece)), 0};  // their number is in front
    }
    static Error launch(const AdaptiveArgs& args, const Launch& launch);
};

}  // namespace gpureduce::ladder
