// Blocks of memory transposed in registers.
#pragma once

template <int Bytes>

struct LineOf;  // 16 bytes as words of so many bytes
template <> struct LineOf<1> {
    using type = uint8_t __attribute__((vector_size(16)));
};
template <> struct LineOf<2> {
    using type = uint16_t __attribute__((vector_size(16)));
};
template <> struct LineOf<4> {
    using type = uint32_t __attribute__((vector_size(16)));
};
template <> struct LineOf<8> {
    using type = uint64_t __attribute__((vector_size(16)));
};

// 16 bytes of each of as many lines as they hold words: words of lines i and i + half are zipped, log2(lines) times.
template <int Bytes>
struct Square {
    static constexpr int kSide = 16 / Bytes;
    using Line = typename LineOf<Bytes>::type;
    Line line[kSide];

    static GPUREDUCE_HD Line zip_low(Line a, Line b) {
        if constexpr (kSide == 16)
            return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        else if constexpr (kSide == 8)
            return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        else if constexpr (kSide == 4)
            return __builtin_shufflevector(a, b, 0, 4, 1, 5);
        else
            return __builtin_shufflevector(a, b, 0, 2);
    }
    static GPUREDUCE_HD Line zip_high(Line a, Line b) {
        if constexpr (kSide == 16)
            return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        else if constexpr (kSide == 8)
            return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
        else if constexpr (kSide == 4)
            return __builtin_shufflevector(a, b, 2, 6, 3, 7);
        else
            return __builtin_shufflevector(a, b, 1, 3);
    }
    GPUREDUCE_HD void transpose() {
        for (int step = 1; step < kSide; step *= 2) {
            Line zipped[kSide];
            for (int i = 0; i < kSide / 2; ++i) {
                zipped[2 * i] = zip_low(line[i], line[i + kSide / 2]);
                zipped[2 * i + 1] = zip_high(line[i], line[i + kSide / 2]);
            }
            for (int i = 0; i < kSide; ++i) line[i] = zipped[i];
        }
    }
};

// to[c * to_pitch + r] = from[r * from_pitch + c] for r < rows, c < columns.
template <class E>
__attribute__((noinline)) void transpose(const E* from, int64_t from_pitch, int64_t rows, int columns, E* to,
                                         int64_t to_pitch) {
    int64_t whole_rows = 0;
    int whole_columns = 0;
    if constexpr (sizeof(E) <= 8) {
        using Block = Square<int(sizeof(E))>;
        constexpr int kSide = Block::kSide;
        whole_rows = rows / kSide * kSide;
        whole_columns = columns / kSide * kSide;
        constexpr int64_t kTall = 4 * kSide;  // whole lines are written, because each may lie in a page of its own
        for (int64_t top = 0; top < whole_rows; top += kTall)
            for (int c = 0; c < whole_columns; c += kSide)
                for (int64_t r = top; r < whole_rows && r < top + kTall; r += kSide) {
                    Block block;
                    for (int i = 0; i < kSide; ++i) memcpy(&block.line[i], from + (r + i) * from_pitch + c, 16);
                    block.transpose();
                    for (int i = 0; i < kSide; ++i) memcpy(to + (c + i) * to_pitch + r, &block.line[i], 16);
                }
    }
    for (int64_t r = 0; r < rows; ++r)
        for (int c = r < whole_rows ? whole_columns : 0; c < columns; ++c)
            memcpy(to + c * to_pitch + r, from + r * from_pitch + c, sizeof(E));
}
