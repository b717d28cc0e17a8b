#include "kintsugi/plan/schedule_walk.h"

#include <algorithm>
#include <array>

namespace kintsugi::plan {

TasksBefore waits_for(const Schedule& schedule, const Task& task) {
  const auto [work, chunk, micro_batch] = task;
  TasksBefore result;
  switch (work) {
    case Work::forward:
      if (chunk > 0) result.add({Work::forward, chunk - 1, micro_batch});
      break;
    case Work::backward:
      if (chunk + 1 < schedule.all_chunks()) result.add({Work::backward, chunk + 1, micro_batch});
      result.add({Work::forward, chunk, micro_batch});
      break;
    case Work::weight:
      result.add({Work::backward, chunk, micro_batch});
      break;
  }
  return result;
}

std::vector<size_t> walk(const Schedule& schedule, const std::function<void(int stage, size_t position)>& visit) {
  std::array<std::vector<int64_t>, 3> done;  // [work][chunk]: number of micro-batches done
  for (std::vector<int64_t>& of_work : done) of_work.assign(static_cast<size_t>(schedule.all_chunks()), 0);
  const auto count = [&](const Task& t) -> int64_t& {
    return done[static_cast<size_t>(t.work)][static_cast<size_t>(t.chunk)];
  };
  std::vector<size_t> at(schedule.tasks.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < schedule.tasks.size(); ++stage) {
      const std::vector<Task>& tasks = schedule.tasks[stage];
      for (; at[stage] < tasks.size(); ++at[stage], moved = true) {
        const Task& task = tasks[at[stage]];
        const TasksBefore before = waits_for(schedule, task);
        if (!std::all_of(before.begin(), before.end(), [&](const Task& b) { return count(b) > b.micro_batch; })) break;
        visit(static_cast<int>(stage), at[stage]);
        ++count(task);
      }
    }
  }
  return at;
}

}  // namespace kintsugi::plan
