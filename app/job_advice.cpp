#include "app/job_advice.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "app/program_of.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/simulate/simulate.h"
#include "kintsugi/train/corpus.h"

namespace kintsugi::app {
namespace {

// A step on fewer nodes that takes hardly longer: the others add communication and no speed.
constexpr double kHardlyLonger = 1.05;
constexpr double kReserve = 1.1;  // of the proposed time over the planned one

double step_seconds(const config::Settings& s, const simulate::Cluster& cluster) {
  return simulate::simulate(programs_of(s), cluster, simulate::softwares().front()).seconds;
}

// The run on half of its data axis; nothing if that is not a layout of it.
std::optional<config::Settings> halved(const RunOptions& run, const config::Settings& s) {
  if (s.parallel.data % 2 != 0 || s.parallel.ranks % 2 != 0) return std::nullopt;
  RunOptions options = run;
  options.sets.push_back(fmt::format("parallel.ranks={}", s.parallel.ranks / 2));
  options.sets.push_back(fmt::format("parallel.data={}", s.parallel.data / 2));
  try {
    config::Resolved config = read_run(options, RunsOn::quiet);
    train::complete_from_data(config);
    return config.settings;
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

std::string nodes_that_add_nothing(const jobs::Job& job, const RunOptions& run, const config::Settings& settings,
                                   const simulate::Cluster& cluster, double seconds) {
  int64_t nodes = job.nodes;
  double on_fewer = seconds;
  for (config::Settings s = settings; nodes % 2 == 0;) {
    const auto half = halved(run, s);
    if (!half) break;
    const double t = step_seconds(*half, cluster);
    if (t > kHardlyLonger * seconds) break;
    s = *half, nodes /= 2, on_fewer = t;
  }
  if (nodes == job.nodes) return "";
  return fmt::format(
      "at this global batch more than {} only add communication: the planned step takes {} on {} and {} on {}",
      base::counted(nodes, "node"), base::format_time(on_fewer), nodes, base::format_time(seconds), job.nodes);
}

}  // namespace

JobAdvice job_advice(const jobs::Job& job, const RunOptions& run, const config::Settings& s) {
  JobAdvice advice;
  if (s.parallel.cluster.empty()) return advice;
  const simulate::Cluster cluster = simulate::read_cluster(s.parallel.cluster);
  const double seconds = step_seconds(s, cluster), all = seconds * static_cast<double>(s.train.steps);
  const double trains = static_cast<double>(job.seconds - job.save_seconds);
  const double enough = kReserve * all + static_cast<double>(job.save_seconds) + 60;  // and the start
  const std::string planned =
      fmt::format("{} steps of {}, {} in all", s.train.steps, base::format_time(seconds), base::format_duration(all));
  if (all > trains)
    advice.warnings.push_back(
        fmt::format("the job ends before the run, which is planned as {}: it trains for {}, then needs {} like it",
                    planned, base::format_duration(trains),
                    base::counted(static_cast<int64_t>(std::ceil(all / trains)) - 1, "further job")));
  else
    advice.proposal = fmt::format("planned: {}; --time {:.0f} is enough", planned, std::ceil(enough / 60));
  if (std::string wasted = nodes_that_add_nothing(job, run, s, cluster, seconds); !wasted.empty())
    advice.warnings.push_back(std::move(wasted));
  return advice;
}

}  // namespace kintsugi::app
