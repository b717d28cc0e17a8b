// When each task of a schedule is done, where communication is free: the length of a step and its bubble.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/plan/schedule.h"

namespace kintsugi::plan {

// What a chunk's work costs for one micro-batch, in seconds or any unit. Where the schedule is not split, a backward
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

// Each stage does its tasks in order, each as soon as the one before and what it waits for are done. `by_chunk` has an
// entry for each chunk of the model. InternalError where the costs do not fit the schedule, or stages wait forever.
Timeline timeline(const Schedule& schedule, const std::vector<Costs>& by_chunk);
Timeline timeline(const Schedule& schedule, const Costs& of_each = {});

// A stage's idle time over its busy time.
double bubble(const Timeline& timeline, int stage);

// The bubble by formula, without a timeline, where all chunks cost the same; F, B, W are the costs, p stages of v
// chunks, m micro-batches. gpipe and 1f1b: (p-1)/m, Narayanan et al. 2021, section 2.2.1. interleaved: (p-1)/(v m), the
// same, 2.2.2. zero_bubble: (p-1)(F+B-W) / (m (F+B+W)), Qi et al. 2023, table 2, for m >= p; for m < p, where fewer
// weight gradients are there to fill it, ((p-1)(F+B) - (m-1)W) / (m (F+B+W)). The last two are what a timeline shows
// where W is neither more than F nor more than B; with a dearer W the bubble is larger.
double published_bubble(const Schedule& schedule, const Costs& of_each = {});

// The schedule that the tasks of a compiled program, in order and by stage, amount to: its numbers follow from them. It
// may be drawn and timed if check() admits it.
Schedule schedule_of(std::string name, std::vector<std::vector<Task>> tasks);

}  // namespace kintsugi::plan
