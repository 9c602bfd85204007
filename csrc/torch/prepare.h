// Calls made ready to run, and the cache that gives a repeated call what it got the first time.
#pragma once

#include <memory>
#include <tuple>

#include "reduce.h"

namespace gpureduce::binding {

// What a call comes to, whatever the values of its elements.
struct Prepared {
    at::ScalarType
        load_as;  // unless this is self's type, self has to be converted first and reduced in a call of its own:
    at::ScalarType result;  // the problem and the plan are then left empty
    at::ScalarType second_result;
    at::DimVector result_sizes;
    Problem problem;
    Plan plan;  // only for a call on a device with traits
};

// Checks the arguments, and decides everything that does not take the data; from this thread's cache where the same sizes,
// strides, dims, types and alignment were there before. A call shares what it gets, so it may run other calls meanwhile.
// The CPU has no `traits`.
std::shared_ptr<const Prepared> prepare(const Call& call, const DeviceTraits* traits);

// How many calls of this thread were found in its cache, and how many were not.
std::tuple<int64_t, int64_t> cache_hits_and_misses();

}  // namespace gpureduce::binding
