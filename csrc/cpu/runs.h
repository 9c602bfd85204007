// A row's elements in order of their index, as runs that lie side by side in memory: in the tensor, or gathered.
#pragma once

#include "leaf.h"
#include "strided.h"
#include "transpose.h"
#include "walk.h"

template <class E>

class Runs {
  public:
    // Memory may be read up to `end`.
    Runs(const Problem& p, const E* end)
        : axes(p.reduced),
          end(end),
          from_memory(distinct(p.kept) * distinct(axes) >= kCached),
          in_place((axes.count == 0 || axes.last().stride == 1) && p.misalignment % int(sizeof(E)) == 0),
          short_runs(in_place && axes.count > 1 && axes.last().size <= kShort),
          most_columns(columns_of_tile(axes)),
          pitch(most_columns > 0 ? axes.last().size + kPadding : 0),
          buffer(in_place           ? 0
                 : most_columns > 0 ? most_columns * pitch
                                    : kGathered) {}

    // Goes to element `index` of the row whose element 0 is at `first`.
    void start(const E* first, int64_t index) {
        row = first;
        at = Odometer(axes, index);
        left = columns_left = 0;
    }

    // The next `count` elements: where they lie, or else copied to `together`; and as many behind them, if the run has them and they
    // come from memory: of the next run, the first lines were prefetched.
    GPUREDUCE_HD Elements<E> next(int count, E* together) {
        if (left == 0) refill();
        const E* const x = left < count ? collect(count, together) : take(count);
        return {x, from_memory && in_place && left >= count ? here : x};
    }

  private:
    static constexpr int kLine = 64, kPadding = kLine / int(sizeof(E));
    static constexpr int kShort = 32 / int(sizeof(E));
    static constexpr int64_t kCached =
        (16 << 20) / int(sizeof(E));        // elements that may be in the caches when they are read
    static constexpr int kGathered = 1024;  // elements at a time, where they are read one by one

    static int64_t distinct(const AxisList& axes) {
        int64_t elements = 1;
        for (int d = 0; d < axes.count; ++d)
            if (axes.axis[d].stride != 0) elements *= axes.axis[d].size;
        return elements;
    }

    // Where the last axis jumps and the one before it runs, the columns of memory that are read together: whole lines, and many
    // of them, because each lies in a page of its own. They are short; rows of some leaves are read by transposed_rows.h.
    static int columns_of_tile(const AxisList& axes) {
        constexpr int kMost = 8 * kLine / int(sizeof(E));
        if (axes.count < 2 || axes.last().stride <= 1) return 0;
        Axis const columns = axes.axis[axes.count - 2];
        return columns.stride != 1 ? 0 : columns.size < kMost ? int(columns.size) : kMost;
    }

    const E* take(int64_t count) {
        const E* const taken = here;
        here += count;
        left -= count;
        return taken;
    }

    const E* collect(int count, E* together) {
        for (int done = 0; done < count;) {
            if (left == 0 && short_runs && at.position[axes.count - 1] == 0)
                done += copy_short(count - done, together + done);
            if (done == count) break;
            if (left == 0) refill();
            int const part = int(left < count - done ? left : count - done);
            const E* const source = take(part);
            memcpy(together + done, source, size_t(part) * sizeof(E));
            done += part;
        }
        return together;
    }

    // Copies runs of at most kShort elements, as many as lie at equal distances and fit. Each copy is of kShort
    // elements; what it writes too much, the next one overwrites, and the last ones are left to others.
    int copy_short(int count, E* to) {
        int const d = axes.count - 2, size = int(axes.last().size);
        const E* from = row + at.offset;
        int64_t const stride = axes.axis[d].stride;
        int64_t runs = axes.axis[d].size - at.position[d] - 1;  // the odometer stays on this axis
        if (runs > (count - kShort) / size) runs = count < kShort ? 0 : (count - kShort) / size;
        if (stride > 0 && runs > (end - from - kShort) / stride) runs = (end - from - kShort) / stride;
        if (end - from < kShort || runs <= 0) return 0;
        for (int64_t r = 0; r < runs; ++r) memcpy(to + r * size, from + r * stride, kShort * sizeof(E));
        at.position[d] += runs;
        at.offset += runs * stride;
        return int(runs) * size;
    }

    void refill() {
        if (columns_left > 0) {
            --columns_left;
            here = buffer.data + (tile_columns - columns_left - 1) * pitch;
            left = axes.last().size;
        } else if (in_place) {
            here = row + at.offset;
            left = at.run();
            at.advance(left);
            prefetch(row + at.offset, left * int64_t(sizeof(E)));
        } else if (most_columns > 0 && at.position[axes.count - 1] == 0) {
            read_tile();
        } else {
            gather();
        }
    }

    // The first lines of the next run, which the hardware cannot guess.
    static void prefetch(const E* next, int64_t bytes) {
        constexpr int kMost = 4096;
        for (int64_t byte = 0; byte + kLine <= bytes && byte < kMost; byte += kLine)
            __builtin_prefetch(reinterpret_cast<const char*>(next) + byte);
    }

    // Columns are those of memory, where they are side by side: each is a run of the row.
    void read_tile() {
        Axis const outer = axes.axis[axes.count - 2];
        int64_t const rest = outer.size - at.position[axes.count - 2];
        tile_columns = int(rest < most_columns ? rest : most_columns);
        transpose(row + at.offset, axes.last().stride, axes.last().size, tile_columns, buffer.data, pitch);
        for (int c = 0; c < tile_columns; ++c) at.advance(axes.last().size);
        columns_left = tile_columns;
        refill();
    }

    void gather() {
        int64_t const stride = axes.count ? axes.last().stride : 0;
        left = at.run() < kGathered ? at.run() : kGathered;
        copy_strided(row + at.offset, stride, int(left), buffer.data);
        here = buffer.data;
        at.advance(left);
    }

    const AxisList& axes;
    const E* const end;
    bool const from_memory, in_place, short_runs;
    int const most_columns;  // of a tile
    int64_t const pitch;     // of its columns in the buffer
    Buffer<E> buffer;
    Odometer at{axes, 0};  // behind the elements that were read
    const E* row = nullptr;
    const E* here = nullptr;
    int64_t left = 0;  // elements of the present run
    int tile_columns = 0, columns_left = 0;
};
