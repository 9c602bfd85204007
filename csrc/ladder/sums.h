// The rungs that add an array of floats, in the order in which to read them. Their kernels are in the .cu files beside this one.
//
// How blocks join, from naive to warp_shuffle: every block leaves one result, and the same kernel adds the results, again and
// again, until one is left. So nothing has to be zeroed, the order of additions is fixed, and a step between two of these
// rungs changes one thing inside a block. two_pass, slots and atomic_per_block then change the join and nothing else.
#pragma once

#include "rung.h"

namespace gpureduce::ladder {

// A rung whose block adds R::of_block(N) elements, and which is launched again on the blocks' results.
template <class R>
struct Repeated : Rung<SumArgs> {
    static Needs needs(const SumArgs& args, const Launch& launch) {
        return {results_between(args.n, R::of_block(launch.parameter)) * int64_t(sizeof(float)), 0};
    }
};

struct Naive : Repeated<Naive> {
    static constexpr const char* name = "naive";
    static constexpr const char* idea =
        "A block adds 256 elements in shared memory: in step s every (2^s)th thread, found by tid % (2 * stride), "
        "adds the sum of its neighbour at distance 2^(s-1).";
    static constexpr const char* cost =
        "One load of 4 bytes and 9 barriers for each element of a block; a launch for each factor of 256.";
    static constexpr const char* limits =
        "The threads that add are spread over all 8 warps, so each warp takes every step for fewer and fewer of its "
        "lanes.";
    static constexpr int64_t of_block(int) { return kBlock; }
    static Error launch(const SumArgs& args, const Launch& launch);
};

struct Sequential : Repeated<Sequential> {
    static constexpr const char* name = "sequential";
    static constexpr const char* idea =
        "The stride halves (128, 64, .., 1), so the threads that add are always the first ones, and lanes side "
        "by side read shared memory side by side.";
    static constexpr const char* cost =
        "As naive: warps without work issue the steps all the same, since the compiler predicates what is so short.";
    static constexpr const char* limits = "A thread loads a single element, and pays 9 barriers for it.";
    static constexpr int64_t of_block(int) { return kBlock; }
    static Error launch(const SumArgs& args, const Launch& launch);
};

struct Strided : Repeated<Strided> {
    static constexpr const char* name = "strided";
    static constexpr const char* idea =
        "The way between the two, to tell their costs apart: the first threads add, as in sequential, but the "
        "elements that naive does, at 2 * stride * tid. No spread lanes, bank conflicts instead.";
    static constexpr const char* cost = "As sequential, and 2- to 8-way bank conflicts in 7 of the 8 steps.";
    static constexpr const char* limits = "As sequential: one element a thread.";
    static constexpr int64_t of_block(int) { return kBlock; }
    static Error launch(const SumArgs& args, const Launch& launch);
};

struct Serial : Repeated<Serial> {
    static constexpr const char* name = "serial";
    static constexpr const char* idea =
        "A thread adds N elements, a block apart so that lanes still read side by side, before the tree of "
        "sequential: the tree is paid once for 256 N elements.";
    static constexpr const char* cost = "N loads of 4 bytes a thread in flight; 9 barriers for 256 N elements.";
    static constexpr const char* limits = "Each load instruction moves only 128 bytes a warp.";
    using Parameters = Values<1, 2, 4, 8, 16>;
    static constexpr int64_t of_block(int parameter) { return int64_t(kBlock) * parameter; }
    static Error launch(const SumArgs& args, const Launch& launch);
};

struct Float4 : Repeated<Float4> {
    static constexpr const char* name = "float4";
    static constexpr const char* idea = "A thread loads 4 elements at once, by one load of 16 bytes.";
    static constexpr const char* cost =
        "A quarter of the load instructions. Loads of 16 bytes need addresses that are multiples of 16: up to 3 "
        "elements before the first such address and up to 3 behind the last whole load go one by one.";
    static constexpr const char* limits = "One load a thread in flight, and 9 barriers for it.";
    static constexpr int64_t of_block(int) { return 4 * kBlock; }
    static Error launch(const SumArgs& args, const Launch& launch);
};

struct Vec4Serial : Repeated<Vec4Serial> {
    static constexpr const char* name = "vec4_serial";
    static constexpr const char* idea = "Both: a thread adds N loads of 16 bytes, a block apart.";
    static constexpr const char* cost = "16 N bytes a thread in flight; 9 barriers for 1024 N elements.";
    static constexpr const char* limits =
        "The tree still goes through shared memory, 9 barriers while few threads work; blocks of small n grow fewer.";
    using Parameters = Values<1, 2, 4, 8>;
    static constexpr int64_t of_block(int parameter) { return int64_t(4 * kBlock) * parameter; }
    static Error launch(const SumArgs& args, const Launch& launch);
};

// What a block of vec4_serial:4 adds, and of every rung below it.
inline constexpr int kLoadsAtOnce = 4;
inline constexpr int64_t kTileElements = 4 * kBlock * kLoadsAtOnce;
// Blocks of two_pass and below at most: several times as many as a GPU holds at once, so that the last ones to end are short.
inline constexpr int64_t kMostBlocks = 8192;
constexpr int64_t walking_blocks(int64_t count) {
    int64_t const tiles = blocks_for(count, kTileElements);
    return tiles < kMostBlocks ? tiles : kMostBlocks;
}

struct WarpShuffle : Repeated<WarpShuffle> {
    static constexpr const char* name = "warp_shuffle";
    static constexpr const char* idea =
        "vec4_serial:4 with another tree: the lanes of a warp hand each other their sums in registers, and shared "
        "memory holds one sum a warp.";
    static constexpr const char* cost = "10 shuffles and 1 barrier instead of 9 barriers.";
    static constexpr const char* limits =
        "A launch for each factor of 4,096, each waiting for the end of the one before.";
    static constexpr int64_t of_block(int) { return kTileElements; }
    static Error launch(const SumArgs& args, const Launch& launch);
};

struct TwoPass : Rung<SumArgs> {
    static constexpr const char* name = "two_pass";
    static constexpr const char* idea =
        "At most 8,192 blocks walk through the array, tile after tile, so that their results are few: one block of a "
        "second launch adds them, whatever n is.";
    static constexpr const char* cost = "Two launches, the second one waiting for the first.";
    static constexpr const char* limits =
        "The wait between the launches, some microseconds, is most of the time of a small sum.";
    static Needs needs(const SumArgs& args, const Launch&) {
        return {walking_blocks(args.n) * int64_t(sizeof(float)), 0};
    }
    static Error launch(const SumArgs& args, const Launch& launch);
};

// A rung whose blocks leave one Accumulator each in a slot, which the block that ends last adds.
template <class Accumulator>
struct Slotted : Rung<SumArgs> {
    static Needs needs(const SumArgs& args, const Launch&) {
        return {walking_blocks(args.n) * int64_t(sizeof(Accumulator)), sizeof(unsigned)};
    }
};

struct Slots : Slotted<float> {
    static constexpr const char* name = "slots";
    static constexpr const char* idea =
        "One launch: every block leaves its result in a slot of its own and draws a ticket, and the block that draws "
        "the last one adds the slots, in the order of their index.";
    static constexpr const char* cost = "A fence and an atomic a block; a counter that is zero before and after.";
    static constexpr const char* limits = "A block waits for its fence and its ticket, one after the other.";
    static Error launch(const SumArgs& args, const Launch& launch);
};

struct AtomicPerBlock : Rung<SumArgs> {
    static constexpr const char* name = "atomic_per_block";
    static constexpr const char* idea =
        "One launch without slots: every block adds its result to the output by atomicAdd.";
    static constexpr const char* cost = "One atomic a block. The output has to be zeroed before, by a memset.";
    static constexpr const char* limits =
        "Blocks end in another order each time, so the last bits of the result change from run to run; and atomics on "
        "floats take subnormal numbers for zeros.";
    static constexpr bool deterministic = false;
    static Error launch(const SumArgs& args, const Launch& launch);
};

struct AtomicPerElement : Rung<SumArgs> {
    static constexpr const char* name = "atomic_per_element";
    static constexpr const char* idea =
        "The trap: every thread adds its element to the output by atomicAdd, and no tree is needed.";
    static constexpr const char* cost = "n atomics on one address, which take turns.";
    static constexpr const char* limits =
        "The time is that of the turns, not of the memory. Every addition rounds to the size of the whole sum: a "
        "float that has reached 2^24 stays there, however many ones are added.";
    static constexpr bool deterministic = false;
    static Error launch(const SumArgs& args, const Launch& launch);
};

struct Kahan : Slotted<double> {  // a float and its error: 8 bytes
    static constexpr const char* name = "kahan";
    static constexpr const char* idea =
        "slots with sums that carry their rounding errors along: Kahan's idea (1965) as Neumaier wrote it (1974), by "
        "the two-sum of Moller (1965) and Knuth, which needs no comparison.";
    static constexpr const char* cost = "8 additions an element instead of 1; 8 bytes a slot.";
    static constexpr const char* limits =
        "The result is good to about 1 unit in the last place, unless terms of the sum cancel.";
    static Error launch(const SumArgs& args, const Launch& launch);
};

struct Double : Slotted<double> {
    static constexpr const char* name = "double";
    static constexpr const char* idea = "slots with sums in fp64, rounded to fp32 once at the end.";
    static constexpr const char* cost = "A conversion and an fp64 addition an element; 8 bytes a slot.";
    static constexpr const char* limits =
        "GPUs of the GeForce family do an fp64 addition in the time of 64 of fp32: there, kahan is the way.";
    static Error launch(const SumArgs& args, const Launch& launch);
};

struct Production : Rung<SumArgs> {
    static constexpr const char* name = "production";
    static constexpr const char* idea =
        "gpureduce::sum itself: the order of additions is a tree by index that no launch can change, and blocks join "
        "by letters in a mailbox, without a fence or a counter.";
    static constexpr const char* cost = "One launch; a letter of 8 bytes a block.";
    static constexpr const char* limits = "The memory: a pure read takes as long.";
    static Needs needs(const SumArgs& args, const Launch& launch);
    static Error launch(const SumArgs& args, const Launch& launch);
};

}  // namespace gpureduce::ladder
