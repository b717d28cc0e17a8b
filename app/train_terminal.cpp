#include "app/train_terminal.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "app/sample_lines.h"
#include "app/stop_signals.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"
#include "kintsugi/base/start_thread.h"

namespace kintsugi::app {
namespace {

constexpr int kAnyColumns = 1000;  // of a line that is no terminal's
constexpr size_t kMostSampleLines = 8;
constexpr double kLong = 1.5;  // seconds after which a line says what takes so long

using LineParts = std::vector<LinePart>;

// "1.0e-3"
std::string short_power(double x) {
  std::string text = fmt::format("{:.1e}", x);
  if (const size_t zero = text.find("e-0"); zero != text.npos) text.erase(zero + 2, 1);
  return text;
}

// A gradient that overflowed has no norm.
std::string gradient_part(const train::Metrics& m, std::string_view name) {
  return m.scaling && m.scaling->skips ? fmt::format("{} overflow", name)
                                       : fmt::format("{} {:.2f}", name, m.gradient_norm);
}

std::string scaling_part(const train::Metrics& m) {
  if (!m.scaling) return "";
  return fmt::format("scale {}{}", m.scaling->scale,
                     m.scaling->skipped > 0 ? fmt::format(" ({} skipped)", m.scaling->skipped) : "");
}

// "piqa acc 0.5310, acc_norm 0.5402; sciq acc 0.7410"
std::string task_line(const std::vector<train::TaskScore>& tasks) {
  std::string line, before;
  for (const train::TaskScore& t : tasks) {
    if (t.task != before) line += fmt::format("{}{}", line.empty() ? "" : "; ", base::one_line(t.task, 40));
    line += fmt::format("{} {} {}", t.task == before ? "," : "", t.metric, base::format_fixed(t.value, 4));
    before = t.task;
  }
  return line;
}

// On a terminal the parts that fit; those of least use are left out first.
LineParts step_parts(const train::Metrics& m, int64_t steps, const Rate& rate, bool bar, std::string_view unit) {
  const auto left = static_cast<double>(steps - m.step);
  const double share = static_cast<double>(m.step) / static_cast<double>(steps);
  const std::string count = fmt::format("{}/{}", m.step, steps),
                    validation = m.validation_loss ? base::format_loss(*m.validation_loss) : "";
  std::string flops = base::format_rate(m.flops_per_second, "FLOP/s");
  if (m.peak_share > 0) flops += fmt::format(" ({:.0f}%)", 100 * m.peak_share);
  return {{bar ? progress_bar(share, 12) : "", 3, bar ? progress_bar(share, 5) : ""},
          {"step " + count, 10, count},
          {"loss " + base::format_loss(m.loss), 9},
          {validation.empty() ? "" : "validation " + validation, 8, validation.empty() ? "" : "val " + validation},
          {m.rollouts ? fmt::format("reward {:.3f}", m.rollouts->reward) : "", 8},
          {m.validation_reward ? fmt::format("validation {:.3f}", *m.validation_reward) : "", 8},
          {m.preferences ? fmt::format("preferred {:.1f}%", 100 * m.preferences->accuracy) : "", 8},
          {m.top1 ? fmt::format("top-1 {:.2f}%", 100 * *m.top1) : "", 8},
          {m.rmse ? "RMSE " + base::format_loss(*m.rmse) : "", 8},
          {fmt::format("learning rate {:.2e}", m.learning_rate), 5, "lr " + short_power(m.learning_rate)},
          {gradient_part(m, "gradient"), 4, gradient_part(m, "grad")},
          {scaling_part(m), 4},
          {fmt::format("{:.0f} {}/s", m.tokens_per_second, unit), 6,
           m.tokens_per_second < 1e4 ? fmt::format("{:.0f} {}/s", m.tokens_per_second, unit.substr(0, 3))
                                     : fmt::format("{:.0f}k {}/s", m.tokens_per_second / 1e3, unit.substr(0, 3))},
          {flops, 1},
          {base::format_bytes(static_cast<uint64_t>(m.memory_bytes)) + " memory", 2},
          {rate.per_second() ? time_left(rate, left) : base::format_duration(m.seconds * left) + " left", 7}};
}

}  // namespace

TrainTerminal::TrainTerminal(std::string_view unit) : unit_(unit), starting_(std::in_place, "starting") {
  start();
}

TrainTerminal::TrainTerminal(std::string_view unit, ProgressOptions line, ProgressOptions starting)
    : unit_(unit), starting_(std::in_place, "starting", std::move(starting)), progress_(std::move(line)) {
  start();
}

TrainTerminal::~TrainTerminal() {
  base::if_memory_lasts([this] { finish(); });
}

void TrainTerminal::start() {
  try {
    thread_ = base::start_thread([this] { tick(); });
  } catch (const base::UserError&) {  // the run may still train, without the times of what takes long
  }
}

void TrainTerminal::note(const std::string& line) {
  const std::lock_guard lock(mutex_);
  starting_ ? starting_->print(line) : progress_.print(line);
}

void TrainTerminal::preparing(std::string_view what) {
  const std::lock_guard lock(mutex_);
  if (starting_) starting_->tell(std::string(what));
}

void TrainTerminal::begins(std::string_view what) {
  const std::lock_guard lock(mutex_);
  begin(what);
}

void TrainTerminal::validating(int64_t done, int64_t samples) {
  between_steps("validation", done, samples, "samples");
}

void TrainTerminal::scoring(int64_t done, int64_t requests) {
  between_steps("evaluation tasks", done, requests, "requests");
}

void TrainTerminal::sampling(int64_t done, int64_t tokens) {
  between_steps("writing texts", done, tokens, "tokens");
}

void TrainTerminal::step(const train::Metrics& m, int64_t steps) {
  const std::lock_guard lock(mutex_);
  starting_.reset();
  rate_.add(steady_seconds(), static_cast<double>(m.step));
  parts_ = step_parts(m, steps, rate_, progress_.terminal(), unit_);
  stays_ = m.validation_loss.has_value() || !m.tasks.empty() || !m.samples.empty() || m.step == 1 || m.step == steps;
  progress_.update(fit_parts(parts_, columns()), stays_);
  if (!m.tasks.empty()) progress_.print(task_line(m.tasks));
  for (const train::SampledText& sample : m.samples)
    for (const std::string& line : sample_lines(sample.prompt, sample.text, columns(), kMostSampleLines))
      progress_.print(line);
  begin("");
}

void TrainTerminal::finish() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  starting_.reset();
  if (long_ && stays_) progress_.clear();
  if (long_ && !stays_) progress_.update(fit_parts(parts_, columns()));
  long_ = false;
  progress_.finish();
}

