// The tree on the CPU, once per instruction set: included inside a namespace of its own by run_*.cpp, after every standard
// header, so that nothing of it can be merged by the linker with code for another instruction set.
//
// The lanes of a leaf are an array and the loops over it are the SIMD; leaves are folded by a binary counter.

inline constexpr int64_t kParallelBytes = 128 * 1024;  // less work than this is done by the calling thread
inline constexpr int kLevels = 48;                     // of a binary counter: 2^48 leaves

template <class T>
struct Buffer {  // not std::vector, whose code another instruction set's copy could replace at link time
    T* data;
    explicit Buffer(int64_t count)
        : data(static_cast<T*>(std::aligned_alloc(64, (size_t(count) * sizeof(T) + 63) / 64 * 64))) {
        if (data == nullptr) throw std::bad_alloc();
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(data); }
    T& operator[](int64_t i) { return data[i]; }
};

// Walks the offsets of consecutive indices of an axis list, last axis fastest.
struct Odometer {
    const AxisList& axes;
    int64_t offset = 0;
    int64_t position[kMaxDims];

    Odometer(const AxisList& list, int64_t index) : axes(list) {
        for (int d = axes.count - 1; d >= 0; --d) {
            position[d] = index % axes.axis[d].size;
            offset += position[d] * axes.axis[d].stride;
            index /= axes.axis[d].size;
        }
    }
    // How many steps along the last axis remain before an outer axis moves.
    int64_t run() const { return axes.count == 0 ? 1 : axes.last().size - position[axes.count - 1]; }
    void advance(int64_t steps) {  // at most run()
        int d = axes.count - 1;
        if (d < 0) return;
        position[d] += steps;
        offset += steps * axes.axis[d].stride;
        while (d > 0 && position[d] == axes.axis[d].size) {
            offset += axes.axis[d - 1].stride - position[d] * axes.axis[d].stride;
            position[d--] = 0;
            ++position[d];
        }
    }
};

template <class E>
E load_element(const E* address) {  // the address may be misaligned
    E value;
    memcpy(&value, address, sizeof(E));
    return value;
}

// ---- pairwise folding ----------------------------------------------------------------------------------------------

// lane[i] = combine(lane[2i], lane[2i+1]) for i < half. In place: an entry is read before it is overwritten.
template <class Op>
void fold_neighbours(typename Op::acc* lane, int half) {
    for (int i = 0; i < half; ++i) lane[i] = Op::combine(lane[2 * i], lane[2 * i + 1]);
}

// The same for plain additions, 16 bytes at a time: compilers do not find these two shuffles.
using Float4 = float __attribute__((vector_size(16), aligned(4), may_alias));
using Double2 = double __attribute__((vector_size(16), aligned(8), may_alias));
inline void add_neighbours(float* lane, int half) {
    for (int i = 0; i + 4 <= half; i += 4) {
        Float4 const a = *reinterpret_cast<Float4*>(lane + 2 * i), b = *reinterpret_cast<Float4*>(lane + 2 * i + 4);
        *reinterpret_cast<Float4*>(lane + i) =
            __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
    }
    for (int i = half & ~3; i < half; ++i) lane[i] = lane[2 * i] + lane[2 * i + 1];
}
inline void add_neighbours(double* lane, int half) {
    for (int i = 0; i + 2 <= half; i += 2) {
        Double2 const a = *reinterpret_cast<Double2*>(lane + 2 * i), b = *reinterpret_cast<Double2*>(lane + 2 * i + 2);
        *reinterpret_cast<Double2*>(lane + i) =
            __builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3);
    }
    for (int i = half & ~1; i < half; ++i) lane[i] = lane[2 * i] + lane[2 * i + 1];
}

template <class Op>
void fold_step(typename Op::acc* lane, int half) {
    using A = typename Op::acc;
    if constexpr (Op::additive && (std::is_same_v<A, float> || std::is_same_v<A, double>))
        add_neighbours(lane, half);
    else
        fold_neighbours<Op>(lane, half);
}

