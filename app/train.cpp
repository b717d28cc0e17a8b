#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "app/auto_layout.h"
#include "app/planned_step.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/sample_lines.h"
#include "app/shell_word.h"
#include "app/standard_streams.h"
#include "app/stop_signals.h"
#include "app/terminal.h"
#include "app/train_run.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"
#include "kintsugi/base/start_thread.h"
#include "kintsugi/base/thread_team.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/kernels/cpu/peak.h"
#include "kintsugi/models/models.h"
#include "kintsugi/train/trainer.h"
#include "kintsugi/train/worlds.h"

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
          {m.top1 ? fmt::format("top-1 {:.2f}%", 100 * *m.top1) : "", 8},
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

// What a run tells. While a step, a validation's batch or a checkpoint takes long, a thread says how long.
class Terminal : public train::Observer {
 public:
  // `unit`: what the speed counts, "tokens".
  explicit Terminal(std::string_view unit) : unit_(unit) {
    try {
      thread_ = base::start_thread([this] { tick(); });
    } catch (const base::UserError&) {  // the run may still go on, untold
    }
  }
  ~Terminal() override {
    base::if_memory_lasts([this] { finish(); });
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void note(const std::string& line) override {
    const std::lock_guard lock(mutex_);
    starting_ ? starting_->print(line) : progress_.print(line);
  }
  void preparing(std::string_view what) override {
    const std::lock_guard lock(mutex_);
    if (starting_) starting_->tell(std::string(what));
  }
  void begins(std::string_view what) override {
    const std::lock_guard lock(mutex_);
    begin(what);
  }
  void validating(int64_t done, int64_t samples) override { between_steps("validation", done, samples, "samples"); }
  void sampling(int64_t done, int64_t tokens) override { between_steps("writing texts", done, tokens, "tokens"); }
  void step(const train::Metrics& m, int64_t steps) override {
    const std::lock_guard lock(mutex_);
    starting_.reset();
    rate_.add(steady_seconds(), static_cast<double>(m.step));
    parts_ = step_parts(m, steps, rate_, progress_.terminal(), unit_);
    stays_ = m.validation_loss.has_value() || !m.samples.empty() || m.step == 1 || m.step == steps;
    progress_.update(fit_parts(parts_, columns()), stays_);
    for (const train::SampledText& sample : m.samples)
      for (const std::string& line : sample_lines(sample.prompt, sample.text, columns(), kMostSampleLines))
        progress_.print(line);
    begin("");
  }
  void finish() {
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

 private:
  int columns() const { return progress_.terminal() ? progress_.columns() : kAnyColumns; }

  void begin(std::string_view what) {
    now_ = what;
    since_ = steady_seconds();
    long_ = false;
  }

  // What is done after a step, which may take a while.
  void between_steps(std::string_view what, int64_t done, int64_t all, std::string_view unit) {
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

  void tick() {
    std::unique_lock lock(mutex_);
    double asked = 0;  // when a signal was seen
    while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return ended_; })) {
      const double now = steady_seconds();
      if (StopSignals::count != 0 && asked == 0) asked = now;
      base::if_memory_lasts([&] { tell(now, asked); });
    }
  }

  void tell(double now, double asked) {
    if (starting_ || now_.empty()) return;
    if (asked > 0 && now - asked > 0.5 && !told_) {
      progress_.update("stopping: this step is finished and saved first; Ctrl-C again ends at once", true);
      told_ = true;
    }
    if (now - since_ <= kLong) return;
    progress_.update(under_way(now - since_));
    long_ = true;
  }

  std::string under_way(double seconds) {
    const std::string time = base::format_duration(seconds);
    LineParts parts = parts_;
    parts.insert(parts.empty() ? parts.end() : parts.end() - 1,
                 {fmt::format("{} for {}", now_, time), 11, now_.starts_with("step") ? "+" + time : ""});
    return fit_parts(std::move(parts), columns());
  }

  std::string unit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Progress> starting_ = std::optional<Progress>(std::in_place, "starting");
  ProgressLine progress_;
  Rate rate_, between_;  // of steps with all that comes with them, and of what is done between two
  LineParts parts_;      // last shown
  std::string now_;      // what is done since then; empty: nothing that takes long
  double since_ = 0;
  bool long_ = false;   // a line said how long
  bool stays_ = false;  // the line of the last step
  bool told_ = false, ended_ = false;
  std::thread thread_;
};

