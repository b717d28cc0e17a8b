#include "app/measured_bubble.h"

#include <algorithm>
#include <map>

#include "app/program_schedule.h"
#include "kintsugi/base/error.h"

namespace kintsugi::app {
namespace {

using profile::RankProfile;
using profile::StepProfile;

// The mean over the ranks that ran them.
std::vector<plan::Costs> measured_costs(const plan::Schedule& schedule, const StepProfile& profile) {
  struct Sum {
    double seconds = 0, calls = 0;
  };
  std::map<std::pair<std::string, int>, Sum> sums;
  for (const RankProfile& rank : profile.of_ranks)
    for (const profile::TaskTime& task : rank.tasks) {
      sums[{task.work, task.chunk}].seconds += task.seconds;
      sums[{task.work, task.chunk}].calls += task.calls;
    }
  const auto of = [&](std::string_view work, int chunk) {
    const auto found = sums.find({std::string(work), chunk});
    if (found == sums.end() || found->second.calls <= 0)
      throw base::UserError("profile", "the profile has no {} of chunk {}: it is of another plan", work, chunk);
    return found->second.seconds / found->second.calls;
  };
  std::vector<plan::Costs> costs;
  for (int chunk = 0; chunk < schedule.all_chunks(); ++chunk)
    costs.push_back({of("forward", chunk), of("backward", chunk), schedule.split ? of("weight", chunk) : 0});
  return costs;
}

}  // namespace

std::vector<StageBubble> stage_bubbles(const std::vector<program::Program>& stages, const config::Settings& settings,
                                       const StepProfile& profile) {
  const plan::Schedule schedule = schedule_of(stages, settings);
  const plan::Timeline planned = plan::timeline(schedule, costs_of(schedule, stages));
  const plan::Timeline replayed = plan::timeline(schedule, measured_costs(schedule, profile));
  std::vector<StageBubble> bubbles;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    StageBubble& b = bubbles.emplace_back(
        StageBubble{.planned = plan::bubble(planned, stage), .replayed = plan::bubble(replayed, stage)});
    double waiting = 0, seconds = 0;
    std::map<int, double> by_rank;
    for (const RankProfile& rank : profile.of_ranks) {
      if (rank.stage != stage) continue;
      waiting += rank.of(profile::Part::waiting);
      seconds += rank.seconds;
      for (const profile::WaitedFor& waited : rank.waits) by_rank[waited.rank] += waited.seconds;
    }
    if (seconds <= waiting) continue;
    b.run = waiting / (seconds - waiting);
    for (const auto& [rank, of_rank] : by_rank)
      if (of_rank / (seconds - waiting) > b.for_rank) b.rank = rank, b.for_rank = of_rank / (seconds - waiting);
  }
  return bubbles;
}

}  // namespace kintsugi::app
