#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

#include "app/standard_streams.h"
#include "app/verbs.h"
#include "app/watched_run.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/jobs/attempts.h"
#include "kintsugi/jobs/suspects.h"
#include "kintsugi/report/metrics_table.h"
#include "kintsugi/train/stragglers.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

constexpr double kLongQuiet = 60;  // seconds without a step after which a run may not run any more

std::string clock_text(double seconds_since_1970) {
  const auto time = static_cast<std::time_t>(seconds_since_1970);
  std::tm local = {};
  ::localtime_r(&time, &local);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local)};
}

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The interval between checkpoints that loses the least time (Young 1974): sqrt(2 x time of a save x mean time between
// failures), both measured. Nothing before a failure.
std::optional<double> proposed_interval(double save, const std::vector<jobs::Attempt>& attempts) {
  double all = 0, failures = 0;
  for (const jobs::Attempt& a : attempts) {
    all += static_cast<double>(std::max<int64_t>(0, (a.ended > 0 ? a.ended : seconds_now()) - a.began));
    failures += a.outcome == jobs::Outcome::failed || (a.outcome == jobs::Outcome::unknown && &a != &attempts.back());
  }
  if (failures == 0 || save <= 0 || all <= 0) return std::nullopt;
  return std::sqrt(2 * save * all / failures);
}

// The mean of the last values of a measure; 0 without any.
double recent_mean(const report::Measure& m) {
  constexpr size_t kMost = 50;
  const size_t n = std::min(kMost, m.values.size());
  double sum = 0;
  for (size_t i = m.values.size() - n; i < m.values.size(); ++i) sum += m.values[i];
  return n == 0 ? 0 : sum / static_cast<double>(n);
}

double sum_of(const report::Measure& m) {
  double sum = 0;
  for (const double value : m.values) sum += value;
  return sum;
}

std::vector<std::string> stragglers_of(const fs::path& folder) {
  const fs::path path = folder / train::kStragglerFile;
  std::error_code error;
  std::vector<std::string> lines;
  if (!fs::is_regular_file(path, error)) return lines;
  std::istringstream text(base::read_file(path));
  for (std::string line; std::getline(text, line);) lines.push_back(base::one_line(line, 200));
  return lines;
}

void print_status(const fs::path& path) {
  WatchedFolder folder(path);
  const report::WatchedRun run = folder.look();
  const std::vector<jobs::Attempt> attempts = jobs::read_attempts(path);
  const int64_t done = run.metrics->last_step;
  const double step = recent_mean(run.metrics->measure("seconds"));
  const double tokens = recent_mean(run.metrics->measure("tokens_per_second"));
  std::string text = fmt::format("run         {}, {}\n", run.name, run.ranks);
  const auto add = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<11} {}\n", name, value);
  };
  const bool over = !run.ended.empty() || done >= run.steps;
  const bool quiet = run.quiet_seconds > std::max(kLongQuiet, 10 * step);
  const std::string job = attempts.empty() || attempts.back().job.empty() ? "" : ", job " + attempts.back().job;
  add("state", !run.ended.empty()  ? run.ended
               : done >= run.steps ? "finished"
               : quiet ? fmt::format("no step for {}: waiting, or killed", base::format_duration(run.quiet_seconds))
                       : "under way" + job);
  if (!run.error.empty()) add("error", base::one_line(run.error, 200));
  const auto& loss = run.metrics->measure("loss");
  add("step", fmt::format("{} of {}{}", done, run.steps,
                          loss.values.empty() ? "" : ", loss " + base::format_loss(loss.values.back())));
  if (step > 0) add("speed", fmt::format("{} a step, {:.0f} {}/s", base::format_seconds(step), tokens, run.unit));
  if (!over && !quiet)
    for (const std::string& line : stragglers_of(path)) add("straggler", line);
  add("checkpoint", run.saved_step
                        ? fmt::format("step {}, {} ago", *run.saved_step, base::format_duration(run.saved_seconds))
                        : "none yet");
  if (!attempts.empty()) {
    const jobs::Attempt& last = attempts.back();
    std::string line = fmt::format("{}", attempts.size());
    for (const jobs::Outcome o : {jobs::Outcome::stopped, jobs::Outcome::failed})
      if (const auto n = std::ranges::count(attempts, o, &jobs::Attempt::outcome); n > 0)
        line += fmt::format(", {} {}", n, jobs::name_of(o));
    if (!last.why.empty()) line += "; the last: " + base::one_line(last.why, 120);
    add("attempts", line);
    // Of the time since the first attempt began, the part in steps that count.
    const double all = static_cast<double>(std::max<int64_t>(
        1, (over && last.ended > 0
                ? last.ended
                : std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
                      .count()) -
               attempts.front().began));
    add("goodput",
        fmt::format("{:.0f}% of {} was spent in steps that were kept",
                    std::min(100.0, 100 * sum_of(run.metrics->measure("seconds")) / all), base::format_duration(all)));
  }
  const double save = recent_mean(run.metrics->measure("stage_seconds"));
  if (save > 0) {
    const double drain = recent_mean(run.metrics->measure("drain_seconds"));
    std::string line = fmt::format("the run waits {} for a checkpoint", base::format_time(save));
    if (drain > 0) line += fmt::format(", which is written within {} more", base::format_time(drain));
    if (const auto interval = proposed_interval(save, attempts))
      line += fmt::format("; by its failures, one every {} loses the least", base::format_duration(*interval));
    add("saves", line);
  }
  for (const jobs::Suspect& s :
       jobs::excluded(jobs::read_suspects(path), seconds_now(), attempts.empty() ? "" : attempts.back().job))
    add("excluded",
        fmt::format("{}{}: {}", s.node,
                    s.until == 0 ? "" : " for " + base::format_duration(static_cast<double>(s.until - seconds_now())),
                    base::one_line(s.why, 120)));
  if (!over && !quiet && step > 0) {
    const double left = step * static_cast<double>(run.steps - done);
    const double end =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count() + left;
    add("end", fmt::format("in {}, {}, if nothing interrupts it", base::format_duration(left), clock_text(end)));
  }
  if (!run.note.empty()) add("note", run.note);
  write_text(stdout, text);
}

}  // namespace

void add_status(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("status", "Prints the progress of a run from its folder");
  const auto folder = std::make_shared<fs::path>();
  verb.text("run", *folder, "The folder of a run ([train] folder)").required();
  verb.run([folder] { print_status(*folder); });
}

}  // namespace kintsugi::app