// ---- leaves --------------------------------------------------------------------------------------------------------

template <class Op>
struct RowLeaf {
    using E = typename Op::element;
    using A = typename Op::acc;
    static constexpr int kWidth = kLanes * components<E>;
    static constexpr int kElements = kLoads * kWidth;

    static A full(const E* x) {
        A lane[kWidth];
        for (int i = 0; i < kWidth; ++i) {
            A sum = Op::load(x[i]);
            for (int k = 1; k < kLoads; ++k) sum = Op::combine(sum, Op::load(x[i + k * kWidth]));
            lane[i] = sum;
        }
        for (int half = kWidth / 2; half >= 1; half /= 2) fold_step<Op>(lane, half);
        return lane[0];
    }

    static A partial(const E* x, int count) {
        A lane[kWidth];
        int const width = int(next_power_of_two(count < kWidth ? (count > 0 ? count : 1) : kWidth));
        for (int i = 0; i < width; ++i) lane[i] = i < count ? Op::load(x[i]) : Op::identity();
        for (int i = kWidth; i < count; ++i) lane[i % kWidth] = Op::combine(lane[i % kWidth], Op::load(x[i]));
        for (int half = width / 2; half >= 1; half /= 2) fold_step<Op>(lane, half);
        return lane[0];
    }

    static A of(const E* x, int64_t count) { return count >= kElements ? full(x) : partial(x, int(count)); }
};

// Integers: any order. Narrow types are added in 16-bit lanes, each at most 128 times, so they cannot overflow.
template <class E>
int64_t flat_sum(const E* x, int64_t count) {
    int64_t total = 0;
    if constexpr (sizeof(E) == 1) {
        constexpr int kWidth = 64, kTimes = 128;
        for (; count >= kWidth;) {
            int const times = int(count / kWidth < kTimes ? count / kWidth : kTimes);
            int16_t lane[kWidth] = {};
            for (int t = 0; t < times; ++t)
                for (int i = 0; i < kWidth; ++i) lane[i] = int16_t(lane[i] + Load<int64_t, E>::of(x[t * kWidth + i]));
            int32_t sum = 0;
            for (int i = 0; i < kWidth; ++i) sum += lane[i];
            total += sum;
            x += times * kWidth;
            count -= times * kWidth;
        }
    } else if constexpr (sizeof(E) == 2) {
        constexpr int64_t kBlock = 65536;
        for (; count >= 16;) {
            int64_t const block = count < kBlock ? count : kBlock;
            int32_t sum = 0;
            for (int64_t i = 0; i < block; ++i) sum += x[i];
            total += sum;
            x += block;
            count -= block;
        }
    }
    for (int64_t i = 0; i < count; ++i) total = add(total, Load<int64_t, E>::of(x[i]));
    return total;
}

// ---- row family ----------------------------------------------------------------------------------------------------

template <class Op>
struct Rows {
    using E = typename Op::element;
    using A = typename Op::acc;
    using Leaf = RowLeaf<Op>;

    const Problem& problem;
    const E* in;
    bool flat;  // each row is one aligned run of memory

    Rows(const Problem& p, const void* data) : problem(p), in(static_cast<const E*>(data)) {
        bool const contiguous = p.reduced.count == 0 || (p.reduced.count == 1 && p.reduced.last().stride == 1);
        flat = contiguous && p.misalignment % int(sizeof(E)) == 0;
    }

    void gather(const E* row, int64_t first, int count, E* buffer) const {
        Odometer at(problem.reduced, first);
        int64_t const stride = problem.reduced.count ? problem.reduced.last().stride : 0;
        for (int done = 0; done < count;) {
            int const run = int(at.run() < count - done ? at.run() : count - done);
            const E* const source = row + at.offset;
            for (int i = 0; i < run; ++i) buffer[done + i] = load_element(source + i * stride);
            done += run;
            if (done < count) at.advance(run);
        }
    }

