// Every candidate of small cases is compiled and simulated: no bound exceeds the result, and the search finds the same
// ten.
#include "kintsugi/search/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "kintsugi/search/bounds.h"
#include "kintsugi/search/why.h"

namespace kintsugi::search::search_test {
namespace {

config::Settings settings_from(const std::string& text) {
  return config::resolve(config::read_text(text, "run.toml", models::catalog()), 1).settings;
}

// Nodes of 2 devices, on which small layers take about as long as their transfers.
simulate::Cluster cluster() {
  simulate::Cluster c = simulate::parse_cluster(R"([cluster]
nodes = 64
devices_per_node = 2
[device]
units = 4
memory = "1 GB"
memory_bandwidth = "100 GB/s"
kernel_start = "1 us"
spread = 0.01
[peak]
fp32 = "1 TFLOP/s"
bf16 = "4 TFLOP/s"
[products]
share = 0.8
depth = 16
start = "1 us"
tiles = ["64x64", "32x32"]
[attention]
forward = 0.5
backward = 0.4
[node]
bandwidth = "20 GB/s"
start = "2 us"
step = "1 us"
slowdown = 1.1
[network]
bandwidth = "2 GB/s"
start = "4 us"
step = "2 us"
slowdown = 1.1
[storage]
bandwidth = "4 GB/s"
)",
                                                "small.toml");
  return c;
}

struct Case {
  std::string name, text;
  int64_t devices = 4;
  bool offload = false;
  double turns = 1;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"pipelines",
       "[model]\nlayers = 4\nembed = 64\nheads = 4\nvocab = 96\n[train]\nsequence = 32\nglobal_batch = 4\n"},
      {"windows",
       "[model]\nfamily = \"llama\"\nlayers = 3\nembed = 64\nheads = 4\nkv_heads = 2\nvocab = 160\nwindow = 8\n"
       "window_layers = [\"window\", \"full\"]\n[train]\nsequence = 32\nglobal_batch = 4\ndtype = \"bf16\"\n",
       2},
      {"offload",
       "[model]\nlayers = 2\nembed = 128\nheads = 4\nvocab = 256\n[train]\nsequence = 64\nglobal_batch = 2\n"
       "dtype = \"bf16\"\n[parallel]\nwire = \"bf16\"\n",
       2, true},
      {"uneven", "[model]\nlayers = 3\nembed = 60\nheads = 3\nvocab = 65\n[train]\nsequence = 30\nglobal_batch = 6\n",
       3},
      {"experts",
       "[model]\nfamily = \"mixtral\"\nlayers = 2\nembed = 32\nheads = 4\nexperts = 4\nvocab = 96\n[train]\n"
       "sequence = 16\nglobal_batch = 2\n"},
      {"turns", "[model]\nlayers = 4\nembed = 64\nheads = 4\nvocab = 96\n[train]\nsequence = 32\nglobal_batch = 4\n", 4,
       false, 2},
  };
  return list;
}

class SmallCases : public testing::TestWithParam<Case> {};

