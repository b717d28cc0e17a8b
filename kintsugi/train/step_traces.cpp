#include "kintsugi/train/step_traces.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"

namespace kintsugi::train {
namespace {

constexpr int64_t kFirst = 2;  // warm-up steps
constexpr std::chrono::seconds kSoon{5},
    kEvery{60};  // after the first measurement, which includes one-time costs; then

// Of a step, without the time in which the rank waited for others.
double busy_seconds(const StepProfiler& profiler) {
  int64_t waited = 0;
  const profile::StepTimes& times = profiler.times();
  for (size_t i = 0; i < profiler.waits().size(); ++i)
    if (profiler.waits()[i].waited_for >= 0) waited += profiler.waits()[i].until - times.instructions[i].begin;
  return 1e-9 * static_cast<double>(std::max<int64_t>(0, times.whole.length() - waited));
}

}  // namespace

StepTraces::StepTraces(Rank& rank, const std::filesystem::path* folder, Observer* observer, Stragglers& stragglers)
    : rank_(rank), folder_(folder), observer_(observer), stragglers_(stragglers) {}

void StepTraces::before_step() {
  if (!next_ && steps_ != kFirst) return;
  if (!clock_) clock_ = clock_offset(*rank_.all);
  profiler_.emplace(*rank_.executor, *rank_.all, *clock_, false);
  profiler_->begin();
}

void StepTraces::after_step(int64_t steps_done) {
  ++steps_;
  if (!profiler_) return;
  profiler_->end();
  const std::string json = gather_profile(*rank_.all, profiler_->take(), steps_done, *clock_);
  if (folder_) write(json);
  if (rank_.executor->on_device()) {
    stragglers_.add(busy_seconds(*profiler_), 1e-9 * static_cast<double>(profiler_->times().whole.length()));
    stragglers_.compare(steps_done);
  }
  profiler_.reset();
  next_ = false;
  ++measured_;
  last_ = Clock::now();
}

// The file is optional.
void StepTraces::write(const std::string& json) const {
  try {
    base::write_file_atomically(*folder_ / kProfileFile, json);
  } catch (const base::UserError& error) {
    if (observer_) observer_->note(fmt::format("warning: cannot store the step profile: {}", error.what()));
  }
}

bool StepTraces::due() const {
  const bool soon = measured_ == 1 || (rank_.executor->on_device() && stragglers_.undecided());
  return Clock::now() - last_ >= (soon ? kSoon : kEvery);
}

}  // namespace kintsugi::train
