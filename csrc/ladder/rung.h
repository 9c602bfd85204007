// What a rung of the ladder is. Plain C++: a build without CUDA reads the descriptions, and leaves the launchers out.
//
//   name, idea, cost, limits   its row of the table; the idea is the one thing that it does differently from the rung above it
//   Parameters                 the values of N in "name:N"; most rungs have none
//   Args                       what it works on, which is its kind
//   deterministic              whether the same input at the same alignment has the same bits in every run, on every GPU
//   needs(args, launch)        how much memory it wants beside its output
//   launch(args, launch)       enqueues it; never waits, never allocates. Needs the device to be current.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace gpureduce::ladder {

using Error = int;            // a cudaError_t
using Stream = CUstream_st*;  // a cudaStream_t

inline constexpr int kBlock = 256;  // threads of a block, of every rung but those that say otherwise

// How a rung is run, whatever it works on.
struct Launch {
    int parameter;  // N, 0 where the rung has none
    int sm_count;
    Stream stream;
    const Stream* side_streams;  // N of them, for rungs of kind "pipeline"
    void* workspace;             // needs().workspace_bytes of any content, aligned to 16 bytes
    void* mailbox;               // needs().mailbox_bytes of zeros, which are zeros again when the rung is done
};
struct Needs {
    int64_t workspace_bytes = 0, mailbox_bytes = 0;
};

// out = the sum of in[0..n), n > 0; any alignment that floats may have.
struct SumArgs {
    static constexpr const char* kind = "sum";
    const float* in;
    int64_t n;
    float* out;
};
// out[i] = a[i] + b[i].
struct MapArgs {
    static constexpr const char* kind = "map";
    const float *a, *b;
    float* out;
    int64_t n;
};
// out = a b, of row-major matrices: a is rows x inner, b inner x columns.
struct TileArgs {
    static constexpr const char* kind = "tile";
    const float *a, *b;
    float* out;
    int64_t rows, columns, inner;
};
// out[j] = the sum of column j of a row-major matrix.
struct ColumnsArgs {
    static constexpr const char* kind = "columns";
    const float* in;
    float* out;
    int64_t rows, columns;
};
// out = the sum of in[0..n), which lies in the memory of the host.
struct PipelineArgs {
    static constexpr const char* kind = "pipeline";
    const float* in;
    int64_t n;
    float* out;
};
// out[r] = the sum of values[offsets[r]..offsets[r + 1]); offsets outside of 0..n are cut to that range.
struct AdaptiveArgs {
    static constexpr const char* kind = "adaptive";
    const float* values;
    const int64_t* offsets;  // rows + 1
    float* out;
    int64_t n, rows;
};

template <int... N>
struct Values {};

// What most rungs have in common.
template <class A>
struct Rung {
    using Args = A;
    using Parameters = Values<>;
    static constexpr bool deterministic = true;
    static Needs needs(const A&, const Launch&) { return {}; }
};

constexpr int64_t blocks_for(int64_t count, int64_t of_block) { return count / of_block + (count % of_block != 0); }

// Results of all passes but the last, where a block leaves one of `of_block` elements and passes go on until one is left.
constexpr int64_t results_between(int64_t count, int64_t of_block) {
    int64_t results = 0;
    for (count = blocks_for(count, of_block); count > 1; count = blocks_for(count, of_block)) results += count;
    return results;
}

}  // namespace gpureduce::ladder
