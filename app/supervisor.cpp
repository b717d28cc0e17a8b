#include "app/supervisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "app/command.h"
#include "app/fewer_ranks.h"
#include "app/shell_word.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/jobs/attempts.h"
#include "kintsugi/jobs/failures.h"
#include "kintsugi/jobs/placement.h"
#include "kintsugi/jobs/signs.h"
#include "kintsugi/jobs/supervise.h"
#include "kintsugi/jobs/suspects.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/train/run_end.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

constexpr int kMostStarts = 3;  // of an attempt, of which the first fail to find each other
constexpr auto kToStart = std::chrono::minutes(2);
constexpr int kNoProgress = 93;  // exit code: another attempt would be as useless

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

class Supervisor {
 public:
  Supervisor(const SupervisorOptions& options, const RunOptions& run)
      : options_(options), run_(run), settings_(read_run(run, RunsOn::any).settings), folder_(settings_.train.folder) {
    most_restarts_ = options.max_restarts >= 0 ? options.max_restarts : settings_.launch.max_restarts;
  }

  void run() {
    say(in_words(process_));
    base::make_folders(signs());
    sign_.emplace(jobs::SignWriter::Options{
        .path = signs() / jobs::kLauncherSign,
        .host = "",
        .address = jobs::address_of_this_machine(),
        .slow = [](double seconds) {
          say(fmt::format("the file system of the run's folder did not respond for {:.0f} s", seconds));
        }});
    set_guard();
    try {
      for (;;) {
        require_another();
        if (settle(attempt())) return;
      }
    } catch (...) {  // ended on purpose
      cancel_guard();
      throw;
    }
  }

 private:
  // The job that takes over if this one ends without its launcher's consent. It stays queued while this one is
  // requeued.
  void set_guard() {
    if (options_.guard.empty()) return;
    std::error_code error;
    const fs::path path = signs() / "guard";
    if (fs::exists(path, error)) {
      const std::string text = base::read_file(path);  // "JOB GUARD"
      if (text.starts_with(process_.job + " ")) return;
    }
    const std::string id = base::one_line(jobs::output_of(options_.guard), 80);
    const std::string job = id.substr(0, id.find_first_of(";\\ "));
    if (job.empty()) return say(fmt::format("`{}` failed; no job takes over if this one is killed", options_.guard));
    base::write_file_atomically(path, process_.job + " " + job);
    say(fmt::format("job {} takes over if this one is killed", job));
  }

  void cancel_guard() {
    std::error_code error;
    const fs::path path = signs() / "guard";
    if (options_.guard.empty() || !fs::exists(path, error)) return;
    const std::string text = base::read_file(path);
    if (!text.starts_with(process_.job + " ")) return;
    const std::string cancel = jobs::cancel_command(process_, text.substr(process_.job.size() + 1));
    if (!cancel.empty() && std::system(cancel.c_str()) != 0) say(fmt::format("`{}` failed", cancel));
    base::remove_if_possible(path);
  }

  // A job that the user has cancelled is not continued, by itself or by another. Slurm ends steps with "STEP 3.0 ON n1
  // CANCELLED AT ...", and adds "DUE TO TIME LIMIT" or the like where it is not the user's wish.
  void look_for_cancellation() {
    const std::string command = jobs::ending_command(process_);
    if (cancelled_ || limited_ || command.empty() || jobs::output_of("timeout 5 " + command).empty()) return;
    cancelled_ = true;
    say(options_.guard.empty() ? "the job was cancelled" : "the job was cancelled, and no other takes over");
    cancel_guard();
  }

  fs::path signs() const { return folder_ / jobs::kSignsFolder; }

  void require_another() {
    std::vector<jobs::Attempt> attempts = jobs::read_attempts(folder_);
    const auto refusal = jobs::refusal(attempts, newest_step(folder_), most_restarts_);
    attempt_ = {};
    attempt_.number = attempts.empty() ? 1 : attempts.back().number + 1;
    if (!refusal) return;
    attempts.back().given_up = true;
    if (attempts.back().ended == 0) attempts.back().ended = now(), attempts.back().to = newest_step(folder_);
    jobs::add_end(folder_, attempts.back());
    throw EndedWith(refusal->no_progress ? kNoProgress : 1, "launch", "{}; the run is not restarted automatically",
                    refusal->why);
  }

  int64_t ranks_per_node(const jobs::JobNodes& nodes) const {
    if (options_.ranks_per_node > 0) return options_.ranks_per_node;
    const int64_t count = std::max<int64_t>(1, std::ssize(nodes.all));
    return std::max<int64_t>(1, (settings_.parallel.ranks + count - 1) / count);
  }