TEST_P(SmallCases, BoundsHoldAndTheTenAreTheSame) {
  const config::Settings s = settings_from(GetParam().text);
  simulate::Cluster c = cluster();
  c.device.turns = GetParam().turns;
  const Space space = {.devices = GetParam().devices, .offload = GetParam().offload};
  const std::vector<Candidate> all = candidates(s, space);
  Bounds bounds(s, c, space.devices);
  std::vector<Tried> tried;
  int number = 0;
  const auto everything = static_cast<int64_t>(1e18);
  for (const Candidate& candidate : all) {
    const auto real = try_candidate(s, candidate, c, everything);
    const Bound arithmetic = bounds.by_arithmetic(candidate);
    const auto layers = bounds.by_layers(candidate), replica = bounds.by_replica(candidate),
               schedule = bounds.by_schedule(candidate), files = bounds.by_files(candidate);
    const std::string name = in_words(candidate);
    if (!real) continue;
    if (number++ % 7 == 0) {  // without what time or memory does not need, they are the same
      const auto timed = time_candidate(s, candidate, c);
      ASSERT_TRUE(timed) << name;
      EXPECT_EQ(timed->time.seconds, real->time.seconds) << name;
      EXPECT_EQ(timed->work.model, real->work.model) << name;
      EXPECT_EQ(bytes_of(s, candidate), real->bytes) << name;
    }
    ASSERT_TRUE(layers && replica && schedule && files) << name;
    for (const Bound& b : {arithmetic, *layers, *replica, *schedule, *files}) {
      EXPECT_LE(b.seconds, real->time.seconds * (1 + 1e-9)) << name;
      EXPECT_LE(b.bytes, real->bytes) << name;
    }
    tried.push_back(*real);
  }
  ASSERT_GT(tried.size(), 12u);
  // Limits that all, half and a few of the layouts meet.
  std::vector<int64_t> needs;
  for (const Tried& t : tried) needs.push_back(t.bytes);
  std::ranges::sort(needs);
  for (const int64_t limit : {needs.back(), needs[needs.size() / 2], needs[4]}) {
    std::vector<double> expected;
    for (const Tried& t : tried) {
      // Offload only if the layout does not fit without it.
      Candidate without = t.candidate;
      without.offload = {};
      const auto fits = [&](const Tried& other) {
        return in_words(other.candidate) == in_words(without) && other.bytes <= limit;
      };
      const bool offloads = t.candidate.offload.optimizer || t.candidate.offload.activations;
      if (t.bytes <= limit && !(offloads && std::ranges::any_of(tried, fits))) expected.push_back(t.time.seconds);
    }
    std::ranges::sort(expected);
    expected.resize(std::min<size_t>(expected.size(), 10));
    const Found found = search(s, c, {.space = space, .limit = limit, .threads = limit == needs.back() ? 1 : 2});
    std::vector<double> seconds;
    for (const Tried& t : found.best) {
      seconds.push_back(t.time.seconds);
      EXPECT_LE(t.bytes, limit);
      // Compiled and verified like a run.
      const std::string name = in_words(t.candidate);
      const auto verified =
          std::ranges::find_if(tried, [&](const Tried& other) { return in_words(other.candidate) == name; });
      ASSERT_NE(verified, tried.end()) << name;
      EXPECT_EQ(t.bytes, verified->bytes) << name;
      EXPECT_EQ(t.time.seconds, verified->time.seconds) << name;
    }
    EXPECT_EQ(seconds, expected) << limit;
    EXPECT_EQ(found.left, 0);
    const Counts& n = found.counts;
    EXPECT_EQ(n.all, std::ssize(all));
    EXPECT_EQ(n.too_large + n.too_slow + n.refused + n.simulated, n.all);
  }
}

constexpr std::string_view kImages =
    "[model]\nfamily = \"lenet\"\nimage_channels = 1\nimage_height = 28\nimage_width = 28\noutputs = 10\n"
    "[train]\nglobal_batch = 4\n";

std::set<std::string> names_of_axes(const std::vector<Candidate>& list) {
  std::set<std::string> names;
  for (const Candidate& c : list)
    for (size_t i = 0; i < config::axes().size(); ++i)
      if (c.sizes.list[i] > 1) names.emplace(config::axes()[i].name);
  return names;
}