int TrainTerminal::columns() const {
  return progress_.terminal() ? progress_.columns() : kAnyColumns;
}

void TrainTerminal::begin(std::string_view what) {
  now_ = what;
  since_ = steady_seconds();
  long_ = false;
}

// What is done after a step, which may take a while.
void TrainTerminal::between_steps(std::string_view what, int64_t done, int64_t all, std::string_view unit) {
  const std::lock_guard lock(mutex_);
  starting_.reset();
  if (done == 0) between_ = {};
  between_.add(steady_seconds(), static_cast<double>(done));
  const double share = static_cast<double>(done) / static_cast<double>(all);
  parts_ = {{std::string(what), 3},
            {progress_.terminal() ? progress_bar(share, 20) : "", 1},
            {fmt::format("{}/{} {}", done, all, unit), 2},
            {time_left(between_, static_cast<double>(all - done)), 1}};
  progress_.update(fit_parts(parts_, columns()));
  begin(what);
}

void TrainTerminal::tick() {
  std::unique_lock lock(mutex_);
  double asked = 0;  // when a signal was seen
  while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return ended_; })) {
    const double now = steady_seconds();
    if (StopSignals::count != 0 && asked == 0) asked = now;
    base::if_memory_lasts([&] { show_long(now, asked); });
  }
}

void TrainTerminal::show_long(double now, double asked) {
  if (starting_ || now_.empty()) return;
  if (asked > 0 && now - asked > 0.5 && !told_) {
    progress_.update("stopping after this step and a checkpoint; press Ctrl-C again to stop immediately", true);
    told_ = true;
  }
  if (now - since_ <= kLong) return;
  progress_.update(under_way(now - since_));
  long_ = true;
}

std::string TrainTerminal::under_way(double seconds) {
  const std::string time = base::format_duration(seconds);
  LineParts parts = parts_;
  parts.insert(parts.empty() ? parts.end() : parts.end() - 1,
               {fmt::format("{} for {}", now_, time), 11, now_.starts_with("step") ? "+" + time : ""});
  return fit_parts(std::move(parts), columns());
}

}  // namespace kintsugi::app
