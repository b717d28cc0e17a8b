// The tasks of a schedule in an order in which each comes after those that it waits for.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "kintsugi/plan/schedule.h"

namespace kintsugi::plan {

// The tasks that a task waits for besides those before it on its stage: none, one or two.
class TasksBefore {
 public:
  void add(const Task& task) { all_[count_++] = task; }
  const Task* begin() const { return all_.data(); }
  const Task* end() const { return all_.data() + count_; }

 private:
  std::array<Task, 2> all_ = {};
  size_t count_ = 0;
};
TasksBefore waits_for(const Schedule& schedule, const Task& task);

// Calls visit(stage, position) for each task that can be done. Returns how many tasks of each stage were: if that is
// less than all, the stage waits forever at the next. For each kind of work and chunk, micro-batches are 0, 1, 2, ...
std::vector<size_t> walk(const Schedule& schedule, const std::function<void(int stage, size_t position)>& visit);

}  // namespace kintsugi::plan
