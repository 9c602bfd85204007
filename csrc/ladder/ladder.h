// The one list of rungs, and what is made of it.
#pragma once

#include <string>
#include <string_view>

#include "../core/dtype.h"
#include "strategies/strategies.h"
#include "sums.h"

namespace gpureduce::ladder {

using AllRungs = TypeList<Naive, Sequential, Strided, Serial, Float4, Vec4Serial, WarpShuffle, TwoPass, Slots,
                          AtomicPerBlock, AtomicPerElement, Kahan, Double, Production,  //
                          Map, Uncoalesced, Divergent, Matmul, Tile, TileBuffered, Columns, ColumnTile, Pipeline,
                          WarpPerRow, Adaptive>;

// What a name such as "vec4_serial:4" says.
struct Choice {
    std::string_view name;
    int parameter = 0;  // 0 where none is named
};
// Calls f(R{}, parameter) for the rung R that a text names with one of its parameters; false if there is none.
template <class F>
bool visit_rung(std::string_view text, F&& f);

// All texts that name a rung, as "naive, .., serial:1, serial:2, ..".
std::string all_names();

// The descriptions of all rungs, as a JSON list.
std::string describe_rungs();

// The rest is how visit_rung does it.
Choice parse(std::string_view text);

template <int... N>
constexpr bool has_value(Values<N...>, int parameter) {
    return sizeof...(N) == 0 ? parameter == 0 : ((N == parameter) || ...);
}

template <class F>
bool visit_rung(std::string_view text, F&& f) {
    Choice const choice = parse(text);
    auto const named = [&](auto rung) {
        using R = decltype(rung);
        return choice.name == R::name && has_value(typename R::Parameters{}, choice.parameter);
    };
    return visit_first(AllRungs{}, named, [&](auto rung) { f(rung, choice.parameter); });
}

}  // namespace gpureduce::ladder
