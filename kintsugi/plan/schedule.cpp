#include "kintsugi/plan/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::plan {

using base::UserError;

namespace {

constexpr int64_t kMostTasks = int64_t{1} << 24;  // of all stages together

// `first` forwards, then a backward and a forward in turn; the weight gradient, where it is a task of its own, is
// `behind` micro-batches later than the backward that it stands after.
std::vector<Task> alternating(int chunk, int64_t micro_batches, int64_t first, bool split = false, int64_t behind = 0) {
  std::vector<Task> tasks;
  first = std::min(first, micro_batches);
  for (int64_t m = 0; m < first; ++m) tasks.push_back({Work::forward, chunk, m});
  for (int64_t m = 0; m < micro_batches; ++m) {
    tasks.push_back({Work::backward, chunk, m});
    if (split && m >= behind) tasks.push_back({Work::weight, chunk, m - behind});
    if (first + m < micro_batches) tasks.push_back({Work::forward, chunk, first + m});
  }
  for (int64_t m = std::max<int64_t>(0, micro_batches - behind); split && m < micro_batches; ++m)
    tasks.push_back({Work::weight, chunk, m});
  return tasks;
}

// Forwards go through the chunks of the stage in rounds, as many micro-batches at a time as there are stages, and
// backwards likewise from the last chunk on. So many forwards come first that a backward is there as soon as the last
// stage can send it, and then a forward and a backward in turn.
std::vector<Task> interleaved(int stage, int stages, int chunks, int64_t micro_batches) {
  const int64_t all = micro_batches * chunks, round = int64_t{stages} * chunks;
  const auto task = [&](Work work, int64_t i) -> Task {
    const int own = static_cast<int>(i % round / stages);
    return {work, stage + stages * (work == Work::forward ? own : chunks - 1 - own), i / round * stages + i % stages};
  };
  const int64_t first = std::min(all, int64_t{2} * (stages - stage - 1) + int64_t{chunks - 1} * stages);
  std::vector<Task> tasks;
  for (int64_t i = 0; i < all + first; ++i) {
    if (i < all) tasks.push_back(task(Work::forward, i));
    if (i >= first) tasks.push_back(task(Work::backward, i - first));
  }
  return tasks;
}

void admit(std::string_view name, int stages, int chunks, int64_t micro_batches) {
  const std::vector<std::string_view>& names = schedule_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError("plan", "unknown schedule \"{}\"; did you mean {}? There are {}", name, base::nearest(name, names),
                    fmt::join(names, ", "));
  if (stages < 1) throw UserError("plan", "schedule \"{}\" of {} stages; nearest stages: 1", name, stages);
  if (chunks < 1) throw UserError("plan", "schedule \"{}\" with {} chunks per stage; nearest chunks: 1", name, chunks);
  if (micro_batches < 1)
    throw UserError("plan", "schedule \"{}\" with {} micro-batches; nearest micro-batches: {}", name, micro_batches,
                    name == "interleaved" && chunks > 1 ? stages : 1);
  if (chunks > 1 && name != "interleaved")
    throw UserError("plan",
                    "schedule \"{}\" has one chunk per stage, not {}; nearest chunks: 1; a schedule that has several: "
                    "interleaved",
                    name, chunks);
  const bool multiple = name == "interleaved" && chunks > 1;
  int64_t most = kMostTasks / (name == "zero_bubble" ? 3 : 2) / stages / chunks;
  if (multiple) most -= most % stages;
  if (micro_batches > most)
    throw UserError("plan", "schedule \"{}\" with {} chunks in all and {} micro-batches has more than {} tasks{}", name,
                    int64_t{stages} * chunks, micro_batches, kMostTasks,
                    most > 0 ? fmt::format("; nearest micro-batches: {}", most) : "");
  if (multiple && micro_batches % stages != 0) {
    const int64_t below = micro_batches / stages * stages;
    throw UserError("plan",
                    "schedule \"interleaved\" of {} stages takes a multiple of {} micro-batches, not {}; nearest "
                    "micro-batches: {}{}",
                    stages, stages, micro_batches, below > 0 ? fmt::format("{}, ", below) : "", below + stages);
  }
}

}  // namespace

std::string_view name_of(Work work) {
  switch (work) {
    case Work::forward:
      return "forward";
    case Work::backward:
      return "backward";
    case Work::weight:
      return "weight";
  }
  throw base::InternalError("plan", "a kind of work that is none: {}", static_cast<int>(work));
}

std::string to_string(const Task& task) {
  return fmt::format("{} of chunk {}, micro-batch {}", name_of(task.work), task.chunk, task.micro_batch);
}

const std::vector<std::string_view>& schedule_names() {
  static const std::vector<std::string_view> names = {"gpipe", "1f1b", "interleaved", "zero_bubble"};
  return names;
}

Schedule make_schedule(std::string_view name, int stages, int chunks, int64_t micro_batches) {
  admit(name, stages, chunks, micro_batches);
  Schedule schedule = {.name = std::string(name),
                       .stages = stages,
                       .chunks = chunks,
                       .micro_batches = micro_batches,
                       .split = name == "zero_bubble",
                       .tasks = {}};
  for (int stage = 0; stage < stages; ++stage) {
    if (name == "gpipe")
      schedule.tasks.push_back(alternating(stage, micro_batches, micro_batches));
    else if (name == "zero_bubble")
      schedule.tasks.push_back(alternating(stage, micro_batches, stages - stage, true, stage));
    else if (chunks == 1)
      schedule.tasks.push_back(alternating(stage, micro_batches, stages - stage));
    else
      schedule.tasks.push_back(interleaved(stage, stages, chunks, micro_batches));
  }
  return schedule;
}

InFlight in_flight(const Schedule& schedule, int stage, Work until) {
  const Work end = schedule.split && until == Work::weight ? Work::weight : Work::backward;
  InFlight most = {.by_chunk = std::vector<int64_t>(static_cast<size_t>(schedule.chunks), 0), .together = 0};
  std::vector<int64_t> now = most.by_chunk;
  int64_t together = 0;
  for (const Task& task : schedule.tasks.at(static_cast<size_t>(stage))) {
    const size_t own = static_cast<size_t>(task.chunk / schedule.stages);
    const int64_t change = task.work == Work::forward ? 1 : task.work == end ? -1 : 0;
    most.by_chunk[own] = std::max(most.by_chunk[own], now[own] += change);
    most.together = std::max(most.together, together += change);
  }
  return most;
}

}  // namespace kintsugi::plan
