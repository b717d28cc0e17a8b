#include "kintsugi/plan/schedule_timeline.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/plan/schedule_walk.h"

namespace kintsugi::plan {

namespace {

double cost_of(const Schedule& schedule, Work work, const Costs& costs) {
  switch (work) {
    case Work::forward:
      return costs.forward;
    case Work::backward:
      return schedule.split ? costs.backward : costs.backward + costs.weight;
    case Work::weight:
      return costs.weight;
  }
  throw base::InternalError("plan", "unknown kind of work {}", static_cast<int>(work));
}

}  // namespace

Timeline timeline(const Schedule& schedule, const TaskCosts& costs) {
  const size_t chunks = static_cast<size_t>(schedule.all_chunks());
  const size_t micro_batches = static_cast<size_t>(schedule.micro_batches);
  std::vector<double> ends(3 * chunks * micro_batches, 0);
  const auto end = [&](const Task& t) -> double& {
    return ends[(static_cast<size_t>(t.work) * chunks + static_cast<size_t>(t.chunk)) * micro_batches +
                static_cast<size_t>(t.micro_batch)];
  };
  Timeline result;
  result.busy.assign(schedule.tasks.size(), 0);
  for (const std::vector<Task>& tasks : schedule.tasks) result.spans.emplace_back(tasks.size());
  const std::vector<size_t> done = walk(schedule, [&](int stage, size_t at) {
    const size_t s = static_cast<size_t>(stage);
    const Task& task = schedule.tasks[s][at];
    double begin = at > 0 ? result.spans[s][at - 1].end : 0;
    const double alone = costs.alone ? costs.alone(task) : 0;
    for (const Task& before : waits_for(schedule, task)) {
      const bool here = before.chunk % schedule.stages == stage;
      const double rest = here || !costs.rest ? 0 : costs.rest(before);
      begin = std::max(begin, end(before) - rest + (here ? 0 : costs.message - alone));
    }
    const double seconds = costs.cost(task);
    result.spans[s][at] = {begin, end(task) = begin + seconds};
    result.busy[s] += seconds;
    result.length = std::max(result.length, begin + seconds);
  });
  for (size_t s = 0; s < done.size(); ++s)
    if (done[s] < schedule.tasks[s].size())
      throw base::InternalError("plan", "schedule \"{}\" waits forever on stage {} at the {}", schedule.name, s,
                                to_string(schedule.tasks[s][done[s]]));
  return result;
}

Timeline timeline(const Schedule& schedule, const std::vector<Costs>& by_chunk) {
  base::require(by_chunk.size() == static_cast<size_t>(schedule.all_chunks()), "plan",
                "costs of {} chunks for the {} of schedule \"{}\"", by_chunk.size(), schedule.all_chunks(),
                schedule.name);
  return timeline(schedule, {.cost = [&](const Task& t) {
                    return cost_of(schedule, t.work, by_chunk[static_cast<size_t>(t.chunk)]);
                  }});
}

Timeline timeline(const Schedule& schedule, const Costs& of_each) {
  return timeline(schedule, std::vector<Costs>(static_cast<size_t>(schedule.all_chunks()), of_each));
}

double bubble(const Timeline& timeline, int stage) {
  const double busy = timeline.busy.at(static_cast<size_t>(stage));
  return (timeline.length - busy) / busy;
}

double published_bubble(const Schedule& schedule, const Costs& of_each) {
  const auto [forward, backward, weight] = of_each;
  const double stages = schedule.stages, micro_batches = static_cast<double>(schedule.micro_batches);
  const double one = forward + backward + weight;
  if (!schedule.split) return (stages - 1) / (micro_batches * schedule.chunks);
  const double filled = std::min(stages, micro_batches) - 1;
  return ((stages - 1) * (forward + backward) - filled * weight) / (micro_batches * one);
}

Schedule schedule_of(std::string name, std::vector<std::vector<Task>> tasks) {
  Schedule schedule = {.name = std::move(name), .stages = static_cast<int>(tasks.size()), .tasks = std::move(tasks)};
  int last_chunk = 0;
  for (const std::vector<Task>& of_stage : schedule.tasks)
    for (const Task& task : of_stage) {
      last_chunk = std::max(last_chunk, task.chunk);
      schedule.micro_batches = std::max(schedule.micro_batches, task.micro_batch + 1);
      schedule.split |= task.work == Work::weight;
    }
  schedule.chunks = last_chunk / std::max(1, schedule.stages) + 1;
  return schedule;
}

}  // namespace kintsugi::plan