// Of the list of axes, those along which the model has something to divide.
TEST(Search, ProposesTheAxesThatFitTheModel) {
  const auto names = [](const std::string& text) {
    return names_of_axes(candidates(settings_from(text), {.devices = 4}));
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(names(cases()[0].text), (Names{"data", "tensor", "context", "pipe"}));
  EXPECT_EQ(names(std::ranges::find(cases(), "experts", &Case::name)->text),
            (Names{"data", "tensor", "context", "expert", "pipe"}));
  EXPECT_EQ(names(std::string(kImages)), (Names{"data", "tensor", "space", "pipe"}));
}

// Models whose layers are not repeated: all of them are compiled for a bound.
TEST(Search, FindsTheFastestLayoutsWhereNoLayerIsRepeated) {
  const std::pair<std::string, int64_t> cases[] = {
      {std::string(kImages), 2},
      {"[model]\nfamily = \"resnet18\"\nimage_channels = 3\nimage_height = 32\nimage_width = 32\noutputs = 10\n"
       "[train]\nglobal_batch = 4\n",
       2},
      {"[model]\nfamily = \"deepseek_v3\"\nlayers = 2\nembed = 32\nheads = 4\nexperts = 4\nexperts_per_token = "
       "2\nexpert_groups = 2\n"
       "groups_per_token = 1\ndense_layers = 1\nvocab = 96\n[train]\nsequence = 16\nglobal_batch = 2\n",
       2}};
  const simulate::Cluster c = cluster();
  for (const auto& [text, devices] : cases) {
    SCOPED_TRACE(text);
    const config::Settings s = settings_from(text);
    const Space space = {.devices = devices};
    Bounds bounds(s, c, space.devices);
    std::vector<double> seconds;
    std::set<std::string> axes;
    double tightest = 0;
    for (const Candidate& candidate : candidates(s, space)) {
      const auto real = try_candidate(s, candidate, c, INT64_MAX);
      if (!real) continue;
      const Bound arithmetic = bounds.by_arithmetic(candidate);
      const auto layers = bounds.by_layers(candidate), replica = bounds.by_replica(candidate),
                 schedule = bounds.by_schedule(candidate), files = bounds.by_files(candidate);
      ASSERT_TRUE(layers && replica && schedule && files) << in_words(candidate);
      for (const Bound& b : {arithmetic, *layers, *replica, *schedule, *files}) {
        EXPECT_LE(b.seconds, real->time.seconds * (1 + 1e-9)) << in_words(candidate);
        EXPECT_LE(b.bytes, real->bytes) << in_words(candidate);
      }
      tightest = std::max(tightest, files->seconds / real->time.seconds);
      seconds.push_back(real->time.seconds);
      axes.merge(names_of_axes({candidate}));
    }
    EXPECT_GT(tightest, 0.8);
    EXPECT_TRUE(axes.contains(models::reads_tokens(s.model) ? "expert" : "space"));
    ASSERT_GT(seconds.size(), 10u);
    std::ranges::sort(seconds);
    const Found found = search(s, c, {.space = space, .limit = INT64_MAX});
    ASSERT_EQ(found.best.size(), 10u);
    for (size_t i = 0; i < found.best.size(); ++i) EXPECT_EQ(found.best[i].time.seconds, seconds[i]) << i;
  }
}

// Gradient sums that take about as long as the layers that hide them, with several chunks per stage.
TEST(Search, BoundsHoldWhereSumsAreHidden) {
  const config::Settings s = settings_from(
      "[model]\nlayers = 8\nembed = 64\nheads = 4\nvocab = 96\n[train]\nsequence = 32\nglobal_batch = 16\n");
  for (const double bandwidth : {1e9, 4e9, 16e9, 64e9}) {
    simulate::Cluster c = cluster();
    c.network.link.bandwidth = bandwidth;
    Bounds bounds(s, c, 4);
    for (const int32_t chunks : {1, 2, 4})
      for (const int32_t zero : {0, 1, 2, 3}) {
        Candidate candidate = {.sizes = sizes_of({.data = 2, .pipe = 2}), .zero = zero, .chunks = chunks};
        if (chunks > 1) candidate.schedule = "interleaved";
        const auto bound = bounds.by_schedule(candidate);
        const auto real = time_candidate(s, candidate, c);
        ASSERT_TRUE(bound && real);
        EXPECT_LE(bound->seconds, real->time.seconds * (1 + 1e-9)) << in_words(candidate) << ", " << bandwidth;
      }
  }
}

// Sharded gradients and weights, exposed gathers and sums, and several chunks: with more data ranks than the few layers
// compiled.
TEST(Search, BoundsHoldWhereManyShareStates) {
  const config::Settings s = settings_from(
      "[model]\nlayers = 8\nembed = 64\nheads = 4\nvocab = 96\n[train]\nsequence = 32\nglobal_batch = 32\n");
  const simulate::Cluster c = cluster();
  Bounds bounds(s, c, 32);
  double tightest = 0;
  for (const int32_t chunks : {1, 2, 4})
    for (const int32_t zero : {2, 3})
      for (const config::Recomputed recompute : {config::Recomputed::nothing, config::Recomputed::layers}) {
        Candidate candidate = {
            .sizes = sizes_of({.data = 16, .pipe = 2}), .zero = zero, .chunks = chunks, .recompute = recompute};
        if (chunks > 1) candidate.schedule = "interleaved";
        const auto bound = bounds.by_schedule(candidate);
        const auto real = time_candidate(s, candidate, c);
        ASSERT_TRUE(bound && real);
        EXPECT_LE(bound->seconds, real->time.seconds * (1 + 1e-9)) << in_words(candidate);
        EXPECT_LE(bound->bytes, bytes_of(s, candidate)) << in_words(candidate);
        tightest = std::max(tightest, bound->seconds / real->time.seconds);
      }
  EXPECT_GT(tightest, 0.9);
}

// States are also sharded over the context axis, possibly only there.
TEST(Search, BoundsHoldWhereContextSharesStates) {
  const config::Settings s = settings_from(
      "[model]\nlayers = 8\nembed = 256\nheads = 4\nvocab = 96\n[train]\nsequence = 64\nglobal_batch = 16\n");
  for (const double bandwidth : {1e9, 16e9})
    for (const int64_t data : {1, 2, 4}) {
      simulate::Cluster c = cluster();
      c.network.link.bandwidth = bandwidth;
      Bounds bounds(s, c, 16);
      double tightest = 0;
      for (const int32_t chunks : {1, 2})
        for (const int32_t zero : {0, 1, 2, 3})
          for (const config::Recomputed recompute : {config::Recomputed::nothing, config::Recomputed::layers}) {
            Candidate candidate = {.sizes = sizes_of({.data = data, .context = 4 / data, .pipe = 4}),
                                   .zero = zero,
                                   .chunks = chunks,
                                   .recompute = recompute};
            if (chunks > 1) candidate.schedule = "interleaved";
            const std::string name = fmt::format("{}, {}", in_words(candidate), bandwidth);
            const auto replica = bounds.by_replica(candidate), bound = bounds.by_schedule(candidate);
            const auto real = time_candidate(s, candidate, c);
            ASSERT_TRUE(replica && bound && real) << name;
            EXPECT_LE(replica->seconds, real->time.seconds * (1 + 1e-9)) << name;
            EXPECT_LE(bound->seconds, real->time.seconds * (1 + 1e-9)) << name;
            EXPECT_LE(bound->bytes, bytes_of(s, candidate)) << name;
            tightest = std::max(tightest, bound->seconds / real->time.seconds);
          }
      EXPECT_GT(tightest, 0.8) << data << ", " << bandwidth;
    }
}

// The offload traffic of activations is known from one replica, before ZeRO and the data axis; that of optimizer state,
// with the schedule.
TEST(Search, BoundsHoldWhereStatesOrActivationsGoToTheFile) {
  const config::Settings s = settings_from(
      "[model]\nlayers = 8\nembed = 256\nheads = 4\nvocab = 96\n[train]\nsequence = 128\nglobal_batch = 32\n");
  for (const double bandwidth : {4e8, 4e9, 4e10}) {
    simulate::Cluster c = cluster();
    c.storage_bandwidth = bandwidth;
    Bounds bounds(s, c, 8);
    double loosest = 1;
    for (const int32_t chunks : {1, 2})
      for (const int32_t zero : {0, 1, 2, 3})
        for (const config::Recomputed recompute :
             {config::Recomputed::nothing, config::Recomputed::attention, config::Recomputed::layers})
          for (const config::Offloaded offload :
               {config::Offloaded{false, true}, config::Offloaded{true, false}, config::Offloaded{true, true}}) {
            Candidate candidate = {.sizes = sizes_of({.data = 4, .pipe = 2}),
                                   .zero = zero,
                                   .chunks = chunks,
                                   .micro_batch = 2,
                                   .recompute = recompute,
                                   .offload = offload};
            if (chunks > 1) candidate.schedule = "interleaved";
            const auto bound = bounds.by_replica(candidate), files = bounds.by_files(candidate);
            const auto real = time_candidate(s, candidate, c);
            ASSERT_TRUE(bound && files && real);
            const double most = real->time.seconds * (1 + 1e-9);
            EXPECT_LE(bound->seconds, most) << in_words(candidate) << ", " << bandwidth;
            EXPECT_LE(files->seconds, most) << in_words(candidate) << ", " << bandwidth;
            loosest = std::min(loosest, files->seconds / real->time.seconds);
          }
    EXPECT_GT(loosest, 0.8) << bandwidth;
  }
}

// The first stage keeps its sent values, which were once counted twice: it is the only one that receives nothing.
TEST(Search, MemoryBoundsHoldInDeepPipelines) {
  const config::Settings s = settings_from(
      "[model]\nlayers = 8\nembed = 256\nheads = 2\nvocab = 16\n[train]\nsequence = 128\nglobal_batch = 16\n");
  const simulate::Cluster c = cluster();
  Bounds bounds(s, c, 8);
  for (const config::Recomputed recompute :
       {config::Recomputed::nothing, config::Recomputed::attention, config::Recomputed::layers})
    for (const std::string_view schedule : {"1f1b", "interleaved", "zero_bubble"}) {
      const bool interleaved = schedule == "interleaved";
      const Candidate candidate = {.sizes = interleaved ? sizes_of({.data = 2, .pipe = 4}) : sizes_of({.pipe = 8}),
                                   .schedule = schedule,
                                   .chunks = interleaved ? 2 : 1,
                                   .recompute = recompute};
      const auto replica = bounds.by_replica(candidate), bound = bounds.by_schedule(candidate);
      ASSERT_TRUE(replica && bound);
      const int64_t bytes = bytes_of(s, candidate);
      EXPECT_LE(replica->bytes, bytes) << in_words(candidate);
      EXPECT_LE(bound->bytes, bytes) << in_words(candidate);
      if (recompute == config::Recomputed::nothing) {
        EXPECT_GT(static_cast<double>(bound->bytes), 0.8 * static_cast<double>(bytes)) << in_words(candidate);
      }
    }
}

// A search that times out reports the simulated layouts that fit, and a lower bound for the others.
TEST(Search, ABudgetEndsIt) {
  const config::Settings s = settings_from(
      "[model]\nlayers = 4\nembed = 64\nheads = 4\nvocab = 96\n[train]\nsequence = 32\nglobal_batch = 8\n");
  const simulate::Cluster c = cluster();
  const Options options = {.space = {.devices = 8}, .limit = static_cast<int64_t>(1e18), .best = 40};
  const Found whole = search(s, c, options);
  EXPECT_EQ(whole.left, 0);
  Options short_of_time = options;
  short_of_time.seconds = 1e-6;
  const Found found = search(s, c, short_of_time);
  ASSERT_EQ(found.best.size(), 1u);  // it goes on until one fits
  EXPECT_GT(found.left, 0);
  EXPECT_LT(found.counts.simulated, whole.counts.simulated);
  // No skipped layout is below that.
  for (const Tried& t : whole.best)
    if (in_words(t.candidate) != in_words(found.best[0].candidate)) {
      EXPECT_GE(t.time.seconds, found.left * (1 - 1e-9)) << in_words(t.candidate);
    }
  const Counts& n = found.counts;
  EXPECT_EQ(n.too_large + n.too_slow + n.refused + n.simulated, n.all);
}

// With one byte less than the smallest layout needs.
TEST(Search, NothingFits) {
  const config::Settings s = settings_from(
      "[model]\nlayers = 2\nembed = 64\nheads = 4\nvocab = 96\n[train]\nsequence = 32\nglobal_batch = 8\n");
  const simulate::Cluster c = cluster();
  int64_t least = 0;
  for (const Candidate& candidate : candidates(s, {.devices = 2})) {
    const auto real = try_candidate(s, candidate, c, 0);
    if (real && (least == 0 || real->bytes < least)) least = real->bytes;
  }
  const Found found = search(s, c, {.space = {.devices = 2}, .limit = least - 1});
  ASSERT_TRUE(found.best.empty() && found.smallest);
  EXPECT_EQ(found.smallest->bytes, least);
  EXPECT_EQ(found.enough_devices, 4);
  EXPECT_EQ(nothing_fits(found, c, 2, least - 1),
            fmt::format(
                "no layout of 2 devices fits into {0}: the least found that a rank needs is {0}, with {1}; devices of "
                "{0} would do, or 4 devices",
                base::format_bytes(static_cast<uint64_t>(least)), in_words(found.smallest->candidate)));
  const Found one = search(s, c, {.space = {.devices = 2}, .limit = least});
  ASSERT_EQ(one.best.size(), 1u);
  EXPECT_EQ(one.best[0].bytes, least);
}

// So many layouts that not all bounds are refined: one is followed to its end, so there is something to report.
TEST(Search, ANeedIsFoundAmongManyLayouts) {
  const config::Settings s = settings_from(
      "[model]\nlayers = 16\nembed = 64\nheads = 16\nvocab = 96\n[train]\nsequence = 32\nglobal_batch = 512\n");
  const Found found = search(s, cluster(), {.space = {.devices = 16}, .limit = 1000});
  EXPECT_GT(found.counts.all, 2000);
  ASSERT_TRUE(found.best.empty() && found.smallest);
  EXPECT_EQ(found.smallest->bytes, try_candidate(s, found.smallest->candidate, cluster(), 0)->bytes);
}

// The pasted layout equals the found one.
TEST(Search, TheSectionToPaste) {
  const std::string model = "[model]\nlayers = 4\nembed = 64\nheads = 4\nvocab = 96\n";
  const std::string train = "[train]\nsequence = 32\nglobal_batch = 8\n";
  const config::Settings s = settings_from(model + train);
  for (const Candidate& c : candidates(s, {.devices = 4, .offload = true})) {
    std::string pasted = as_toml(s, c);
    pasted.insert(pasted.find('\n') + 1, "sequence = 32\nglobal_batch = 8\n");
    config::Settings expected = settings_of(s, c);
    config::Settings again = settings_from(model + pasted);
    expected.parallel.threads = again.parallel.threads;
    EXPECT_EQ(again.parallel, expected.parallel) << pasted;
    EXPECT_EQ(again.train, expected.train) << pasted;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmallCases, testing::ValuesIn(cases()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kintsugi::search::search_test
