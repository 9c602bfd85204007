// The tree on the CPU, once per instruction set: included inside a namespace of its own by run_*.cpp, after every
// standard header, so that nothing of it can be merged by the linker with code for another instruction set. The
// including file defines kSimdBytes, the width of a vector, and kConvertsHalf, whether it has halves_to_floats.
#include "columns.h"
#include "integers.h"
#include "rows.h"

bool run(const Problem& p, const void* in, void* out, int threads, const ParallelFor& parallel_for) {
    OpKey const key{p.op, p.in, p.accumulate};
    return visit_first(
        AllOps{}, [&](auto op) { return op.key == key; },
        [&](auto op) {
            using Op = decltype(op);
            if constexpr (Op::order_free)
                Integers<Op>(p, in).run(out, threads, parallel_for);
            else if (p.family == Family::row)
                Rows<Op>(p, in).run(out, threads, parallel_for);
            else
                Columns<Op>(p, in).run(out, threads, parallel_for);
        });
}
