#include "app/fewer_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/auto_layout.h"
#include "kintsugi/base/error.h"
#include "kintsugi/config/axes.h"
#include "kintsugi/simulate/cluster.h"

namespace kintsugi::app {
namespace {

constexpr double kSearchSeconds = 20;
constexpr int64_t kMostSearched = 64;  // a search over more ranks takes long, and has divisors enough

// Equal nodes, for a run that names no cluster: a search among layouts needs the ratios of a machine, here those of
// current accelerators. Its figures are not published ones, and no time is printed that follows from them.
simulate::Cluster usual_cluster(int64_t ranks, int64_t per_node) {
  const int64_t each = ranks % per_node == 0 ? per_node : 1;
  return simulate::parse_cluster(fmt::format(R"([cluster]
name = "usual nodes"
nodes = {}
devices_per_node = {}
[device]
units = 100
memory = "80 GB"
memory_bandwidth = "2 TB/s"
[peak]
fp64 = "20 TFLOP/s"
fp32 = "20 TFLOP/s"
bf16 = "300 TFLOP/s"
fp16 = "300 TFLOP/s"
[products]
share = 0.8
depth = 96
start = "5 us"
tiles = ["128x128", "64x64"]
[attention]
forward = 0.6
backward = 0.5
[node]
bandwidth = "200 GB/s"
start = "40 us"
step = "3 us"
[network]
bandwidth = "200 Gb/s"
start = "40 us"
step = "14 us"
)",
                                             ranks / each, each),
                                 "the usual cluster");
}

std::optional<config::Resolved> read_with(RunOptions options, const std::vector<std::string>& sets) {
  options.sets.insert(options.sets.end(), sets.begin(), sets.end());
  try {
    return read_run(options, RunsOn::quiet);
  } catch (const base::UserError&) {  // not a layout of this run
    return std::nullopt;
  }
}

// The run's own, with a smaller data axis.
std::optional<FewerRanks> narrower(const RunOptions& options, const config::Settings& s, int64_t ranks) {
  int64_t others = 1;
  for (const config::Axis* axis : config::axes_of_product())
    if (axis->name != "data") others *= axis->size(s.parallel);
  if (ranks % others != 0) return std::nullopt;
  FewerRanks layout = {
      .ranks = ranks,
      .sets = {fmt::format("parallel.ranks={}", ranks), fmt::format("parallel.data={}", ranks / others)},
      .words = fmt::format("data {}", ranks / others)};
  if (!read_with(options, layout.sets)) return std::nullopt;
  return layout;
}

std::optional<FewerRanks> searched(const RunOptions& options, const config::Settings& s, int64_t ranks,
                                   int64_t per_node) {
  if (s.parallel.cluster.empty() && ranks > kMostSearched) return std::nullopt;
  // Read as one rank, so that no key of the given layout contradicts the number.
  auto config = read_with(options, {});
  const simulate::Cluster cluster =
      s.parallel.cluster.empty() ? usual_cluster(ranks, per_node) : simulate::read_cluster(s.parallel.cluster);
  const auto found = fastest_layout(std::move(*config), cluster, {.ranks = ranks, .seconds = kSearchSeconds});
  if (!found) return std::nullopt;
  return FewerRanks{.ranks = ranks, .sets = found->sets, .words = found->words};
}

}  // namespace

FewerRanks layout_for(const RunOptions& options, int64_t ranks, int64_t per_node) {
  const config::Settings s = read_run(options, RunsOn::quiet).settings;
  if (!s.parallel.cluster.empty())
    if (auto layout = searched(options, s, ranks, per_node)) return *layout;
  for (int64_t r = ranks; r > 0; --r) {
    if (auto layout = narrower(options, s, r)) return *layout;
    if (auto layout = searched(options, s, r, per_node)) return *layout;
  }
  throw base::UserError("launch", "no layout of the run takes {} ranks or fewer at global_batch = {}", ranks,
                        s.train.global_batch);
}

}  // namespace kintsugi::app