config::Resolved read_with_layout(RunOptions& options, bool fastest) {
  config::Resolved config = read_run(options);
  if (!fastest) return config;
  add_fastest_layout(std::move(config), options);
  return read_run(options);
}

// As the command line has it, for ranks to compare.
std::string start_in_words(train::Resume resume) {
  switch (resume) {
    case train::Resume::no:
      return "train";
    case train::Resume::yes:
      return "train --resume";
    case train::Resume::if_any:
      return "train --resume auto";
  }
  throw base::InternalError("train", "a way to start that is none");
}

}  // namespace

void train_run(RunOptions options, const TrainRunOptions& train_options) {
  config::Resolved config =
      before_ranks_meet([&] { return read_with_layout(options, train_options.layout == kFastestLayout); });
  const train::PlanStep plan = before_ranks_meet([&] { return plan_step(config.settings); });
  train::TrainOptions train = {.config = std::move(config),
                               .resume = train_options.resume,
                               .stop = &StopSignals::count,
                               .stop_at = train_options.stop_at,
                               .plan = plan,
                               .begun = [] { StopSignals::at_once = false; }};
  if (!compile::on_a_device(train.config.settings)) {  // what a device can do is not measured here
    base::ThreadTeam team(static_cast<int>(train.config.settings.parallel.threads));
    train.peak_flops = kernels::cpu::measure_peak_flops(team, tensor::dtype_from(train.config.settings.train.dtype));
  }
  const std::string folder = train.config.settings.train.folder;
  const auto worlds = before_ranks_meet([&] { return train::make_worlds(train.config.settings); });
  const StopSignals signals;
  StopSignals::at_once = true;  // before there is a step to save
  Terminal terminal(models::unit_of(train.config.settings.model));
  const bool leads = worlds[0]->rank() == 0;
  train::Outcome outcome;
  try {
    require_same_start(worlds, "train", start_in_words(train_options.resume));
    outcome = train::train(std::move(train), worlds, terminal);
  } catch (const std::exception& e) {
    terminal.finish();
    end_all(worlds, e);
    throw;
  }
  terminal.finish();
  if (!leads) return;
  if (outcome.best_validation_loss)
    write_out("best validation loss {}\n", base::format_loss(*outcome.best_validation_loss));
  if (!outcome.checkpoint.empty()) write_out("checkpoint {}\n", outcome.checkpoint);
  if (outcome.finished) {
    write_out("done: {}, in {}\n", base::counted(outcome.step, "step"), base::one_line(folder, std::string::npos));
  } else {
    std::string sets;
    for (const std::string& set : options.sets) sets += (sets.empty() ? " --set " : " ") + shell_word(set);
    write_out("stopped after step {} ({}); go on with: kintsugi train {} --resume{}\n", outcome.step,
              name_of(outcome.reason), shell_word(options.path), sets);
  }
}

void add_train(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("train", "Trains a model as run.toml says, or resumes a run");
  const auto options = add_run_options(verb);
  const auto o = std::make_shared<TrainRunOptions>();
  // `--resume run.toml`: a word that is not auto is the configuration.
  const auto resumed = std::make_shared<std::string>();
  verb.flag_or_text(
      "--resume",
      [o, resumed](const std::string& word) {
        o->resume = word == "auto" ? train::Resume::if_any : train::Resume::yes;
        if (word != "auto") *resumed = word;
      },
      "[auto]", "Resume from the newest complete checkpoint of train.folder; auto: if there is a run, else begin it");
  verb.word("--layout", o->layout, {{"given", kFastestLayout}},
            "given: as the run says; auto: the fastest that a search finds for the ranks at hand, on the machine that "
            "[parallel] cluster describes")
      .show_default();
  verb.integer("--stop-at", o->stop_at, range_of("train.steps"),
               "Stop after this step as at a time limit: evaluate and save; --resume continues");
  verb.run([options, o, resumed] {
    RunOptions read = *options;
    if (!resumed->empty()) {
      if (!read.path.empty())
        throw base::UserError("train", "--resume {} is not auto; see kintsugi train --help",
                              base::one_line(*resumed, 60));
      read.path = *resumed;
    }
    train_run(std::move(read), *o);
  });
}

}  // namespace kintsugi::app
