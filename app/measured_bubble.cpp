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

std::vector<report::StageBubble> stage_bubbles(const std::vector<program::Program>& stages,
                                               const config::Settings& settings, const StepProfile& profile) {
  const plan::Schedule schedule = schedule_of(stages, settings);
  const plan::Timeline planned = plan::timeline(schedule, costs_of(schedule, stages));
  const plan::Timeline replayed = plan::timeline(schedule, measured_costs(schedule, profile));
  std::vector<report::StageBubble> bubbles;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    report::StageBubble& b = bubbles.emplace_back(
        report::StageBubble{.planned = plan::bubble(planned, stage), .replayed = plan::bubble(replayed, stage)});
    double seconds = 0, tasks = 0, waiting = 0, communication = 0;
    std::map<int, double> by_rank;
    for (const RankProfile& rank : profile.of_ranks) {
      if (rank.stage != stage) continue;
      seconds += rank.seconds;
      waiting += rank.of(profile::Part::waiting);
      communication += rank.of(profile::Part::communication);
      for (const profile::TaskTime& task : rank.tasks) tasks += task.seconds;
      for (const profile::WaitedFor& waited : rank.waits) by_rank[waited.rank] += waited.seconds;
    }
    if (tasks <= 0) continue;
    b.run = (seconds - tasks) / tasks;
    b.waiting = waiting / tasks;
    b.communication = communication / tasks;
    b.rest = b.run - b.waiting - b.communication;
    const auto most = std::ranges::max_element(by_rank, {}, [](const auto& pair) { return pair.second; });
    if (most != by_rank.end()) b.rank = most->first;
  }
  return bubbles;
}

}  // namespace kintsugi::app
