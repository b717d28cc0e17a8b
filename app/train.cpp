#include <fmt/format.h>

#include "app/progress.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/sample_lines.h"
#include "app/shell_word.h"
#include "app/stop_signals.h"
#include "app/terminal.h"
#include "app/verbs.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/peak.h"
#include "kintsugi/train/trainer.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {
namespace {

constexpr int kAnyColumns = 1000;  // of a line that is no terminal's
constexpr size_t kMostSampleLines = 8;

// On a terminal the parts that fit; those of least use are left out first.
std::string step_line(const train::Metrics& m, int64_t steps, const Rate& rate, const ProgressLine& line) {
  const bool bar = line.terminal();
  const auto left = static_cast<double>(steps - m.step);
  std::string flops = base::format_rate(m.flops_per_second, "FLOP/s");
  if (m.peak_share > 0) flops += fmt::format(" ({:.0f}%)", 100 * m.peak_share);
  return fit_parts({{bar ? progress_bar(static_cast<double>(m.step) / static_cast<double>(steps), 12) : "", 5},
                    {fmt::format("step {}/{}", m.step, steps), 10},
                    {"loss " + base::format_fixed(m.loss, 4), 9},
                    {m.validation_loss ? "validation " + base::format_fixed(*m.validation_loss, 4) : "", 8},
                    {fmt::format("learning rate {:.2e}", m.learning_rate), 4},
                    {fmt::format("gradient {:.2f}", m.gradient_norm), 3},
                    {fmt::format("{:.0f} tokens/s", m.tokens_per_second), 6},
                    {flops, 1},
                    {base::format_bytes(static_cast<uint64_t>(m.memory_bytes)) + " memory", 2},
                    {rate.per_second() ? time_left(rate, left) : base::format_duration(m.seconds * left) + " left", 7}},
                   bar ? line.columns() : kAnyColumns);
}

class Terminal : public train::Observer {
 public:
  void note(const std::string& line) override { starting_ ? starting_->print(line) : progress_.print(line); }
  void preparing(std::string_view what) override {
    if (starting_) starting_->tell(std::string(what));
  }
  void validating(int64_t done, int64_t samples) override { between_steps("validation", done, samples, "samples"); }
  void sampling(int64_t done, int64_t tokens) override { between_steps("writing texts", done, tokens, "tokens"); }
  void step(const train::Metrics& m, int64_t steps) override {
    starting_.reset();
    rate_.add(steady_seconds(), static_cast<double>(m.step));
    progress_.update(step_line(m, steps, rate_, progress_),
                     m.validation_loss.has_value() || !m.samples.empty() || m.step == 1 || m.step == steps);
    for (const train::SampledText& sample : m.samples)
      for (const std::string& line : sample_lines(sample.prompt, sample.text, columns(), kMostSampleLines))
        progress_.print(line);
  }
  void finish() {
    starting_.reset();
    progress_.finish();
  }

 private:
  int columns() const { return progress_.terminal() ? progress_.columns() : kAnyColumns; }

  // What is done after a step, which may take a while.
  void between_steps(std::string_view what, int64_t done, int64_t all, std::string_view unit) {
    starting_.reset();
    if (done == 0) between_ = {};
    between_.add(steady_seconds(), static_cast<double>(done));
    const double share = static_cast<double>(done) / static_cast<double>(all);
    progress_.update(fit_parts({{std::string(what), 3},
                                {progress_.terminal() ? progress_bar(share, 20) : "", 1},
                                {fmt::format("{}/{} {}", done, all, unit), 2},
                                {time_left(between_, static_cast<double>(all - done)), 1}},
                               columns()));
  }

  std::optional<Progress> starting_ = std::optional<Progress>(std::in_place, "starting");
  ProgressLine progress_;
  Rate rate_, between_;  // of steps with all that comes with them, and of what is done between two
};

void run(const RunOptions& options, bool resume) {
  train::TrainOptions train = {.config = before_ranks_meet([&] { return read_run(options); }),
                               .resume = resume,
                               .stop = &StopSignals::count,
                               .begin = [] { StopSignals::at_once = false; }};
  {
    base::ThreadTeam team(static_cast<int>(train.config.settings.parallel.threads));
    train.peak_flops = kernels::cpu::measure_peak_flops(team, tensor::dtype_from(train.config.settings.train.dtype));
  }
  const std::string folder = train.config.settings.train.folder;
  const auto worlds = before_ranks_meet([&] { return train::make_worlds(train.config.settings); });
  const StopSignals signals;
  StopSignals::at_once = true;  // up to the first step
  Terminal terminal;
  const bool leads = worlds[0]->rank() == 0;
  train::Outcome outcome;
  try {
    require_same_start(worlds, "train", resume ? "train --resume" : "train");
    outcome = train::train(std::move(train), worlds, terminal);
  } catch (const std::exception& e) {
    terminal.finish();
    end_all(worlds, e);
    throw;
  }
  terminal.finish();
  if (!leads) return;
  if (outcome.best_validation_loss)
    fmt::print("best validation loss {}\n", base::format_fixed(*outcome.best_validation_loss, 4));
  if (!outcome.checkpoint.empty()) fmt::print("checkpoint {}\n", outcome.checkpoint.string());
  if (outcome.finished) {
    fmt::print("done: {} steps, in {}\n", outcome.step, folder);
  } else {
    std::string sets;
    for (const std::string& set : options.sets) sets += (sets.empty() ? " --set " : " ") + shell_word(set);
    fmt::print("stopped after step {} ({}); go on with: kintsugi train {} --resume{}\n", outcome.step,
               name_of(outcome.reason), shell_word(options.path), sets);
  }
}

}  // namespace

void add_train(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("train", "Trains a model as run.toml says, or resumes a run");
  const auto options = add_run_options(verb);
  const auto resume = std::make_shared<bool>(false);
  verb.flag("--resume", *resume, "Resume from the newest complete checkpoint of train.folder");
  verb.run([options, resume] { run(*options, *resume); });
}

}  // namespace kintsugi::app
