#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/plan/schedule.h"
#include "kintsugi/plan/schedule_walk.h"

namespace kintsugi::plan {

using base::InternalError;

namespace {

std::string title(const Schedule& s) {
  return fmt::format("schedule \"{}\"", s.name);
}

void check_numbers(const Schedule& s) {
  base::require(s.stages >= 1 && s.chunks >= 1 && s.micro_batches >= 1, "plan",
                "{} has {} stages, {} chunks per stage and {} micro-batches", title(s), s.stages, s.chunks,
                s.micro_batches);
  base::require(s.tasks.size() == static_cast<size_t>(s.stages), "plan", "{} of {} stages has tasks of {}", title(s),
                s.stages, s.tasks.size());
}

// Each task occurs once, and on its stage.
void check_places(const Schedule& s) {
  const int works = s.split ? 3 : 2;
  std::vector<bool> seen(static_cast<size_t>(works) * static_cast<size_t>(s.all_chunks()) *
                         static_cast<size_t>(s.micro_batches));
  const auto at = [&](const Task& t) {
    return (static_cast<size_t>(t.work) * static_cast<size_t>(s.all_chunks()) + static_cast<size_t>(t.chunk)) *
               static_cast<size_t>(s.micro_batches) +
           static_cast<size_t>(t.micro_batch);
  };
  for (int stage = 0; stage < s.stages; ++stage)
    for (const Task& t : s.tasks[static_cast<size_t>(stage)]) {
      if (static_cast<int>(t.work) >= works)
        throw InternalError("plan", "{} has the task {} on stage {}, but its weight gradients are made in backward",
                            title(s), to_string(t), stage);
      if (t.chunk < 0 || t.chunk >= s.all_chunks() || t.micro_batch < 0 || t.micro_batch >= s.micro_batches)
        throw InternalError("plan", "{} of {} chunks and {} micro-batches has the task {} on stage {}", title(s),
                            s.all_chunks(), s.micro_batches, to_string(t), stage);
      if (t.chunk % s.stages != stage)
        throw InternalError("plan", "{} has the task {} on stage {}; its stage is {}", title(s), to_string(t), stage,
                            t.chunk % s.stages);
      if (seen[at(t)])
        throw InternalError("plan", "{} has the task {} twice on stage {}", title(s), to_string(t), stage);
      seen[at(t)] = true;
    }
  for (int work = 0; work < works; ++work)
    for (int chunk = 0; chunk < s.all_chunks(); ++chunk)
      for (int64_t m = 0; m < s.micro_batches; ++m) {
        const Task t = {static_cast<Work>(work), chunk, m};
        if (!seen[at(t)])
          throw InternalError("plan", "{} lacks the task {} on stage {}", title(s), to_string(t), chunk % s.stages);
      }
}

void check_order(const Schedule& s) {
  std::vector<int64_t> next(3 * static_cast<size_t>(s.all_chunks()), 0);
  for (const std::vector<Task>& tasks : s.tasks)
    for (const Task& t : tasks) {
      int64_t& expected =
          next[static_cast<size_t>(t.work) * static_cast<size_t>(s.all_chunks()) + static_cast<size_t>(t.chunk)];
      if (t.micro_batch != expected)
        throw InternalError("plan",
                            "{} has the task {} on stage {} before micro-batch {}; they come in ascending order",
                            title(s), to_string(t), t.chunk % s.stages, expected);
      ++expected;
    }
}

void check_waiting(const Schedule& s) {
  const std::vector<size_t> done = walk(s, [](int, size_t) {});
  const auto stuck = [&](size_t stage) { return done[stage] < s.tasks[stage].size(); };
  size_t stage = 0;
  while (stage < s.tasks.size() && !stuck(stage)) ++stage;
  if (stage == s.tasks.size()) return;
  // Follow dependencies from stage to stage until one repeats: the cycle begins there.
  struct Wait {
    size_t stage;
    std::string text;
  };
  std::vector<Wait> waits;
  const auto met = [&] {
    return std::find_if(waits.begin(), waits.end(), [&](const Wait& w) { return w.stage == stage; });
  };
  while (met() == waits.end()) {
    const Task& task = s.tasks[stage][done[stage]];
    for (const Task& before : waits_for(s, task)) {
      const size_t other = static_cast<size_t>(before.chunk % s.stages);
      const std::vector<Task>& list = s.tasks[other];
      const auto rest = list.begin() + static_cast<std::ptrdiff_t>(done[other]);
      if (std::find(rest, list.end(), before) == list.end()) continue;
      waits.push_back({stage, fmt::format("stage {} at {} for {}", stage, to_string(task), to_string(before))});
      stage = other;
      break;
    }
  }
  std::string text;
  for (auto w = met(); w != waits.end(); ++w) text += (text.empty() ? "" : "; ") + w->text;
  throw InternalError("plan", "{} waits forever: {}", title(s), text);
}

}  // namespace

void check(const Schedule& schedule) {
  check_numbers(schedule);
  check_places(schedule);
  check_order(schedule);
  check_waiting(schedule);
}

}  // namespace kintsugi::plan
