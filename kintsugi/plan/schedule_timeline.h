// The times of the tasks of a schedule, with free communication: the length of a step and its bubble.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/plan/schedule.h"

namespace kintsugi::plan {

// The cost of a chunk's work for one micro-batch, in seconds or any unit. If the schedule is not split, a backward
// costs backward + weight.
struct Costs {
  double forward = 1;
  double backward = 1;
  double weight = 1;
};

struct Span {
  double begin = 0, end = 0;

  bool operator==(const Span&) const = default;
};

struct Timeline {
  double length = 0;                     // of the step: the last end
  std::vector<std::vector<Span>> spans;  // by stage, in the order of its tasks
  std::vector<double> busy;              // by stage: the sum of its spans
};

// Each stage runs its tasks in order, each as soon as the previous one and those that it waits for are done.
// `by_chunk` has an entry for each chunk of the model. InternalError if the costs do not fit the schedule, or stages
// wait forever.
Timeline timeline(const Schedule& schedule, const std::vector<Costs>& by_chunk);
Timeline timeline(const Schedule& schedule, const Costs& of_each = {});

// What tasks take, task by task.
struct TaskCosts {
  std::function<double(const Task&)> cost;
  std::function<double(const Task&)> alone = {};  // from its beginning until it needs what another stage sends; 0
  std::function<double(const Task&)> rest = {};   // from its result, which another stage takes up, to its end; 0
  double message = 0;                             // from its result until another stage has it
};
Timeline timeline(const Schedule& schedule, const TaskCosts& costs);

// A stage's idle time divided by its busy time.
double bubble(const Timeline& timeline, int stage);

// The bubble by formula, without a timeline, if all chunks cost the same; F, B, W are the costs, p stages of v chunks,
// m micro-batches. gpipe and 1f1b: (p-1)/m, Narayanan et al. 2021, section 2.2.1. interleaved: (p-1)/(v m), the same,
// 2.2.2. zero_bubble: (p-1)(F+B-W) / (m (F+B+W)), Qi et al. 2023, table 2, for m >= p; for m < p, with fewer weight
// gradients to fill it, ((p-1)(F+B) - (m-1)W) / (m (F+B+W)). The last two are equal to the timeline's if W is neither
// more than F nor more than B; with a larger W the bubble is larger.
double published_bubble(const Schedule& schedule, const Costs& of_each = {});

// The schedule that the tasks of a compiled program, in order and by stage, form: its numbers follow from them. It may
// be drawn and timed if check() accepts it.
Schedule schedule_of(std::string name, std::vector<std::vector<Task>> tasks);

}  // namespace kintsugi::plan
