// The tree on the CPU, once per instruction set: included inside a namespace of its own by avx2.h and baseline.h, after every
// standard header, so that nothing of it can be merged by the linker with code for another instruction set. The
// including file defines kSimdBytes, the width of a vector, and kConvertsHalf, whether it has halves_to_floats.
#include "columns.h"
#include "dot.h"
#include "integers.h"
#include "list.h"
#include "rows.h"

// For one group of operators. False if the problem's is not among them.
template <class Ops>
bool run(const Task& task) {
    Problem const& p = task.problem;
    OpKey const key{p.op, p.in, p.accumulate};
    return visit_first(
        Ops{}, [&](auto op) { return op.key == key; },
        [&](auto op) {
            using Op = decltype(op);
            if constexpr (Op::additive && Op::order_free)
                Integers<Op>(p, task.in).run(task.results, task.threads, task.parallel_for);
            else if (p.family == Family::row)
                Rows<Op>(p, task.in).run(task.results, task.threads, task.parallel_for);
            else
                Columns<Op>(p, task.in).run(task.results, task.threads, task.parallel_for);
        });
}
