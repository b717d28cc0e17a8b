#include <fmt/format.h>

#include "app/ranks.h"
#include "app/run_options.h"
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

std::string step_line(const train::Metrics& m, int64_t steps, bool bar) {
  std::string line = bar ? progress_bar(static_cast<double>(m.step) / static_cast<double>(steps), 16) + " " : "";
  line += fmt::format("step {}/{}  loss {}", m.step, steps, base::format_fixed(m.loss, 4));
  if (m.validation_loss) line += "  validation " + base::format_fixed(*m.validation_loss, 4);
  line += fmt::format("  {:.0f} tokens/s  {}", m.tokens_per_second, base::format_rate(m.flops_per_second, "FLOP/s"));
  if (m.peak_share > 0) line += fmt::format(" ({:.0f}%)", 100 * m.peak_share);
  return line + fmt::format("  {}  {} left", base::format_bytes(static_cast<uint64_t>(m.memory_bytes)),
                            base::format_duration(m.seconds * static_cast<double>(steps - m.step)));
}

class Terminal : public train::Observer {
 public:
  void note(const std::string& line) override { progress_.print(line); }
  void step(const train::Metrics& m, int64_t steps) override {
    progress_.update(step_line(m, steps, progress_.terminal()),
                     m.validation_loss.has_value() || m.step == 1 || m.step == steps);
  }
  void finish() { progress_.finish(); }

 private:
  ProgressLine progress_;
};

void run(const RunOptions& options, bool resume) {
  train::TrainOptions train = {
      .config = before_ranks_meet([&] { return read_run(options); }), .resume = resume, .stop = &StopSignals::count};
  {
    base::ThreadTeam team(static_cast<int>(train.config.settings.parallel.threads));
    train.peak_flops = kernels::cpu::measure_peak_flops(team);
  }
  const std::string folder = train.config.settings.train.folder;
  const auto worlds = before_ranks_meet([&] { return train::make_worlds(train.config.settings); });
  const StopSignals signals;
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
    for (const std::string& set : options.sets) sets += (sets.empty() ? " --set " : " ") + set;
    fmt::print("stopped after step {} ({}); go on with: kintsugi train {} --resume{}\n", outcome.step,
               name_of(outcome.reason), options.path, sets);
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
