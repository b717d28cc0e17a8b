// Times of the tasks of a schedule, assuming free communication: the length of a step and its bubble.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/plan/schedule.h"

namespace kintsugi::plan {

// Cost of a chunk's work per micro-batch, in seconds or any unit. If the schedule is not split, a backward costs
// backward + weight.
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
  double length = 0;                     // end of the last task
  std::vector<std::vector<Span>> spans;  // [stage], in the order of its tasks
  std::vector<double> busy;              // [stage] sum of its spans
};

// Each stage runs its tasks in order, each as soon as the previous one and its dependencies are done. `by_chunk` has
// one entry per chunk of the model. Throws InternalError if the costs do not match the schedule, or on deadlock.
Timeline timeline(const Schedule& schedule, const std::vector<Costs>& by_chunk);
Timeline timeline(const Schedule& schedule, const Costs& of_each = {});

// Costs of individual tasks.
struct TaskCosts {
  std::function<double(const Task&)> cost;
  std::function<double(const Task&)> alone =
      {};  // from the start of the task until it needs what another stage sends; default 0
  std::function<double(const Task&)> rest = {};  // from its result, which another stage consumes, to its end; default 0
  double message = 0;                            // from its result until another stage has received it
};
Timeline timeline(const Schedule& schedule, const TaskCosts& costs);

// Idle time of a stage divided by its busy time.
double bubble(const Timeline& timeline, int stage);

// The bubble in closed form, if all chunks cost the same. F, B, W are the costs; p stages of v chunks; m micro-batches.
// gpipe and 1f1b: (p-1)/m, Narayanan et al. 2021, section 2.2.1. interleaved: (p-1)/(v m), ibid., section 2.2.2.
// zero_bubble: (p-1)(F+B-W) / (m (F+B+W)), Qi et al. 2023, table 2, for m >= p; for m < p, with fewer weight gradients
// to fill the bubble, ((p-1)(F+B) - (m-1)W) / (m (F+B+W)). The last two equal the timeline's bubble if W is at most F
// and at most B; for larger W the timeline's is larger.
double published_bubble(const Schedule& schedule, const Costs& of_each = {});

// The schedule formed by the ordered tasks of each stage of a compiled program; its numbers are derived from them. Draw
// or time it only if check() accepts it.
Schedule schedule_of(std::string name, std::vector<std::vector<Task>> tasks);

}  // namespace kintsugi::plan