  // Finds the nodes, and the layout of the ranks that they have places for.
  std::string placed() {
    const jobs::JobNodes nodes = jobs::nodes_of_job(process_);
    const std::vector<jobs::Suspect> bad = jobs::excluded(jobs::read_suspects(folder_), now(), process_.job);
    const int64_t per_node = ranks_per_node(nodes);
    jobs::Placement placement = jobs::place(nodes, bad, settings_.parallel.ranks, per_node, settings_.launch.shrink);
    sets_.clear();
    attempt_.ranks = settings_.parallel.ranks;
    for (const std::string& node : placement.left_out) {
      std::string why = "down";
      for (const jobs::Suspect& s : bad)
        if (s.node == node) why = s.why;
      say(fmt::format("{} is left out: {}", node, base::one_line(why, 200)));
    }
    if (placement.ranks < settings_.parallel.ranks) {
      const FewerRanks fewer = layout_for(run_, placement.ranks, per_node);
      sets_ = fewer.sets;
      attempt_.ranks = placement.ranks = fewer.ranks;
      const auto needed = static_cast<size_t>((fewer.ranks + per_node - 1) / per_node);
      while (placement.used.size() > needed) {
        placement.spare.push_back(placement.used.back());
        placement.used.pop_back();
      }
      say(fmt::format("{} of {} are left: {} instead of {}, {}", base::counted(std::ssize(placement.used), "node"),
                      std::max<int64_t>(std::ssize(nodes.all), (settings_.parallel.ranks + per_node - 1) / per_node),
                      base::counted(fewer.ranks, "rank"), settings_.parallel.ranks, fewer.words));
    }
    attempt_.nodes = jobs::join_nodes(placement.used);
    return jobs::placed_command(options_.with, process_, placement, per_node, fs::absolute(signs() / "hosts").string());
  }

  // Of this command as a rank.
  std::string command() {
    std::string command = "exec " + placed();
    command += " " + shell_word(fs::read_symlink("/proc/self/exe").string()) + " launch " + shell_word(run_.path);
    for (const std::string& set : run_.sets) command += " --set " + shell_word(set);
    for (const std::string& set : sets_) command += " --set " + shell_word(set);
    command += fmt::format(" --supervised {}", attempt_.number);
    if (!options_.again.empty()) command += " --again " + shell_word(options_.again);
    return command;
  }

  jobs::Ended attempt() {
    const std::string start = command();
    attempt_.job = process_.job;
    attempt_.began = now();
    attempt_.from = newest_step(folder_);
    jobs::add_begin(folder_, attempt_);
    for (int starts = 1;; ++starts) {
      bool failed_start = false;
      jobs::Ended ended = run_ranks(start, failed_start);
      if (!failed_start || ended.told || starts == kMostStarts) return ended;
      say("starting the ranks again");
    }
  }

  // `failed_start`: they did not find each other.
  jobs::Ended run_ranks(const std::string& start, bool& failed_start) {
    jobs::remove_signs(signs());
    const Clock::time_point started = Clock::now();
    const double left =
        options_.stop_after > 0
            ? std::max(1.0, options_.stop_after - std::chrono::duration<double>(started - began_).count())
            : 0.0;
    watch_.emplace(signs(), std::chrono::milliseconds(static_cast<int64_t>(1e3 * settings_.launch.quiet_seconds)));
    const auto found = [this](std::string why) {
      if (why.empty()) return why;
      say(why + "; ending the ranks");
      sign_->end_attempt(attempt_.number);
      return why;
    };
    const auto judge = [&](std::string_view line) {
      // The other ranks wait for it, and the scheduler would let them for a while.
      if (!jobs::victim_of({std::string(line)}).ranks.empty()) sign_->end_attempt(attempt_.number);
      if (line.find(" CANCELLED AT ") != line.npos) {
        limited_ |= line.find(" DUE TO ") != line.npos;
        look_for_cancellation();  // at once: this process will be killed
      }
      // They would wait for each other until parallel.timeout_seconds.
      if (jobs::is_failed_start(line) && Clock::now() - started < kToStart) {
        failed_start = true;
        say("the ranks do not find each other; ending them");
        return std::string(line);
      }
      // srun waits for the node, and the other ranks for its ranks.
      return found(line.find("Node failure on ") == line.npos ? "" : std::string(line));
    };
    return jobs::supervise(start, left, {.look = [&] { return found(watch_->look()); }, .judge = judge});
  }

  void end(jobs::Outcome outcome, std::string why, bool given_up = false) {
    attempt_.outcome = outcome;
    attempt_.ended = now();
    attempt_.to = newest_step(folder_);
    attempt_.why = base::one_line(why, 300);
    attempt_.given_up = given_up;
    jobs::add_end(folder_, attempt_);
  }

