#include "kintsugi/train/stragglers.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/comm/texts_of_all.h"
#include "kintsugi/comm/timeout_message.h"
#include "kintsugi/launch/process.h"

namespace kintsugi::train {
namespace {

constexpr double kTimesMedian = 2.5, kOfStep = 0.2;
constexpr int kAgainst = 3;         // comparisons
constexpr int64_t kLeastSteps = 3;  // of a comparison
constexpr double kPerRank = 5e-4;   // seconds between comparisons: rank 0 receives a message of each

std::string times_in_words(const SlowRank& s) {
  return fmt::format("its step takes {} without waiting, {:.1f} times the median of {}", base::format_time(s.seconds),
                     s.seconds / s.median, base::format_time(s.median));
}

}  // namespace

std::vector<SlowRank> slow_ranks(std::span<const BusyRank> ranks, double step) {
  std::map<int, std::vector<double>> stages;
  for (const BusyRank& r : ranks) stages[r.stage].push_back(r.seconds);
  for (auto& [stage, all] : stages) std::ranges::sort(all);
  std::vector<SlowRank> slow;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<double>& all = stages[ranks[r].stage];
    const double mine = ranks[r].seconds, median = all[(all.size() - 1) / 2];  // of two, the faster
    if (median > 0 && mine >= kTimesMedian * median && mine - median >= kOfStep * step)
      slow.push_back({static_cast<int>(r), mine, median});
  }
  return slow;
}

std::string in_words(const SlowRank& s, std::string_view host) {
  return fmt::format("rank {} on {} is a straggler: {}", s.rank, host, times_in_words(s));
}

std::vector<SlowRank> StragglerWatch::add(std::span<const SlowRank> slow) {
  for (const SlowRank& s : slow) seen_[s.rank].last = s;
  std::vector<SlowRank> changed;
  for (auto i = seen_.begin(); i != seen_.end();) {
    Seen& seen = i->second;
    const bool is_slow = std::ranges::find(slow, i->first, &SlowRank::rank) != slow.end();
    seen.against = is_slow == seen.straggler ? std::max(0, seen.against - 1) : seen.against + 1;
    if (seen.against == kAgainst) {
      seen.straggler = is_slow;
      seen.against = 0;
      changed.push_back(is_slow ? seen.last : SlowRank{.rank = i->first});
    }
    i = seen.straggler || seen.against > 0 ? std::next(i) : seen_.erase(i);
  }
  return changed;
}

bool StragglerWatch::undecided() const {
  return std::ranges::any_of(seen_, [](const auto& s) { return s.second.against > 0; });
}

std::vector<SlowRank> StragglerWatch::stragglers() const {
  std::vector<SlowRank> all;
  for (const auto& [rank, seen] : seen_)
    if (seen.straggler) all.push_back(seen.last);
  return all;
}

Stragglers::Stragglers(const Rank& rank, const std::filesystem::path* folder, Observer* observer)
    : rank_(rank), folder_(folder), observer_(observer) {
  if (folder_) base::remove_if_possible(*folder_ / kStragglerFile);  // of an earlier start
}

bool Stragglers::due() const {
  if (!enabled() || steps_ < kLeastSteps) return false;
  const double least = std::max(rank_.settings().launch.straggler_seconds, kPerRank * rank_.world.size());
  return Clock::now() - last_ >= std::chrono::duration<double>(least);
}

void Stragglers::compare(int64_t steps_done) {
  if (!enabled() || steps_ == 0) return;
  const double mine = busy_ / static_cast<double>(steps_), step = whole_ / static_cast<double>(steps_);
  busy_ = whole_ = 0;
  steps_ = 0;
  std::vector<double> all(rank_.leads() ? static_cast<size_t>(rank_.world.size()) : 0);
  try {
    if (hosts_.empty()) hosts_ = comm::texts_of_all(*rank_.all, launch::this_process().host);
    rank_.all->wait(rank_.all->gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), 0));
  } catch (const comm::Timeout& e) {
    comm::throw_timeout_of(rank_.world.rank(), fmt::format("after step {}, the times of ranks", steps_done), e);
  }
  last_ = Clock::now();
  if (!rank_.leads()) return;
  const mesh::Mesh& mesh = rank_.executor->program().mesh;
  std::vector<BusyRank> ranks;
  for (size_t r = 0; r < all.size(); ++r) ranks.push_back({all[r], mesh.stage_of(static_cast<int>(r))});
  report(watch_.add(slow_ranks(ranks, step)), steps_done);
}

void Stragglers::report(std::span<const SlowRank> changed, int64_t steps_done) {
  for (const SlowRank& s : changed) {
    const bool straggles = s.median > 0;
    straggles ? static_cast<void>(since_[s.rank] = steps_done) : static_cast<void>(since_.erase(s.rank));
    const std::string& host = hosts_[static_cast<size_t>(s.rank)];
    if (observer_)
      observer_->note(straggles ? in_words(s, host)
                                : fmt::format("rank {} on {} is no longer a straggler", s.rank, host));
  }
  if (folder_ && !changed.empty()) write();
}

// The file is optional.
void Stragglers::write() const {
  std::string text;
  for (const SlowRank& s : watch_.stragglers())
    text += fmt::format("rank {} on {} since step {}: {}\n", s.rank, hosts_[static_cast<size_t>(s.rank)],
                        since_.at(s.rank), times_in_words(s));
  if (text.empty()) return base::remove_if_possible(*folder_ / kStragglerFile);
  try {
    base::write_file_atomically(*folder_ / kStragglerFile, text);
  } catch (const base::UserError& error) {
    if (observer_) observer_->note(fmt::format("warning: cannot store the stragglers: {}", error.what()));
  }
}

}  // namespace kintsugi::train