    // The node over leaves [first, last); first is a multiple of a power of two >= last - first.
    A node(const E* row, int64_t first, int64_t last) const {
        int64_t const end = problem.n < last * Leaf::kElements ? problem.n : last * Leaf::kElements;
        int64_t const begin = first * Leaf::kElements;
        if constexpr (Op::order_free)
            if (flat) return flat_sum(row + begin, end - begin);
        if (flat && last - first == 1) return Leaf::of(row + begin, end - begin);
        BinaryCounter<A, Op, kLevels> counter;
        E buffer[Leaf::kElements];
        for (int64_t e = begin; e < end; e += Leaf::kElements) {
            int64_t const count = end - e < Leaf::kElements ? end - e : int64_t(Leaf::kElements);
            if (!flat) gather(row, e, int(count), buffer);
            counter.push(Leaf::of(flat ? row + e : buffer, count));
        }
        return counter.total(Op::identity());
    }

    void finish(void* out, int64_t output, A total) const {
        store(out, output, problem.out, Op::finish(total, problem.n));
    }

    void run(void* out, int threads, const ParallelFor& parallel_for) const {
        int64_t const leaves = leaves_of(Family::row, int(sizeof(E)), problem.n);
        auto const whole_rows = [&](int64_t begin, int64_t end) {
            Odometer at(problem.kept, begin);
            for (int64_t output = begin; output < end; ++output, at.advance(1))
                finish(out, output, node(in + at.offset, 0, leaves));
        };
        int64_t const work = problem.outputs * problem.n * int64_t(sizeof(E));
        if (threads == 1 || work < kParallelBytes) return whole_rows(0, problem.outputs);
        int64_t const row_bytes = problem.n * int64_t(sizeof(E)) + 1;
        if (problem.outputs >= 4 * threads)
            return parallel_for(problem.outputs, ceil_div(kParallelBytes, row_bytes), whole_rows);

        int64_t const chunk = next_power_of_two(ceil_div(leaves, 4 * threads));
        int64_t const chunks = ceil_div(leaves, chunk);
        Buffer<A> partial(chunks * problem.outputs);
        parallel_for(chunks * problem.outputs, 1, [&](int64_t begin, int64_t end) {
            for (int64_t unit = begin; unit < end; ++unit) {
                int64_t const first = unit % chunks * chunk;
                int64_t const last = first + chunk < leaves ? first + chunk : leaves;
                partial[unit] = node(in + Odometer(problem.kept, unit / chunks).offset, first, last);
            }
        });
        for (int64_t output = 0; output < problem.outputs; ++output) {
            BinaryCounter<A, Op, kLevels> counter;
            for (int64_t c = 0; c < chunks; ++c) counter.push(partial[output * chunks + c]);
            finish(out, output, counter.total(Op::identity()));
        }
    }
};

// ---- column family -------------------------------------------------------------------------------------------------

template <class Op>
struct Columns {
    using E = typename Op::element;
    using A = typename Op::acc;
    static constexpr int kWidth = 64;  // columns that one task carries side by side

    struct Block {
        A column[kWidth];
    };
    struct Combine {  // the binary counter's view of a block
        static Block combine(const Block& a, const Block& b) {
            Block sum;
            for (int c = 0; c < kWidth; ++c) sum.column[c] = Op::combine(a.column[c], b.column[c]);
            return sum;
        }
    };

    const Problem& problem;
    const E* in;
    Axis columns;
    AxisList batch;
    int64_t blocks;  // per batch
    int64_t leaves;

    Columns(const Problem& p, const void* data)
        : problem(p), in(static_cast<const E*>(data)), columns(p.kept.last()), batch(p.kept) {
        --batch.count;
        blocks = ceil_div(columns.size, kWidth);
        leaves = leaves_of(Family::column, int(sizeof(E)), p.n);
    }

    static Block identity() {
        Block block;
        for (int c = 0; c < kWidth; ++c) block.column[c] = Op::identity();
        return block;
    }

