// Visits the tasks of a schedule in a topological order.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "kintsugi/plan/schedule.h"

namespace kintsugi::plan {

// The tasks that a task depends on, besides those before it on its stage: at most two.
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

// Calls visit(stage, position) for each task once its dependencies are done. Returns the number of tasks visited per
// stage: if that is less than all, the stage deadlocks at the next. Per kind of work and chunk, micro-batches must be
// 0, 1, 2, ...
std::vector<size_t> walk(const Schedule& schedule, const std::function<void(int stage, size_t position)>& visit);

}  // namespace kintsugi::plan
