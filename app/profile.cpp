#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "app/measured_bubble.h"
#include "app/profile_tables.h"
#include "app/program_of.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/models/models.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/profile_run.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {
namespace {

struct ProfileVerbOptions {
  std::shared_ptr<RunOptions> run;
  int64_t warm_up = 2, steps = 5;
  std::filesystem::path trace, csv;
};

std::string heading(const config::Settings& s, const ProfileVerbOptions& o, const train::ProfiledRun& run,
                    const mesh::Mesh& mesh) {
  double seconds = 0;  // of the slowest
  for (const profile::RankProfile& r : run.profile.of_ranks) seconds = std::max(seconds, r.seconds);
  const auto tokens = static_cast<double>(s.train.global_batch * s.train.sequence);
  const auto count = [](int64_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  std::string text = fmt::format("{} after {} to warm up, {}, random samples:\n  {} a step, {}\n",
                                 count(o.steps, "step"), o.warm_up, s.train.dtype, base::format_seconds(seconds),
                                 base::format_rate(tokens / seconds, fmt::format("{}/s", models::unit_of(s.model))));
  const bool on_device = compile::on_a_device(s);
  text += fmt::format("{}{}, {}\nthe limit of a rank: {}\n", count(mesh.ranks(), "rank"),
                      mesh.ranks() == 1 ? "" : " (" + to_string(mesh) + ")",
                      on_device ? fmt::format("on device {}", name_of(compile::device_of(s)))
                                : count(s.parallel.threads, "thread") + " each",
                      train::print(run.limits, tensor::dtype_from(s.train.dtype)));
  if (run.profile.clocks > 0) text += fmt::format("clocks of ranks agree within {:.1f} us\n", 1e6 * run.profile.clocks);
  return text;
}

void run(const ProfileVerbOptions& o) {
  config::Resolved resolved = before_ranks_meet([&] {
    config::Resolved read = read_run(*o.run);
    const std::array<base::Output, 2> outputs = {{{"--trace", o.trace}, {"--csv", o.csv}}};
    refuse_run_files("profile", *o.run, read.settings, outputs);
    train::complete_from_data(read);
    return read;
  });
  const config::Settings& s = resolved.settings;
  const auto worlds = before_ranks_meet([&] { return train::make_worlds(s); });
  train::ProfiledRun profiled;
  std::vector<program::Program> stages;
  try {
    require_same_start(worlds, "profile", fmt::format("profile of {} steps after {}", o.steps, o.warm_up));
    train::require_ranks(*worlds[0], s, "profile");
    stages = programs_of(s);
    Progress progress("profiling");
    profiled = train::profile_run({.settings = s,
                                   .stages = stages,
                                   .warm_up = o.warm_up,
                                   .steps = o.steps,
                                   .trace = !o.trace.empty(),
                                   .now = [&](std::string_view what) { progress.tell(std::string(what)); },
                                   .progress = [&](int64_t done, int64_t all) { progress.count(done, all, "steps"); }},
                                  worlds);
    progress.finish();
  } catch (const std::exception& e) {
    end_all(worlds, e);
    throw;
  }
  if (worlds[0]->rank() != 0) return;
  if (!o.trace.empty()) base::write_output(o.trace, profiled.trace);
  if (!o.csv.empty()) base::write_output(o.csv, profile_csv(profiled));
  write_out("{}{}", heading(s, o, profiled, stages[0].mesh), print_profile(profiled));
  if (stages.size() > 1) write_out("{}", print_bubbles(stage_bubbles(stages, s, profiled.profile)));
  require_printed();
}

}  // namespace

void add_profile(Command& kintsugi) {
  const Verb verb =
      kintsugi.add_verb("profile", "Profiles some steps: times of instructions, and which rank waits for which");
  const auto o = std::make_shared<ProfileVerbOptions>();
  o->run = add_run_options(verb);
  constexpr config::Integer kSteps = {1, 1'000'000}, kWarmUp = {0, 1'000'000};
  verb.integer("--steps", o->steps, kSteps, "Steps that are measured").show_default();
  verb.integer("--warm-up", o->warm_up, kWarmUp, "Steps before them").show_default();
  verb.text("--trace", o->trace, "Write a trace for ui.perfetto.dev").type_name("FILE");
  verb.text("--csv", o->csv, "Write a CSV row per instruction and rank").type_name("FILE");
  verb.run([o] { run(*o); });
}

}  // namespace kintsugi::app