    int width_of(int64_t block) const {
        int64_t const left = columns.size - block * kWidth;
        return int(left < kWidth ? left : kWidth);
    }

    Block leaf(const E* base, Odometer& at, int rows, int width) const {
        Block sum = identity();
        bool const plain = columns.stride == 1 && width == kWidth && problem.misalignment % int(sizeof(E)) == 0;
        for (int r = 0; r < rows; ++r, at.advance(1)) {
            const E* const row = base + at.offset;
            if (plain)
                for (int c = 0; c < kWidth; ++c) sum.column[c] = Op::combine(sum.column[c], Op::load(row[c]));
            else
                for (int c = 0; c < width; ++c)
                    sum.column[c] = Op::combine(sum.column[c], Op::load(load_element(row + c * columns.stride)));
        }
        return sum;
    }

    Block node(int64_t unit, int64_t first, int64_t last) const {
        int64_t const block = unit % blocks;
        const E* const base = in + Odometer(batch, unit / blocks).offset + block * kWidth * columns.stride;
        int64_t const end = problem.n < last * kColumnLeafRows ? problem.n : last * kColumnLeafRows;
        BinaryCounter<Block, Combine, kLevels> counter;
        Odometer at(problem.reduced, first * kColumnLeafRows);
        for (int64_t r = first * kColumnLeafRows; r < end; r += kColumnLeafRows)
            counter.push(leaf(base, at, int(end - r < kColumnLeafRows ? end - r : kColumnLeafRows), width_of(block)));
        return counter.total(identity());
    }

    void finish(void* out, int64_t unit, const Block& total) const {
        int64_t const block = unit % blocks;
        int64_t output = block * kWidth * columns.out_stride;
        int64_t index = unit / blocks;
        for (int d = batch.count - 1; d >= 0; --d) {
            output += index % batch.axis[d].size * batch.axis[d].out_stride;
            index /= batch.axis[d].size;
        }
        for (int c = 0; c < width_of(block); ++c)
            store(out, output + c * columns.out_stride, problem.out, Op::finish(total.column[c], problem.n));
    }

    void run(void* out, int threads, const ParallelFor& parallel_for) const {
        int64_t const units = batch.elements() * blocks;
        auto const whole_columns = [&](int64_t begin, int64_t end) {
            for (int64_t unit = begin; unit < end; ++unit) finish(out, unit, node(unit, 0, leaves));
        };
        int64_t const work = problem.outputs * problem.n * int64_t(sizeof(E));
        if (threads == 1 || work < kParallelBytes) return whole_columns(0, units);
        if (units >= 4 * threads) return parallel_for(units, 1, whole_columns);

        int64_t const chunk = next_power_of_two(ceil_div(leaves, 4 * threads));
        int64_t const chunks = ceil_div(leaves, chunk);
        Buffer<Block> partial(chunks * units);
        parallel_for(chunks * units, 1, [&](int64_t begin, int64_t end) {
            for (int64_t task = begin; task < end; ++task) {
                int64_t const first = task % chunks * chunk;
                int64_t const last = first + chunk < leaves ? first + chunk : leaves;
                partial[task] = node(task / chunks, first, last);
            }
        });
        for (int64_t unit = 0; unit < units; ++unit) {
            BinaryCounter<Block, Combine, kLevels> counter;
            for (int64_t c = 0; c < chunks; ++c) counter.push(partial[unit * chunks + c]);
            finish(out, unit, counter.total(identity()));
        }
    }
};

bool run(const Problem& p, const void* in, void* out, int threads, const ParallelFor& parallel_for) {
    OpKey const key{p.op, p.in, p.accumulate};
    return visit_first(
        AllOps{}, [&](auto op) { return op.key == key; },
        [&](auto op) {
            using Op = decltype(op);
            if (p.family == Family::row)
                Rows<Op>(p, in).run(out, threads, parallel_for);
            else
                Columns<Op>(p, in).run(out, threads, parallel_for);
        });
}
