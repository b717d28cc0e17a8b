#include "kintsugi/train/stragglers.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/format.h"
#include "kintsugi/comm/texts_of_all.h"
#include "kintsugi/launch/process.h"

namespace kintsugi::train {

Slowest slowest_of(std::span<const BusyRank> ranks) {
  std::map<int, std::vector<double>> stages;
  for (const BusyRank& r : ranks) stages[r.stage].push_back(r.seconds);
  for (auto& [stage, all] : stages) std::ranges::sort(all);
  Slowest slowest;
  double worst = 0;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<double>& all = stages[ranks[r].stage];
    const double median = all[(all.size() - 1) / 2];  // of two, the faster
    if (median <= 0 || ranks[r].seconds / median <= worst) continue;
    worst = ranks[r].seconds / median;
    slowest = {static_cast<int>(r), ranks[r].seconds, median};
  }
  return slowest;
}

std::string in_words(const Slowest& s, std::string_view host) {
  return fmt::format("rank {} on {} is a straggler: its step takes {} without waiting, {:.1f} times the median of {}",
                     s.rank, host, base::format_time(s.seconds), s.seconds / s.median, base::format_time(s.median));
}

bool Suspicion::confirms(const Slowest& slowest) {
  constexpr int kMeasurements = 3;
  if (left_ == 0) {
    if (!slowest.straggles()) return false;
    found_.clear();
    left_ = kMeasurements;
  }
  --left_;
  if (!slowest.straggles() || ++found_[slowest.rank] < 2) return false;
  left_ = 0;
  return true;
}

std::string Stragglers::compare(double seconds) {
  constexpr std::chrono::minutes kAgain{10};
  if (hosts_.empty()) hosts_ = comm::texts_of_all(*rank_.all, launch::this_process().host);
  std::vector<double> all(hosts_.size());
  rank_.all->wait(rank_.all->all_gather(std::as_bytes(std::span(&seconds, 1)), std::as_writable_bytes(std::span(all))));
  std::vector<BusyRank> ranks;
  const mesh::Mesh& mesh = rank_.executor->program().mesh;
  for (size_t r = 0; r < all.size(); ++r) ranks.push_back({all[r], mesh.stage_of(static_cast<int>(r)), hosts_[r]});
  const Slowest slowest = slowest_of(ranks);
  const bool confirmed = suspicion_.confirms(slowest);
  if (!confirmed || !rank_.leads()) return "";
  if (named_ == slowest.rank && Clock::now() - when_ < kAgain) return "";
  named_ = slowest.rank;
  when_ = Clock::now();
  return in_words(slowest, hosts_[static_cast<size_t>(slowest.rank)]);
}

}  // namespace kintsugi::train
