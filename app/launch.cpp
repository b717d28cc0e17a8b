#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "app/ranks.h"
#include "app/run_options.h"
#include "app/shell_word.h"
#include "app/standard_streams.h"
#include "app/train_run.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/jobs/attempts.h"
#include "kintsugi/jobs/failures.h"
#include "kintsugi/jobs/supervise.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/train/run_end.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

constexpr int kNoProgress = 93;  // the exit code that says that another attempt would be as useless

struct LaunchOptions {
  std::string with, again;
  double stop_after = 0;
  int64_t max_restarts = 100;
};

void say(const std::string& line) {
  write_err("launch: {}\n", line);
  std::fflush(stderr);
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int64_t newest_step(const fs::path& folder) {
  const auto saved = checkpoint::list(folder);
  return saved.empty() ? 0 : saved.back().step;
}

// The ranks of a run, started again until it has done its steps.
class Supervisor {
 public:
  Supervisor(const LaunchOptions& options, const RunOptions& run, const config::Settings& settings)
      : options_(options), run_(run), folder_(settings.train.folder), steps_(settings.train.steps) {}

  void run() {
    say(in_words(launch::this_process()));
    for (;;) {
      require_another();
      const jobs::Ended ended = attempt();
      if (settle(ended)) return;
    }
  }

 private:
  // Of this command as a rank.
  std::string command() const {
    std::string command = "exec " + options_.with + " " + shell_word(fs::read_symlink("/proc/self/exe").string()) +
                          " launch " + shell_word(run_.path);
    for (const std::string& set : run_.sets) command += " --set " + shell_word(set);
    return command;
  }

  void require_another() {
    std::vector<jobs::Attempt> attempts = jobs::read_attempts(folder_);
    const auto refusal = jobs::refusal(attempts, newest_step(folder_), options_.max_restarts);
    attempt_ = {};
    attempt_.number = attempts.empty() ? 1 : attempts.back().number + 1;
    if (!refusal) return;
    attempts.back().given_up = true;
    if (attempts.back().ended == 0) attempts.back().ended = now(), attempts.back().to = newest_step(folder_);
    jobs::add_end(folder_, attempts.back());
    throw EndedWith(refusal->no_progress ? kNoProgress : 1, "launch", "{}; the run is not restarted automatically",
                    refusal->why);
  }

  jobs::Ended attempt() {
    attempt_.job = launch::this_process().job;
    attempt_.began = now();
    attempt_.from = newest_step(folder_);
    jobs::add_begin(folder_, attempt_);
    const double left =
        options_.stop_after > 0
            ? std::max(1.0, options_.stop_after - std::chrono::duration<double>(Clock::now() - began_).count())
            : 0.0;
    return jobs::supervise(command(), left);
  }

  void end(jobs::Outcome outcome, std::string why, bool given_up = false) {
    attempt_.outcome = outcome;
    attempt_.ended = now();
    attempt_.to = newest_step(folder_);
    attempt_.why = base::one_line(why, 300);
    attempt_.given_up = given_up;
    jobs::add_end(folder_, attempt_);
  }

  // Whether that was all for this process.
  bool settle(const jobs::Ended& ended) {
    const auto end_of_run = ended.code == 0 ? train::read_end(folder_) : std::nullopt;
    if (end_of_run && end_of_run->error.empty() && end_of_run->stop == train::Stop::none) {
      end(jobs::Outcome::finished, "");
      say(fmt::format("finished: {}, in {}", base::counted(end_of_run->step, "step"),
                      base::counted(attempt_.number, "attempt")));
      return true;
    }
    const jobs::Failure failure = jobs::failure_of(ended.lines, in_words(ended));
    const bool fails_again = ended.code != 0 && failure.kind->response == jobs::Response::stop;
    if ((ended.told && !fails_again) || (end_of_run && end_of_run->stop != train::Stop::none)) return go_on(ended);
    const std::string victim = jobs::victim_of(ended.lines);
    const std::string why =
        fmt::format("{}{}: {}", failure.kind->name, victim.empty() ? "" : " (" + victim + ")", failure.line);
    end(jobs::Outcome::failed, why, fails_again);
    if (fails_again)
      throw base::UserError("launch", "{}; this error would recur, so the run is not restarted{}{}",
                            base::one_line(why, 600), failure.kind->advice.empty() ? "" : ": ", failure.kind->advice);
    say(fmt::format("{}; restarting from step {}", base::one_line(why, 600), attempt_.to));
    return false;
  }

  // It was told to end, or ended by its own limit.
  bool go_on(const jobs::Ended& ended) {
    end(jobs::Outcome::stopped, ended.code == 0 ? "told to end" : fmt::format("told to end; {}", in_words(ended)));
    const std::string at = fmt::format("stopped at step {} of {}", attempt_.to, steps_);
    if (options_.again.empty()) {
      say(at + "; start it again to go on");
      return true;
    }
    require_another();  // or the job would be queued for nothing
    say(fmt::format("{}; going on with: {}", at, options_.again));
    if (std::system(options_.again.c_str()) != 0)
      throw base::UserError("launch", "`{}` failed; resubmit the job to continue", options_.again);
    return true;
  }

  using Clock = std::chrono::steady_clock;

  const LaunchOptions& options_;
  const RunOptions& run_;
  const fs::path folder_;
  const int64_t steps_;
  const Clock::time_point began_ = Clock::now();
  jobs::Attempt attempt_;
};

void run_launch(const LaunchOptions& o, const RunOptions& run) {
  const launch::Process& process = launch::this_process();
  if (o.with.empty()) {
    if (process.rank == 0) say(in_words(process));
    return train_run(run, {.resume = train::Resume::if_any});
  }
  require_one_process("launch --with");
  if (const std::string program = jobs::missing_program(o.with); !program.empty())
    throw base::UserError("launch", "--with: {} not found; in a container, bind it from the host",
                          base::one_line(program, 60));
  Supervisor(o, run, read_run(run, RunsOn::any).settings).run();
}

}  // namespace

void add_launch(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("launch", "Trains within a job: starts, resumes and restarts the run");
  const auto run = add_run_options(verb);
  const auto o = std::make_shared<LaunchOptions>();
  verb.text("--with", o->with,
            "The command that starts the ranks (\"srun -n 4\", \"mpirun -n 4\"), which are monitored and restarted; "
            "without it this process is itself a rank");
  verb.number("--stop-after", o->stop_after, {0, 1e9}, "Seconds after which the ranks save and stop; 0: no limit")
      .show_default();
  verb.text("--again", o->again, "The command that requeues the job after the ranks saved and stopped");
  verb.integer("--max-restarts", o->max_restarts, {0, 1'000'000}, "Maximum number of restarts").show_default();
  verb.run([o, run] { run_launch(*o, *run); });
}

}  // namespace kintsugi::app
