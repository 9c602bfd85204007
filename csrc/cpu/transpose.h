// Blocks of memory transposed in registers.
#pragma once

template <int Bytes>

struct WordOf;
template <> struct WordOf<1> {
    using type = uint8_t;
};
template <> struct WordOf<2> {
    using type = uint16_t;
};
template <> struct WordOf<4> {
    using type = uint32_t;
};
template <> struct WordOf<8> {
    using type = uint64_t;
};
template <> struct WordOf<16> {
    using type = unsigned __int128;
};
template <int Bytes, int VectorBytes>
struct LineOf {  // a vector as words of so many bytes
    using Word = typename WordOf<Bytes>::type;
    using type __attribute__((vector_size(VectorBytes))) = Word;
};

// One vector of each of as many lines as 16 bytes hold words: squares of words side by side, one in each 16 bytes. Words of lines
// i and i + half are zipped, log2(lines) times, within the 16 bytes, which is one instruction. Squares below each other, whose
// columns could be written as whole vectors, would take more lines of memory at a time than a cache set has ways.
template <int Bytes, int VectorBytes>
struct Squares {
    static constexpr int kSide = 16 / Bytes, kSquares = VectorBytes / 16, kColumns = kSquares * kSide;
    using Line = typename LineOf<Bytes, VectorBytes>::type;
    Line line[kSide];

    static GPUREDUCE_HD Line zip_low(Line a, Line b) {
        if constexpr (kSquares == 2 && kSide == 16)
            return __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 16, 48, 17, 49,
                                           18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55);
        else if constexpr (kSquares == 2 && kSide == 8)
            return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27);
        else if constexpr (kSquares == 2 && kSide == 4)
            return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
        else if constexpr (kSquares == 2)
            return __builtin_shufflevector(a, b, 0, 4, 2, 6);
        else if constexpr (kSide == 16)
            return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        else if constexpr (kSide == 8)
            return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
        else if constexpr (kSide == 4)
            return __builtin_shufflevector(a, b, 0, 4, 1, 5);
        else
            return __builtin_shufflevector(a, b, 0, 2);
    }
    static GPUREDUCE_HD Line zip_high(Line a, Line b) {
        if constexpr (kSquares == 2 && kSide == 16)
            return __builtin_shufflevector(a, b, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 24, 56,
                                           25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
        else if constexpr (kSquares == 2 && kSide == 8)
            return __builtin_shufflevector(a, b, 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31);
        else if constexpr (kSquares == 2 && kSide == 4)
            return __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
        else if constexpr (kSquares == 2)
            return __builtin_shufflevector(a, b, 1, 5, 3, 7);
        else if constexpr (kSide == 16)
            return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        else if constexpr (kSide == 8)
            return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
        else if constexpr (kSide == 4)
            return __builtin_shufflevector(a, b, 2, 6, 3, 7);
        else
            return __builtin_shufflevector(a, b, 1, 3);
    }
    // 16 bytes of a line. As one word they are stored by one instruction, where GCC makes two of a shuffle.
    static GPUREDUCE_HD unsigned __int128 word(Line line, int square) {
        return ((typename LineOf<16, VectorBytes>::type)line)[square];
    }
    GPUREDUCE_HD void transpose() {
#pragma GCC unroll 4
        for (int step = 1; step < kSide; step *= 2) {
            Line zipped[kSide];
#pragma GCC unroll 8
            for (int i = 0; i < kSide / 2; ++i) {
                zipped[2 * i] = zip_low(line[i], line[i + kSide / 2]);
                zipped[2 * i + 1] = zip_high(line[i], line[i + kSide / 2]);
            }
#pragma GCC unroll 16
            for (int i = 0; i < kSide; ++i) line[i] = zipped[i];
        }
    }
    // kSide rows of kColumns columns from `first` on.
    template <class E, class Column>
    static GPUREDUCE_HD void move(const E* from, int64_t pitch, int64_t row, int first, const Column& column) {
        Squares block;
#pragma GCC unroll 16
        for (int i = 0; i < kSide; ++i) memcpy(&block.line[i], from + (row + i) * pitch + first, VectorBytes);
        block.transpose();
#pragma GCC unroll 16
        for (int i = 0; i < kSide; ++i)
#pragma GCC unroll 2
            for (int square = 0; square < kSquares; ++square) {
                auto const word = block.word(block.line[i], square);
                memcpy(column(first + square * kSide + i) + row, &word, 16);
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
        using Block = Squares<int(sizeof(E)), 16>;
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

// column(c)[r] = from[r * pitch + c] for r < rows, c < columns. Rows below them, so many, will be read next.
template <class E, class Column>
__attribute__((noinline)) void transpose_tall(const E* from, int64_t pitch, int64_t rows, int columns, Column column,
                                              int64_t rows_below = 0) {
    if constexpr (sizeof(E) <= 8) {
        using Wide = Squares<int(sizeof(E)), kSimdBytes>;
        using Narrow = Squares<int(sizeof(E)), 16>;
        constexpr int kSide = Wide::kSide, kLine = 64 / int(sizeof(E));
        constexpr int kTall = kSide < 8 ? 8 : kSide;  // rows at a time: as many lines as a cache set has ways
        if (rows >= kSide && columns >= kSide) {
            // The last squares end with the last row and column, so they may overlap those before.
            auto const whole = [](int64_t at, int64_t count) { return at + kSide <= count ? at : count - kSide; };
            for (int64_t top = 0; top < rows; top += kTall) {
                int64_t const bottom = rows - top < kTall ? rows : top + kTall;
                bool const ahead = top + 2 * kTall <= rows + rows_below;
                int c = 0;
                for (; c + Wide::kColumns <= columns; c += Wide::kColumns) {
                    if (ahead && c % kLine == 0)
                        for (int i = 0; i < kTall; ++i) __builtin_prefetch(from + (top + kTall + i) * pitch + c);
                    for (int64_t r = top; r < bottom; r += kSide) Wide::move(from, pitch, whole(r, rows), c, column);
                }
                for (; c < columns; c += kSide)
                    for (int64_t r = top; r < bottom; r += kSide)
                        Narrow::move(from, pitch, whole(r, rows), int(whole(c, columns)), column);
            }
            return;
        }
    }
    constexpr int kTall = 16;
    for (int64_t top = 0; top < rows; top += kTall)
        for (int c = 0; c < columns; ++c)
            for (int64_t r = top; r < rows && r < top + kTall; ++r)
                memcpy(column(c) + r, from + r * pitch + c, sizeof(E));
}
