#include "ladder.h"

namespace gpureduce::ladder {
namespace {

template <class... Rungs, class F>
void for_every_rung(TypeList<Rungs...>, F&& f) {
    (f(Rungs{}), ...);
}

template <int... N>
std::string list_of(Values<N...>, const std::string& before, const char* between) {
    std::string text;
    ((text += (text.empty() ? "" : between) + before + std::to_string(N)), ...);
    return text;
}

// The descriptions are ours, and have no character that JSON would want escaped.
std::string field(const char* key, std::string_view text) {
    return std::string("\"") + key + "\": \"" + std::string(text) + "\", ";
}

}  // namespace

// Anything but digits behind the colon, or more than fit, makes a parameter that no rung has.
Choice parse(std::string_view text) {
    size_t const colon = text.find(':');
    if (colon == std::string_view::npos) return {text, 0};
    std::string_view const digits = text.substr(colon + 1);
    bool const plain = !digits.empty() && digits.size() <= 4 && digits[0] != '0' &&
                       digits.find_first_not_of("0123456789") == std::string_view::npos;
    return {text.substr(0, colon), plain ? std::stoi(std::string(digits)) : -1};
}

std::string all_names() {
    std::string names;
    for_every_rung(AllRungs{}, [&](auto rung) {
        using R = decltype(rung);
        std::string const with_parameters = list_of(typename R::Parameters{}, std::string(R::name) + ":", ", ");
        names += (names.empty() ? "" : ", ") + (with_parameters.empty() ? std::string(R::name) : with_parameters);
    });
    return names;
}

std::string describe_rungs() {
    std::string json;
    for_every_rung(AllRungs{}, [&](auto rung) {
        using R = decltype(rung);
        json += (json.empty() ? "[{" : ",\n{") + field("name", R::name) + field("kind", R::Args::kind) +
                field("idea", R::idea) + field("cost", R::cost) + field("limits", R::limits) + "\"parameters\": [" +
                list_of(typename R::Parameters{}, "", ", ") +
                "], \"deterministic\": " + (R::deterministic ? "true" : "false") + "}";
    });
    return json + "]\n";
}

}  // namespace gpureduce::ladder
