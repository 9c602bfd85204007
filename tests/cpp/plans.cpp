// Plans of transposed rows for devices with little and with much shared memory: how many there are, and the most that a block takes beside
// what its kernel has for folding (a value a lane).
#include <algorithm>
#include <cstdio>

#include "../../csrc/core/plan.h"

using namespace gpureduce;

int main() {
    struct Kind {
        OpKey key;
        int accumulator_bytes;
    };
    constexpr Kind kinds[] = {
        {Sum<float, float>::key, 4},
        {Sum<Half, float>::key, 4},
        {Sum<double, double>::key, 8},
        {Sum<float, Compensated<float>>::key, 8},
        {Sum<Complex<double>, Complex<double>>::key, 16},
        {Squares<double, Scaled>::key, int(sizeof(Scaled))},
    };
    std::printf("[");
    for (int limit : {64 << 10, 99 << 10, 163 << 10, 227 << 10}) {
        int plans = 0, others = 0, most = 0;
        for (const Kind& kind : kinds)
            for (int64_t rows :
                 {32, 49, 128, 196, 500, 784, 1024, 1500, 2048, 2560, 3136, 3401, 4096, 7000, 12544, 100000})
                for (int64_t columns : {32, 48, 100, 256, 1000, 5000})
                    for (int across : {0, 16, 512}) {
                        if (rows * columns < 1 << 20) continue;
                        int64_t const sizes[] = {columns, rows}, strides[] = {1, columns};
                        bool const reduce[] = {true, true};
                        Problem const p = make_problem(sizes, strides, reduce, 2, kind.key, kind.key.in, 0);
                        DeviceTraits device;
                        device.shared_bytes = limit;
                        Geometry force;
                        force.path = 1 + int(Path::transposed_row);
                        force.threads_across = across;
                        Plan const plan = make_plan(p, device, force);
                        (plan.path == Path::transposed_row ? plans : others) += 1;
                        if (plan.path == Path::transposed_row)
                            most = std::max(most, plan.shared_bytes + kLanes * kind.accumulator_bytes);
                    }
        std::printf("%s{\"limit\": %d, \"plans\": %d, \"others\": %d, \"most\": %d}", limit > 64 << 10 ? ", " : "",
                    limit, plans, others, most);
    }
    std::printf("]\n");
}
