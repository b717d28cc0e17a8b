#include "kintsugi/plan/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::plan {

using base::UserError;

namespace {

constexpr int64_t kMostTasks = int64_t{1} << 24;  // over all stages

// `first` forwards, then alternating backwards and forwards. With separate weight gradients, the backward of
// micro-batch m is followed by the weight gradient of micro-batch m - behind.
std::vector<Task> alternating(const Schedule& s, int chunk, int64_t first, int64_t behind = 0) {
  std::vector<Task> tasks;
  first = std::min(first, s.micro_batches);
  for (int64_t m = 0; m < first; ++m) tasks.push_back({Work::forward, chunk, m});
  for (int64_t m = 0; m < s.micro_batches; ++m) {
    tasks.push_back({Work::backward, chunk, m});
    if (s.split && m >= behind) tasks.push_back({Work::weight, chunk, m - behind});
    if (first + m < s.micro_batches) tasks.push_back({Work::forward, chunk, first + m});
  }
  for (int64_t m = std::max<int64_t>(0, s.micro_batches - behind); s.split && m < s.micro_batches; ++m)
    tasks.push_back({Work::weight, chunk, m});
  return tasks;
}

std::vector<Task> gpipe(const Schedule& s, int stage) {
  return alternating(s, stage, s.micro_batches);
}

std::vector<Task> one_forward_one_backward(const Schedule& s, int stage) {
  return alternating(s, stage, s.stages - stage);
}

std::vector<Task> zero_bubble(const Schedule& s, int stage) {
  return alternating(s, stage, s.stages - stage, stage);
}

// Forwards cycle through the chunks of the stage in rounds of as many micro-batches as there are stages; backwards do
// the same from the last chunk on. The warm-up has as many forwards as it takes until the last stage can send the first
// backward; then forwards and backwards alternate.
std::vector<Task> interleaved(const Schedule& s, int stage) {
  if (s.chunks == 1) return one_forward_one_backward(s, stage);
  const int64_t all = s.micro_batches * s.chunks, round = int64_t{s.stages} * s.chunks;
  const auto task = [&](Work work, int64_t i) -> Task {
    const int own = static_cast<int>(i % round / s.stages);
    return {work, stage + s.stages * (work == Work::forward ? own : s.chunks - 1 - own),
            i / round * s.stages + i % s.stages};
  };
  const int64_t first = std::min(all, int64_t{2} * (s.stages - stage - 1) + int64_t{s.chunks - 1} * s.stages);
  std::vector<Task> tasks;
  for (int64_t i = 0; i < all + first; ++i) {
    if (i < all) tasks.push_back(task(Work::forward, i));
    if (i >= first) tasks.push_back(task(Work::backward, i - first));
  }
  return tasks;
}

std::vector<std::string_view> names_with_several_chunks() {
  std::vector<std::string_view> names;
  for (const ScheduleRow& row : schedules())
    if (row.several_chunks) names.push_back(row.name);
  return names;
}

void admit(const ScheduleRow& row, int stages, int chunks, int64_t micro_batches) {
  const bool multiple = row.several_chunks && chunks > 1;
  if (stages < 1) throw UserError("plan", "schedule \"{}\" of {} stages; nearest stages: 1", row.name, stages);
  if (chunks < 1)
    throw UserError("plan", "schedule \"{}\" with {} chunks per stage; nearest chunks: 1", row.name, chunks);
  if (micro_batches < 1)
    throw UserError("plan", "schedule \"{}\" with {} micro-batches; nearest micro-batches: {}", row.name, micro_batches,
                    multiple ? stages : 1);
  if (chunks > 1 && !row.several_chunks)
    throw UserError("plan",
                    "schedule \"{}\" has one chunk per stage, not {}; nearest chunks: 1; a schedule that has several: "
                    "{}",
                    row.name, chunks, fmt::join(names_with_several_chunks(), ", "));
  int64_t most = kMostTasks / row.works() / stages / chunks;
  if (multiple) most -= most % stages;
  if (micro_batches > most)
    throw UserError("plan", "schedule \"{}\" with {} chunks in all and {} micro-batches has more than {} tasks{}",
                    row.name, int64_t{stages} * chunks, micro_batches, kMostTasks,
                    most > 0 ? fmt::format("; nearest micro-batches: {}", most) : "");
  if (multiple && micro_batches % stages != 0) {
    const int64_t below = micro_batches / stages * stages;
    throw UserError("plan",
                    "schedule \"{}\" of {} stages takes a multiple of {} micro-batches, not {}; nearest "
                    "micro-batches: {}{}",
                    row.name, stages, stages, micro_batches, below > 0 ? fmt::format("{}, ", below) : "",
                    below + stages);
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
  throw base::InternalError("plan", "unknown kind of work {}", static_cast<int>(work));
}

std::string to_string(const Task& task) {
  return fmt::format("{} of chunk {}, micro-batch {}", name_of(task.work), task.chunk, task.micro_batch);
}

const std::vector<ScheduleRow>& schedules() {
  static const std::vector<ScheduleRow> kRows = {
      {.name = "gpipe", .tasks = gpipe},
      {.name = "1f1b", .tasks = one_forward_one_backward},
      {.name = "interleaved", .tasks = interleaved, .several_chunks = true},
      {.name = "zero_bubble", .tasks = zero_bubble, .split = true},
  };
  return kRows;
}

std::vector<std::string_view> schedule_names() {
  std::vector<std::string_view> names;
  for (const ScheduleRow& row : schedules()) names.push_back(row.name);
  return names;
}

const ScheduleRow& schedule_named(std::string_view name) {
  for (const ScheduleRow& row : schedules())
    if (row.name == name) return row;
  const std::vector<std::string_view> names = schedule_names();
  throw UserError("plan", "unknown schedule \"{}\"; did you mean {}? There are {}", name, base::nearest(name, names),
                  fmt::join(names, ", "));
}

Schedule make_schedule(const ScheduleRow& row, int stages, int chunks, int64_t micro_batches) {
  admit(row, stages, chunks, micro_batches);
  Schedule schedule = {.name = std::string(row.name),
                       .stages = stages,
                       .chunks = chunks,
                       .micro_batches = micro_batches,
                       .split = row.split,
                       .tasks = {}};
  for (int stage = 0; stage < stages; ++stage) schedule.tasks.push_back(row.tasks(schedule, stage));
  return schedule;
}

Schedule make_schedule(std::string_view name, int stages, int chunks, int64_t micro_batches) {
  return make_schedule(schedule_named(name), stages, chunks, micro_batches);
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
