#include "prepare.h"

#include <algorithm>

namespace gpureduce::binding {
namespace {

// As torch does, once a shape: the cache keeps later calls away.
void warn_of_few(const Call& call, const Problem& problem) {
    if (call.op.op == OpId::moments && double(problem.n) <= call.parameter && problem.outputs > 0)
        TORCH_WARN("gpureduce::", call.op.name, ": degrees of freedom is <= 0: rows of ", problem.n,
                   " elements with correction ", call.parameter);
}

std::shared_ptr<const Prepared> prepare_anew(const Call& call, const DeviceTraits* traits) {
    Reduction const reduction = check(call);
    auto sizes = result_sizes<at::DimVector>(call.self.sizes(), call, reduction);
    auto const& [result, second] = std::tie(reduction.result, reduction.second_result);
    if (reduction.load_as != call.self.scalar_type())
        return std::shared_ptr<Prepared>(new Prepared{reduction.load_as, result, second, std::move(sizes), {}, {}});
    // Built in its place: a Problem is 3 KB.
    auto* const prepared =
        new Prepared{reduction.load_as, result, second, std::move(sizes), problem_of(call.self, reduction), {}};
    std::shared_ptr<const Prepared> const shared(prepared);
    warn_of_few(call, prepared->problem);
    if (traits != nullptr) prepared->plan = plan_of(prepared->problem, *traits);
    return shared;
}

// --- the cache ------------------------------------------------------------------------------------------------------

constexpr int kCachedDims = 6;  // of self, and named by `dim`; calls with more are prepared each time
constexpr int kKeyWords = 2 + 3 * kCachedDims;
constexpr int kSets = 32;  // a thread keeps at most kSets * kWays calls, of 4 KB each
constexpr int kWays = 2;

// Everything that a Prepared depends on, apart from the forced geometry.
struct Key {
    int words = 0;
    uint64_t hash = 0;
    int64_t word[kKeyWords];

    void add(int64_t value) {
        word[words++] = value;
        hash = (hash ^ uint64_t(value)) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    void add(at::IntArrayRef values) {
        for (int64_t const value : values) add(value);
    }
};

bool operator==(const Key& a, const Key& b) {
    return a.hash == b.hash && a.words == b.words && std::equal(a.word, a.word + a.words, b.word);
}

// Packs `value`, which has to be in [0, 2^bits), behind what is there.
void pack(int64_t& word, int bits, int64_t value) { word = word << bits | value; }

// False if the call is too large for the cache.
bool make_key(const Call& call, Key& key) {
    at::Tensor const& self = call.self;
    size_t const named = call.dim ? call.dim->size() : 0;
    if (self.dim() > kCachedDims || named > size_t(kCachedDims)) return false;
    int64_t facts = 0;
    pack(facts, 5, &call.op - kOperators);
    pack(facts, 3, self.dim());
    pack(facts, 3, call.dim ? 1 + int64_t(named) : 0);
    pack(facts, 1, call.keepdim);
    pack(facts, 8, int64_t(self.scalar_type()));
    pack(facts, 8, call.dtype ? int64_t(*call.dtype) : 255);
    pack(facts, 8, call.store_as ? int64_t(*call.store_as) : 255);
    pack(facts, 2, int64_t(accumulate_of(call)));
    pack(facts, 4, misalignment_of(self));
    pack(facts, 8, int64_t(self.device().type()));
    pack(facts, 8, uint8_t(self.device().index()));
    key.add(facts);
    key.add(self.sizes());
    key.add(self.strides());
    if (call.dim) key.add(*call.dim);
    if (call.parameter != 0) key.add(bit_cast<int64_t>(call.parameter));  // the row says whether a word is this one
    return true;
}
static_assert(kRows <= 32 && kCachedDims < 7);

struct Entry {
    Key key;
    std::shared_ptr<const Prepared> call;
};

// One a thread, so that nothing is locked.
struct Cache {
    Entry entry[kSets][kWays];  // of a set, the latest first
    int64_t geometry = 0;       // the version that the plans were made with
    int64_t hits = 0, misses = 0;

    Entry* set_of(const Key& key) { return entry[key.hash % kSets]; }

    const Entry* find(const Key& key) {
        const Entry* const set = set_of(key);
        for (int way = 0; way < kWays; ++way)
            if (set[way].call && set[way].key == key) return &set[way];
        return nullptr;
    }

    void insert(const Key& key, std::shared_ptr<const Prepared> call) {
        Entry* const set = set_of(key);
        std::move_backward(set, set + kWays - 1, set + kWays);
        set[0] = {key, std::move(call)};
    }

    void follow(int64_t version) {
        if (geometry == version) return;
        for (auto& set : entry)
            for (Entry& each : set) each.call.reset();
        geometry = version;
    }
};

Cache& cache_of_this_thread() {
    thread_local Cache cache;
    return cache;
}

}  // namespace

std::shared_ptr<const Prepared> prepare(const Call& call, const DeviceTraits* traits) {
    Key key;
    if (!make_key(call, key)) return prepare_anew(call, traits);
    Cache& cache = cache_of_this_thread();
    cache.follow(geometry_version());
    if (const Entry* const found = cache.find(key)) {
        ++cache.hits;
        return found->call;
    }
    ++cache.misses;
    auto prepared = prepare_anew(call, traits);
    cache.insert(key, prepared);
    return prepared;
}

std::tuple<int64_t, int64_t> cache_hits_and_misses() {
    Cache const& cache = cache_of_this_thread();
    return {cache.hits, cache.misses};
}

}  // namespace gpureduce::binding
