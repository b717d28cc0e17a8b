#include <fmt/format.h>

#include <optional>
#include <vector>

#include "app/auto_layout.h"
#include "app/find_rate.h"
#include "app/planned_step.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/shell_word.h"
#include "app/standard_streams.h"
#include "app/stop_signals.h"
#include "app/train_run.h"
#include "app/train_terminal.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/thread_team.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/kernels/host/peak.h"
#include "kintsugi/models/models.h"
#include "kintsugi/train/trainer.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {
namespace {

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
  if (train_options.find_rate) return find_learning_rate(options, std::move(config), train_options.picture);
  const train::PlanStep plan = before_ranks_meet([&] { return plan_step(config.settings); });
  train::TrainOptions train = {.config = std::move(config),
                               .resume = train_options.resume,
                               .stop = &StopSignals::count,
                               .stop_at = train_options.stop_at,
                               .plan = plan,
                               .begun = [] { StopSignals::at_once = false; }};
  if (!compile::on_a_device(train.config.settings)) {  // what a device can do is not measured here
    base::ThreadTeam team(static_cast<int>(train.config.settings.parallel.threads));
    train.peak_flops = kernels::host::measure_peak_flops(team, tensor::dtype_from(train.config.settings.train.dtype));
  }
  const std::string folder = train.config.settings.train.folder;
  const auto worlds = before_ranks_meet([&] { return train::make_worlds(train.config.settings); });
  const StopSignals signals;
  StopSignals::at_once = true;  // before there is a step to save
  TrainTerminal terminal(models::unit_of(train.config.settings.model));
  const bool leads = worlds[0]->rank() == 0;
  train::Outcome outcome;
  try {
    require_same_start(worlds, "train", start_in_words(train_options.resume));
    if (train_options.before && worlds[0]->backend().ranks == comm::RankKind::process) train_options.before(*worlds[0]);
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
    write_out("stopped after step {} ({}); continue with: kintsugi train {} --resume{}\n", outcome.step,
              name_of(outcome.reason), shell_word(options.path), sets);
  }
}

void add_train(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("train", "Trains a model, or resumes a run");
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
      "[auto]",
      "Resume from the newest complete checkpoint of train.folder; auto: resume if there is a run, otherwise start "
      "one");
  verb.word("--layout", o->layout, {{"given", kFastestLayout}},
            "given: as configured; auto: search for the fastest layout of the available ranks on [parallel] cluster")
      .show_default();
  verb.integer("--stop-at", o->stop_at, range_of("train.steps"),
               "Stop after this step as at a time limit: evaluate and save; --resume continues");
  const Option find = verb.flag("--find-learning-rate", o->find_rate,
                                "Instead of training: 100 steps with learning rates from 1e-7 to 10, their losses as a "
                                "table and a picture");
  verb.text("--picture", o->picture, "The SVG that --find-learning-rate writes").needs(find).show_default();
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
