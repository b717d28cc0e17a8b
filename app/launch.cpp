#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "app/ranks.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/supervisor.h"
#include "app/train_run.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/jobs/node_list.h"
#include "kintsugi/jobs/signs.h"
#include "kintsugi/jobs/supervise.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/train/node_checks.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

constexpr int kMostSigns = 512;  // of more ranks, only the first of each node gives signs of life

struct LaunchOptions {
  SupervisorOptions supervisor;
  int64_t attempt = 0;  // --supervised; 0: no launcher watches this rank
};

std::string this_rank(const launch::Process& p) {
  return fmt::format("rank {} on {}", p.rank, p.host);
}

// The launcher has ended with its node: no one would end or continue this run. Ends this process, and has the scheduler
// start the job again.
[[noreturn]] void continue_without_launcher(const launch::Process& p, const std::string& again, double seconds) {
  write_err("error: [launch] {}: no sign of life from the launcher for {:.0f} s; ending{}\n", this_rank(p), seconds,
            again.empty() ? "" : fmt::format(", and going on with: {}", again));
  std::fflush(nullptr);
  if (!again.empty() && p.local_rank == 0 && std::system(again.c_str()) != 0) std::_Exit(2);
  std::_Exit(1);
}

// Another rank was lost, and this one may wait for it. One that has an error to report has a second for it.
void leave_attempt() {
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::_Exit(1);
}

std::unique_ptr<jobs::SignWriter> signs_of(const LaunchOptions& o, const launch::Process& p,
                                           const config::Settings& settings) {
  if (o.attempt == 0 || (p.size > kMostSigns && p.local_rank != 0)) return nullptr;
  const fs::path folder = fs::path(settings.train.folder) / jobs::kSignsFolder;
  const auto limit = std::chrono::milliseconds(static_cast<int64_t>(1e3 * settings.launch.quiet_seconds));
  return std::make_unique<jobs::SignWriter>(jobs::SignWriter::Options{
      .path = folder / jobs::rank_sign(p.rank),
      .host = p.host,
      .address = jobs::address_of_this_machine(),
      .watched = folder / jobs::kLauncherSign,
      .limit = limit,
      .attempt = o.attempt,
      .slow =
          [&p, folder](double seconds) {
            write_err("warning: {}: the file system of \"{}\" did not respond for {:.0f} s\n", this_rank(p),
                      folder.parent_path().string(), seconds);
          },
      .lost = [&p, again = o.supervisor.again](double seconds) { continue_without_launcher(p, again, seconds); },
      .ended = leave_attempt});
}

void run_rank(const LaunchOptions& o, const RunOptions& run) {
  const launch::Process& process = launch::this_process();
  if (process.rank == 0) write_err("launch: {}\n", in_words(process));
  const config::Settings settings = before_ranks_meet([&] { return read_run(run, RunsOn::quiet).settings; });
  const auto sign = signs_of(o, process, settings);
  TrainRunOptions options = {.resume = train::Resume::if_any};
  if (settings.launch.check_seconds > 0)
    options.before = [&](comm::World& world) {
      for (const std::string& line : train::check_nodes(world, settings, process.host)) write_err("{}\n", line);
    };
  train_run(run, options);
}

void run_launch(const LaunchOptions& o, const RunOptions& run) {
  if (o.supervisor.with.empty()) return run_rank(o, run);
  require_one_process("launch --with");
  if (const std::string program = jobs::missing_program(o.supervisor.with); !program.empty())
    throw base::UserError("launch", "--with: {} not found; in a container, bind it from the host",
                          base::one_line(program, 60));
  jobs::require_distinct_hosts("launch", o.supervisor.with);
  supervise_run(o.supervisor, run);
}

}  // namespace

void add_launch(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("launch", "Trains within a job: starts, resumes and restarts the run");
  const auto run = add_run_options(verb);
  const auto o = std::make_shared<LaunchOptions>();
  SupervisorOptions& s = o->supervisor;
  verb.text("--with", s.with,
            "The command that starts the ranks (\"srun -n {ranks}\", \"mpirun -n 4\"), which are monitored and "
            "restarted; without it this process is itself a rank");
  verb.number("--stop-after", s.stop_after, {0, 1e9}, "Seconds after which the ranks save and stop; 0: no limit")
      .show_default();
  verb.text("--again", s.again, "The command that requeues the job after the ranks saved and stopped");
  verb.text("--guard", s.guard,
            "The command that queues a job that takes over if this one is killed, and prints its id");
  verb.integer("--ranks-per-node", s.ranks_per_node, {0, 1'000'000},
               "Ranks per node; 0: the ranks of the run divided by the nodes of the job")
      .show_default();
  verb.integer("--max-restarts", s.max_restarts, {-1, 1'000'000},
               "Maximum number of restarts; -1: launch.max_restarts of the run")
      .show_default();
  verb.integer("--supervised", o->attempt, {0, 1'000'000'000},
               "Set by --with for the ranks that it starts, which then write heartbeats to the run's folder")
      .show_default();
  verb.run([o, run] { run_launch(*o, *run); });
}

}  // namespace kintsugi::app
