#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kintsugi/plan/schedule_picture.h"

namespace kintsugi::plan {

namespace {

char letter(Work work) {
  return work == Work::forward ? 'F' : work == Work::backward ? 'B' : 'W';
}

std::string counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : what.ends_with('h') ? "es" : "s");
}

}  // namespace

std::string headline(const Schedule& schedule, const Timeline& timeline, std::string_view unit) {
  double most = 0;
  for (int stage = 0; stage < schedule.stages; ++stage) most = std::max(most, bubble(timeline, stage));
  return fmt::format("{}: {}, {}{}; {:.4g} {}, bubble {:.3g}%", schedule.name, counted(schedule.stages, "stage"),
                     schedule.chunks > 1 ? fmt::format("{} chunks on each, ", schedule.chunks) : "",
                     counted(schedule.micro_batches, "micro-batch"), timeline.length, unit, 100 * most);
}

std::string text_picture(const Schedule& schedule, int width) {
  const Timeline time = timeline(schedule);
  const size_t columns = static_cast<size_t>(std::lround(time.length));
  const size_t cell = 1 + fmt::formatted_size("{}", schedule.micro_batches - 1);
  const auto label = [&](int stage, int own) {
    std::string text = fmt::format("stage {:<{}}", stage, fmt::formatted_size("{}", schedule.stages - 1));
    if (schedule.chunks > 1)
      text += fmt::format(" chunk {:<{}}", stage + own * schedule.stages,
                          fmt::formatted_size("{}", schedule.all_chunks() - 1));
    return text + " |";
  };
  const size_t space =
      static_cast<size_t>(std::max(0, width)) - std::min(static_cast<size_t>(std::max(0, width)), label(0, 0).size());
  const size_t shown = std::min(columns, std::max<size_t>(1, space / cell));

  std::string text = headline(schedule, time) + "\n";
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const std::vector<Task>& tasks = schedule.tasks[static_cast<size_t>(stage)];
    const std::vector<Span>& spans = time.spans[static_cast<size_t>(stage)];
    for (int own = 0; own < schedule.chunks; ++own) {
      std::string line(shown * cell, ' ');
      std::vector<bool> idle(shown, true);
      for (size_t i = 0; i < tasks.size(); ++i)
        for (size_t at = static_cast<size_t>(spans[i].begin); at < std::min(shown, static_cast<size_t>(spans[i].end));
             ++at) {
          idle[at] = false;
          if (tasks[i].chunk / schedule.stages != own) continue;
          const bool first = at == static_cast<size_t>(spans[i].begin);
          line.replace(at * cell, cell,
                       first ? fmt::format("{}{:<{}}", letter(tasks[i].work), tasks[i].micro_batch, cell - 1)
                             : std::string(cell, '='));
        }
      for (size_t at = 0; at < shown; ++at)
        if (idle[at]) line[at * cell] = '.';
      line.erase(line.find_last_not_of(' ') + 1);
      text += label(stage, own) + line + "\n";
    }
  }
  if (shown < columns) text += fmt::format("the first {} of {} units\n", shown, columns);
  return text;
}

}  // namespace kintsugi::plan
