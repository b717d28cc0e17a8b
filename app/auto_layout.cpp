#include "app/auto_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/program_of.h"
#include "app/progress.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/memory_size.h"
#include "kintsugi/config/value.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/search/search.h"
#include "kintsugi/search/why.h"
#include "kintsugi/train/corpus.h"

namespace kintsugi::app {
namespace {

constexpr double kMostSeconds = 60;

// Those that a launcher has started, or that the run names, or all of the machine.
int64_t ranks_at_hand(const config::Settings& s, const simulate::Cluster& c) {
  const auto launched = launch::launched();
  const int64_t ranks = launched && launched->ranks > 1 ? launched->ranks
                        : s.parallel.ranks > 1          ? s.parallel.ranks
                                                        : c.devices();
  if (ranks > c.devices())
    throw base::UserError("train", "--layout auto: {} ranks, and {} has {} devices", ranks, c.path, c.devices());
  return ranks;
}

int64_t limit_of_rank(const config::Settings& s, const simulate::Cluster& c) {
  const auto device = static_cast<int64_t>(c.device.memory);
  if (s.parallel.memory_per_rank.empty()) return device;
  return std::min(device, *config::memory_size(s.parallel.memory_per_rank));
}

// What differs, as values of --set.
std::vector<std::string> differences(const config::Settings& from, const config::Settings& to) {
  std::vector<std::string> sets;
  for (const config::Key& key : config::keys())
    if (key.get(from) != key.get(to))
      sets.push_back(fmt::format("{}={}", key.full_name(), config::to_toml(key.get(to))));
  return sets;
}

config::Settings layout_of(const config::Settings& given, const search::Candidate& candidate,
                           const simulate::Cluster& cluster) {
  config::Settings fastest = settings_of(given, candidate);
  fastest.parallel.threads =
      cluster.device.threads > 0 ? static_cast<int64_t>(cluster.device.threads) : given.parallel.threads;
  return fastest;
}

}  // namespace

std::optional<FoundLayout> fastest_layout(config::Resolved config, const simulate::Cluster& cluster,
                                          const LayoutSearch& options) {
  const config::Settings given = config.settings;
  train::complete_from_data(config);
  const search::Found found = search::search(config.settings, cluster,
                                             {.space = {.devices = options.ranks},
                                              .limit = limit_of_rank(config.settings, cluster),
                                              .threads = static_cast<int>(base::usable_cores()),
                                              .seconds = options.seconds});
  if (found.best.empty()) return std::nullopt;
  const search::Candidate& best = found.best.front().candidate;
  return FoundLayout{differences(given, layout_of(given, best, cluster)), in_words(best)};
}

void add_fastest_layout(config::Resolved config, RunOptions& options) {
  if (config.settings.parallel.cluster.empty())
    throw base::UserError("train",
                          "--layout auto needs [parallel] cluster, a file that describes the machine; kintsugi bench "
                          "machine --into machine.toml writes one");
  const simulate::Cluster cluster = simulate::read_cluster(config.settings.parallel.cluster);
  const config::Settings given = config.settings;
  train::complete_from_data(config);
  const config::Settings& s = config.settings;
  const int64_t ranks = ranks_at_hand(s, cluster), limit = limit_of_rank(s, cluster);
  Progress progress("searching for the fastest layout");
  const search::Found found = search::search(
      s, cluster,
      {.space = {.devices = ranks},
       .limit = limit,
       .threads = static_cast<int>(base::usable_cores()),
       .seconds = kMostSeconds,
       .progress = [&](const search::Counts& n) {
         progress.tell(fmt::format("{} of {} layouts simulated", n.simulated, base::group_digits(n.all)));
       }});
  progress.finish();
  if (found.best.empty()) throw base::UserError("search", "{}", search::nothing_fits(found, cluster, ranks, limit));
  const auto launched = launch::launched();
  const bool several = launched && launched->ranks > 1;
  // Of a search that ends for lack of time, processes could find different layouts.
  if (several && found.left > 0)
    throw base::UserError("train",
                          "--layout auto: the search did not end within {:.0f} s; kintsugi plan --cluster {} --search "
                          "prints lines to paste",
                          kMostSeconds, cluster.path);
  const search::Tried& best = found.best.front();
  for (std::string& set : differences(given, layout_of(given, best.candidate, cluster)))
    options.sets.push_back(std::move(set));
  if (!several || launched->rank == 0)
    write_out("layout: {}: {} a step is planned\n", in_words(best.candidate), base::format_seconds(best.time.seconds));
}

}  // namespace kintsugi::app