  // Remembers the node that caused the failure.
  void blame(const jobs::FailureKind& kind, const jobs::Victim& victim, const std::string& why) {
    if (victim.node.empty() || kind.blame == jobs::Blame::never) return;
    jobs::Suspect s = {.node = victim.node, .since = now(), .job = process_.job, .why = base::one_line(why, 300)};
    s.until =
        settings_.launch.exclude_hours > 0 ? s.since + static_cast<int64_t>(3600 * settings_.launch.exclude_hours) : 0;
    s.excluded =
        kind.blame == jobs::Blame::at_once || jobs::repeated(jobs::read_suspects(folder_), s.node, s.since, s.job);
    jobs::add_suspect(folder_, s);
    if (s.excluded)
      say(fmt::format("{} is excluded {}", s.node,
                      s.until == 0 ? "until this job ends"
                                   : "for " + base::format_duration(static_cast<double>(s.until - s.since))));
  }

  // The rank that a failure names. Of an error that the run itself reports it is the one that reports it: those that
  // end afterwards are its consequence.
  jobs::Victim victim_of(const jobs::Failure& failure, const std::vector<std::string>& lines) const {
    jobs::Victim victim = jobs::victim_of({failure.line});
    const int rank = jobs::reporting_rank(failure.line);
    const std::string node = rank >= 0 && attempt_.ranks > 1 ? watch_->node_of(rank) : "";
    const jobs::Victim reporter = node.empty() ? jobs::Victim() : jobs::Victim{fmt::format("{}", rank), node};
    if (victim.node.empty() && failure.kind->response == jobs::Response::stop) victim = reporter;
    if (victim.node.empty()) victim = jobs::victim_of(lines);
    return victim.node.empty() ? reporter : victim;
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
    std::vector<std::string> lines = ended.lines;
    if (!ended.why.empty()) lines = {ended.why};  // what follows is its consequence
    const jobs::Failure failure = jobs::failure_of(lines, in_words(ended));
    const bool fails_again = ended.code != 0 && failure.kind->response == jobs::Response::stop;
    if ((ended.told && !fails_again) || (end_of_run && end_of_run->stop != train::Stop::none)) return go_on(ended);
    const jobs::Victim victim = victim_of(failure, lines);
    const std::string who = in_words(victim);
    const std::string why =
        fmt::format("{}{}: {}", failure.kind->name, who.empty() ? "" : " (" + who + ")", failure.line);
    end(jobs::Outcome::failed, why, fails_again);
    if (fails_again)
      throw base::UserError("launch", "{}; this error would recur, so the run is not restarted{}{}",
                            base::one_line(why, 600), failure.kind->advice.empty() ? "" : ": ", failure.kind->advice);
    say(fmt::format("{}; restarting from step {}", base::one_line(why, 600), attempt_.to));
    blame(*failure.kind, victim, why);
    return false;
  }

  // It was told to end, or ended by its own limit.
  bool go_on(const jobs::Ended& ended) {
    const std::string why = ended.code == 0 ? "told to end" : fmt::format("told to end; {}", in_words(ended));
    end(jobs::Outcome::stopped, why);
    const std::string at = fmt::format("stopped at step {} of {}", attempt_.to, settings_.train.steps);
    look_for_cancellation();
    if (options_.again.empty() || cancelled_) {
      say(at + "; start it again to go on");
      return true;
    }
    const jobs::Attempt stopped = attempt_;
    require_another();  // or the job would be queued for nothing
    say(fmt::format("{}; going on with: {}", at, options_.again));
    attempt_ = stopped;
    end(jobs::Outcome::stopped, why + "; waits for: " + options_.again);
    if (std::system(options_.again.c_str()) != 0)
      throw base::UserError("launch", "`{}` failed; resubmit the job to continue", options_.again);
    return true;
  }

  using Clock = std::chrono::steady_clock;

  const SupervisorOptions& options_;
  const RunOptions& run_;
  const config::Settings settings_;
  const fs::path folder_;
  const launch::Process process_ = launch::this_process();
  const Clock::time_point began_ = Clock::now();
  int64_t most_restarts_ = 0;
  std::optional<jobs::SignWriter> sign_;  // during run()
  bool cancelled_ = false;                // the job, by the user
  bool limited_ = false;                  // the job, by its time limit or a preemption
  std::vector<std::string> sets_;         // of the layout, if it is not the run's
  std::optional<jobs::SignWatch> watch_;  // of the last attempt
  jobs::Attempt attempt_;
};

}  // namespace

void supervise_run(const SupervisorOptions& options, const RunOptions& run) {
  Supervisor(options, run).run();
}

}  // namespace kintsugi::app
