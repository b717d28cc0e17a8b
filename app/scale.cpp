#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "app/fold.h"
#include "app/plan_scaling.h"
#include "app/program_of.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/table.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/models/models.h"
#include "kintsugi/report/scaling_picture.h"
#include "kintsugi/simulate/simulate.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/profile_run.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {
namespace {

using config::Settings;

struct ScaleOptions {
  std::shared_ptr<RunOptions> run;
  std::string ranks;
  int64_t warm_up = 2, steps = 5;
  std::string cluster, svg, csv;
};

// A step on this many ranks.
struct Measured {
  int64_t ranks = 0, samples = 0;
  double seconds = 0;
  std::optional<double> planned = {};
};

// Strong or weak scaling.
struct Study {
  std::string name, what;
  std::vector<Measured> rows;
};

double rate_of(const Settings& s, const Measured& m, double seconds) {
  return static_cast<double>(m.samples * s.train.sequence) / seconds;
}

Measured measure(const Settings& s, const ScaleOptions& o, const std::optional<simulate::Cluster>& cluster,
                 Progress& progress) {
  const auto tell = [&](const std::string& what) {
    progress.tell(fmt::format("{}, {}", base::counted(s.parallel.ranks, "rank"), what));
  };
  tell("compiling");
  const std::vector<program::Program> stages = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  const train::ProfiledRun run = train::profile_run(
      {.settings = s,
       .stages = stages,
       .warm_up = o.warm_up,
       .steps = o.steps,
       .now = [&](std::string_view what) { tell(std::string(what)); },
       .progress = [&](int64_t done, int64_t all) { tell(fmt::format("{} of {} steps", done, all)); }},
      train::make_worlds(s));
  Measured m = {.ranks = s.parallel.ranks, .samples = s.train.global_batch};
  for (const profile::RankProfile& r : run.profile.of_ranks) m.seconds = std::max(m.seconds, r.seconds);
  if (cluster) m.planned = simulate::simulate(stages, *cluster, simulate::softwares().front()).seconds;
  return m;
}

std::string print_study(const Settings& s, const Study& study) {
  const bool planned = std::ranges::any_of(study.rows, [](const Measured& m) { return m.planned.has_value(); });
  std::vector<std::vector<std::string>> cells = {
      {"ranks", "samples", "step", std::string(models::unit_of(s.model)), "each", "of ideal"}};
  if (planned) cells[0].insert(cells[0].end(), {"planned", ""});
  const auto each = [&](const Measured& m) { return rate_of(s, m, m.seconds) / static_cast<double>(m.ranks); };
  const std::string unit = fmt::format("{}/s", models::unit_of(s.model));
  for (const Measured& m : study.rows) {
    auto& line = cells.emplace_back(std::vector<std::string>{
        base::group_digits(m.ranks), base::group_digits(m.samples), base::format_seconds(m.seconds),
        base::format_rate(rate_of(s, m, m.seconds), unit), base::format_rate(each(m), unit),
        fmt::format("{:.1f}%", 100 * each(m) / each(study.rows.front()))});
    if (m.planned)
      line.insert(line.end(),
                  {base::format_seconds(*m.planned), fmt::format("{:+.1f}%", 100 * (*m.planned / m.seconds - 1))});
  }
  return fmt::format("{} scaling: {}\n", study.name, study.what) + table_within(kColumns, cells);
}

std::string studies_csv(const std::vector<Study>& studies) {
  std::string text = "scaling,ranks,samples,seconds,planned_seconds\n";
  for (const Study& study : studies)
    for (const Measured& m : study.rows)
      text += fmt::format("{},{},{},{:.9g},{}\n", study.name, m.ranks, m.samples, m.seconds,
                          m.planned ? fmt::format("{:.9g}", *m.planned) : "");
  return text;
}

std::string studies_picture(const Settings& s, const std::vector<Study>& studies) {
  std::vector<report::ScalingCurve> curves;
  for (const Study& study : studies) {
    report::ScalingCurve& curve = curves.emplace_back(report::ScalingCurve{study.name + " scaling", {}});
    for (const Measured& m : study.rows) {
      curve.measured.push_back({static_cast<double>(m.ranks), rate_of(s, m, m.seconds)});
      if (m.planned) curve.points.push_back({static_cast<double>(m.ranks), rate_of(s, m, *m.planned)});
    }
  }
  return report::scaling_picture(curves, "Scaling, as measured and as planned");
}

// The runs with as many replicas as fit on these ranks. Skips what does not divide, with a message.
std::vector<Study> studies_of(const Settings& s, const std::vector<int64_t>& ranks, const ScaleOptions& o,
                              const std::optional<simulate::Cluster>& cluster) {
  const int64_t replica = devices_of_replica(s), share = s.train.global_batch / s.parallel.data;
  std::vector<Study> studies = {
      {"strong", "the batch of the run, " + base::counted(s.train.global_batch, "sample"), {}},
      {"weak", fmt::format("as many samples a replica as in the run, {}", base::group_digits(share)), {}}};
  Progress progress("scaling");
  for (const int64_t n : ranks)
    for (size_t weak = 0; weak < 2; ++weak) {
      const int64_t data = n / replica;
      auto run = with_replicas(s, data, weak == 0 ? s.train.global_batch : share * data);
      if (!run) {
        progress.print(fmt::format("{} left out: the batch of {} does not divide", base::counted(n, "rank"),
                                   s.train.global_batch));
        continue;
      }
      run->parallel.threads = s.parallel.threads;
      studies[weak].rows.push_back(measure(*run, o, cluster, progress));
    }
  return studies;
}

void run(const ScaleOptions& o) {
  require_one_process("scale");
  const std::vector<int64_t> ranks = numbers_of_devices(o.ranks, "scale", "--on");
  RunOptions options = *o.run;
  config::Resolved resolved = read_run(options, RunsOn::any);
  refuse_run_files("scale", options, resolved.settings,
                   std::array<base::Output, 2>{{{"--svg", o.svg}, {"--csv", o.csv}}}, o.cluster);
  train::complete_from_data(resolved);
  Settings s = resolved.settings;
  const int64_t replica = devices_of_replica(s);
  for (const int64_t n : ranks)
    if (n % replica != 0)
      throw base::UserError("scale", "--on {}: a replica of the run's layout takes {} ranks; write a multiple", n,
                            replica);
  // All with the thread count of the largest.
  if (!resolved.origin("parallel.threads").given())
    s.parallel.threads = std::max<int64_t>(1, base::usable_cores() / ranks.back());
  const std::string& file = o.cluster.empty() ? s.parallel.cluster : o.cluster;
  std::optional<simulate::Cluster> cluster;
  if (!file.empty()) cluster = simulate::read_cluster(file);
  if (cluster && cluster->devices() < ranks.back())
    throw base::UserError("scale", "--on {}: {} has {} devices", ranks.back(), file, cluster->devices());
  if (ranks.back() * s.parallel.threads > base::usable_cores())
    write_err("warning: {} ranks of {} thread{} oversubscribe {} core{}; steps are slower accordingly\n", ranks.back(),
              s.parallel.threads, s.parallel.threads == 1 ? "" : "s", base::usable_cores(),
              base::usable_cores() == 1 ? "" : "s");
  const std::vector<Study> studies = studies_of(s, ranks, o, cluster);
  for (const Study& study : studies)
    if (!study.rows.empty()) write_out("{}", print_study(s, study));
  if (!o.csv.empty()) base::write_output(o.csv, studies_csv(studies));
  if (!o.svg.empty()) base::write_output(o.svg, studies_picture(s, studies));
  require_printed();
}

}  // namespace

void add_scale(Command& kintsugi) {
  const Verb verb =
      kintsugi.add_verb("scale", "Measures how a run scales with ranks, and compares with the simulation");
  const auto o = std::make_shared<ScaleOptions>();
  o->run = add_run_options(verb);
  verb.text("--on", o->ranks, "Numbers of ranks, e.g. 1,2,4; each runs as many replicas as fit")
      .type_name("N,...")
      .required();
  verb.integer("--steps", o->steps, {1, 1'000'000}, "Number of measured steps for each").show_default();
  verb.integer("--warm-up", o->warm_up, {0, 1'000'000}, "Steps before them").show_default();
  verb.text("--cluster", o->cluster, "Cluster file of this machine, from kintsugi bench; default: [parallel] cluster")
      .type_name("FILE");
  verb.text("--svg", o->svg, "Write simulated curves and measured points as SVG").type_name("FILE");
  verb.text("--csv", o->csv, "Write a CSV row per measurement, in seconds").type_name("FILE");
  verb.run([o] { run(*o); });
}

}  // namespace kintsugi::app
