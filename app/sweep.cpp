#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>

#include "app/ranks.h"
#include "app/run_options.h"
#include "app/shell_word.h"
#include "app/standard_streams.h"
#include "app/table.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/jobs/failures.h"
#include "kintsugi/jobs/pool.h"
#include "kintsugi/jobs/supervise.h"
#include "kintsugi/report/metrics_table.h"
#include "kintsugi/sweep/spec.h"
#include "kintsugi/sweep/sweep_page.h"
#include "kintsugi/sweep/trials.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;
using base::UserError;

// Trains the runs of a sweep, as many at a time as there are ranks for.
class SweepRun {
 public:
  explicit SweepRun(sweep::Spec spec) : spec_(std::move(spec)), folder_(spec_.folder) {
    sweep_.maximize = spec_.maximize;
    sweep_.measure = spec_.measure;
    sweep_.eta = spec_.eta;
    sweep_.population = spec_.method == sweep::Method::population;
    for (sweep::Values& values : sweep::candidates(spec_)) sweep_.trials.push_back({.values = std::move(values)});
    check_runs();
  }

  void run() {
    base::make_folders(folder_ / "runs");
    const base::FileLock lock(folder_ / ".lock", fmt::format("[sweep] another process is using {}", folder_.string()));
    if (auto begun = sweep::read_sweep(folder_, sweep_)) sweep_ = std::move(*begun);
    save();
    jobs::Pool pool;
    for (;;) {
      while (stops_ == 0 && sweep::exchange_is_due(sweep_)) exchange();
      if (stops_ == 0) start_what_fits(pool);
      if (pool.running() == 0) break;
      const jobs::Pool::Event event = pool.wait();
      if (event.signal != 0) {
        if (stops_++ == 0) say("stopping: the runs finish their step and save");
        pool.send(stops_ == 1 ? SIGUSR1 : SIGTERM);
        continue;
      }
      settle(event);
    }
    save();
    const size_t left = sweep::work(sweep_).size();
    if (stops_ > 0 && left > 0) {
      say(fmt::format("stopped; the same command continues"));
      return;
    }
    print_result();
  }

 private:
  static void say(const std::string& line) {
    write_err("sweep: {}\n", line);
    std::fflush(stderr);
  }

  fs::path run_folder(int64_t trial) const { return folder_ / "runs" / sweep::trial_name(trial); }
  fs::path log_of(int64_t trial) const { return folder_ / "runs" / (sweep::trial_name(trial) + ".log"); }

  std::vector<std::string> sets_of(int64_t trial) const {
    std::vector<std::string> sets;
    for (const auto& [key, value] : spec_.set) sets.push_back(key + "=" + value);
    for (const auto& [key, value] : sweep_.trials[static_cast<size_t>(trial)].values) sets.push_back(key + "=" + value);
    sets.push_back("train.folder=" + run_folder(trial).string());
    return sets;
  }

  // Reads the configuration of every run before the first one starts.
  void check_runs() {
    int64_t steps = 0, most_ranks = 1;
    bool threads_given = false;
    for (int64_t t = 0; t < std::ssize(sweep_.trials); ++t) {
      const config::Resolved config = read_trial(t);
      const config::Settings& s = config.settings;
      if (t > 0 && s.train.steps != steps && spec_.method == sweep::Method::halving)
        throw UserError("sweep", "runs have different train.steps, {} and {}; halving needs the same for all", steps,
                        s.train.steps);
      steps = std::max(steps, s.train.steps);
      steps_.push_back(s.train.steps);
      ranks_.push_back(s.parallel.ranks);
      most_ranks = std::max(most_ranks, s.parallel.ranks);
      threads_given |= config.origin("parallel.threads").given();
    }
    sweep_.rungs = sweep::rungs(spec_, steps);
    const int64_t cores = base::usable_cores();
    capacity_ = spec_.ranks > 0 ? spec_.ranks : std::max(cores, most_ranks);
    if (spec_.ranks == 0 && !spec_.with.empty())
      throw UserError("sweep", "sweep.with needs sweep.ranks, the ranks of the whole allocation");
    if (most_ranks > capacity_)
      throw UserError("sweep", "a run has {} ranks and the sweep {}; raise sweep.ranks, or lower parallel.ranks",
                      most_ranks, capacity_);
    // Runs of one machine share its cores.
    if (spec_.with.empty() && !threads_given)
      threads_ = std::max<int64_t>(1, cores / std::min(capacity_, most_ranks * std::ssize(sweep_.trials)));
  }

  config::Resolved read_trial(int64_t trial) const {
    try {
      return read_run({.path = spec_.run, .sets = sets_of(trial)}, RunsOn::any);
    } catch (const UserError& e) {
      std::string values;
      for (const auto& [key, value] : sweep_.trials[static_cast<size_t>(trial)].values)
        values += (values.empty() ? "" : ", ") + key + " = " + value;
      throw UserError("sweep", "{} ({}): {}", sweep::trial_name(trial), base::one_line(values, 300), e.what());
    }
  }

  std::string command(const sweep::Work& w) const {
    std::string text = "exec ";
    if (!spec_.with.empty()) {
      std::string with = spec_.with;
      const std::string ranks = fmt::format("{}", ranks_[static_cast<size_t>(w.trial)]);
      for (size_t at = 0; (at = with.find("{ranks}", at)) != std::string::npos;) with.replace(at, 7, ranks);
      text += with + " ";
    }
    text +=
        shell_word(fs::read_symlink("/proc/self/exe").string()) + " train " + shell_word(spec_.run) + " --resume auto";
    if (w.until < steps_[static_cast<size_t>(w.trial)]) text += fmt::format(" --stop-at {}", w.until);
    for (const std::string& set : sets_of(w.trial)) text += " --set " + shell_word(set);
    // Derived from the learning rate at the start of a run, and kept when it resumes.
    if (sweep_.population)
      text += fmt::format(" --set train.min_learning_rate={}", read_trial(w.trial).settings.train.min_learning_rate);
    if (threads_ > 0) text += fmt::format(" --set parallel.threads={}", threads_);
    return text;
  }

  // Copies the newest checkpoints of parents, which do not train meanwhile; repeated after an interruption.
  void exchange() {
    const std::vector<sweep::Exchange> exchanges = sweep::exchange(spec_, sweep_);
    for (const sweep::Exchange& e : exchanges) {
      const auto saved = checkpoint::list(run_folder(e.parent));
      if (saved.empty()) throw UserError("sweep", "{} has no checkpoint", sweep::trial_name(e.parent));
      const fs::path to = run_folder(e.trial), part = checkpoint::part_folder(to, saved.back().step);
      base::remove_if_possible(part);
      fs::copy(saved.back().folder, part, fs::copy_options::recursive);
      for (const checkpoint::SavedStep& old : checkpoint::list(to)) base::remove_if_possible(old.folder);
      checkpoint::remove_best(to);
      checkpoint::move_into_place(part, checkpoint::step_folder(to, saved.back().step));
      std::string values;
      for (const auto& [key, value] : e.values) values += fmt::format(", {} = {}", key, value);
      say(fmt::format("{} takes over the weights of {}{}", sweep::trial_name(e.trial), sweep::trial_name(e.parent),
                      base::one_line(values, 300)));
    }
    sweep::apply(exchanges, sweep_);
    save();
  }

  void start_what_fits(jobs::Pool& pool) {
    for (const sweep::Work& w : sweep::work(sweep_)) {
      const int64_t ranks = ranks_[static_cast<size_t>(w.trial)];
      if (running_.contains(w.trial) || used_ + ranks > capacity_) continue;
      pool.start(w.trial, command(w), log_of(w.trial));
      running_[w.trial] = w;
      used_ += ranks;
    }
  }

  void settle(const jobs::Pool::Event& event) {
    const sweep::Work w = running_.at(event.id);
    running_.erase(event.id);
    used_ -= ranks_[static_cast<size_t>(event.id)];
    sweep::Trial& trial = sweep_.trials[static_cast<size_t>(event.id)];
    const std::string name = sweep::trial_name(event.id);
    if (event.code == 0) {
      const auto result = result_of(w);
      if (result && std::isfinite(*result)) {
        trial.results.push_back(*result);
        say(fmt::format("{}: {} {:.6g} after step {}", name, sweep_.measure, *result, until(w)));
      } else if (result) {
        trial.failed = fmt::format("{} is not finite", sweep_.measure);
        say(name + ": " + trial.failed);
      } else if (stops_ == 0) {
        fail(trial, name, "ended before its last step");
      }
    } else if (stops_ == 0) {
      const std::vector<std::string> lines = jobs::error_lines_of(log_of(event.id));
      const std::string ended = jobs::in_words(jobs::Ended{.code = event.code});
      // The log has the errors of earlier attempts too: a killed run prints none.
      const jobs::Failure failure = event.code > 128 ? jobs::failure_of({}, ended) : jobs::failure_of(lines, ended);
      const std::string why = base::one_line(fmt::format("{}: {}", failure.kind->name, failure.line), 300);
      if (failure.kind->response == jobs::Response::stop) {
        ++trial.failures;
        trial.failed = why;
        say(name + ": " + why);
      } else {
        fail(trial, name, why);
      }
    }
    save();
  }

  void fail(sweep::Trial& trial, const std::string& name, const std::string& why) {
    ++trial.failures;
    if (trial.failures > spec_.restarts) trial.failed = fmt::format("failed {} times: {}", trial.failures, why);
    say(fmt::format("{}: {}; {}", name, why, trial.failed.empty() ? "starting again" : "given up"));
  }

  // Runs of a grid over train.steps end at their own last step.
  int64_t until(const sweep::Work& w) const { return std::min(w.until, steps_[static_cast<size_t>(w.trial)]); }

  // The measure at the end of the work; nothing if the run has not come that far. UserError for a measure that the run
  // does not have.
  std::optional<double> result_of(const sweep::Work& w) {
    const report::MetricsTable table = report::read_metrics(run_folder(w.trial) / "metrics.jsonl");
    if (table.last_step < until(w)) return std::nullopt;
    if (sweep_.measure.empty())
      sweep_.measure = table.measure("validation_loss").values.empty() ? "loss" : "validation_loss";
    const report::Measure& m = table.measure(sweep_.measure);
    if (m.values.empty()) {
      std::string known;
      for (const auto& [key, measure] : table.measures) known += (known.empty() ? "" : ", ") + key;
      throw UserError("sweep", "metrics.jsonl of {} has no {}; it has {}", sweep::trial_name(w.trial), sweep_.measure,
                      base::one_line(known, 300));
    }
    // The loss of single steps is noisy: the mean of the last tenth. Evaluations count alone.
    if (sweep_.measure != "loss") return m.values.back();
    const size_t count = std::max<size_t>(1, m.values.size() / 10);
    double sum = 0;
    for (size_t i = m.values.size() - count; i < m.values.size(); ++i) sum += m.values[i];
    return sum / static_cast<double>(count);
  }

  void save() const { sweep::write_sweep(folder_, sweep_); }

  void print_result() const {
    std::vector<report::MetricsTable> metrics;
    for (int64_t t = 0; t < std::ssize(sweep_.trials); ++t) {
      const fs::path path = run_folder(t) / "metrics.jsonl";
      std::error_code error;
      metrics.push_back(fs::exists(path, error) ? report::read_metrics(path) : report::MetricsTable());
    }
    base::write_file_atomically(folder_ / "sweep.csv", sweep::result_csv(spec_, sweep_));
    base::write_file_atomically(folder_ / "sweep.html", sweep::sweep_page(spec_, sweep_, metrics));
    std::vector<std::vector<std::string>> rows = {sweep::result_head(spec_, sweep_)};
    for (auto& row : sweep::result_rows(sweep_)) rows.push_back(std::move(row));
    for (auto& row : rows) row.pop_back();  // notes are long; sweep.csv has them
    constexpr size_t kMostPrinted = 21;
    const size_t all = rows.size() - 1;
    if (rows.size() > kMostPrinted) rows.resize(kMostPrinted);
    write_out("{}", table(rows));
    if (all >= kMostPrinted) print_at_once(fmt::format("  ... {} runs in all\n", all));
    const int64_t best = sweep::ranking(sweep_).front();
    const sweep::Trial& trial = sweep_.trials[static_cast<size_t>(best)];
    if (trial.results.empty()) throw UserError("sweep", "no run reached a result; see {}", log_of(best).string());
    std::string sets;
    for (const auto& [key, value] : trial.values) sets += " " + shell_word(key + "=" + value);
    print_at_once(
        fmt::format("best {}: {} {:.6g}\n  kintsugi train {} --set{}\n{} steps in {} runs; table and pictures: {}\n",
                    sweep::trial_name(best), sweep_.measure, trial.results.back(), shell_word(spec_.run), sets,
                    sweep::steps_trained(sweep_), all, (folder_ / "sweep.html").string()));
  }

  const sweep::Spec spec_;
  const fs::path folder_;
  sweep::Sweep sweep_;
  std::vector<int64_t> steps_, ranks_;  // by trial
  int64_t capacity_ = 0;                // ranks
  int64_t threads_ = 0;                 // of a rank; 0: as the run says
  int64_t used_ = 0;                    // ranks
  std::map<int64_t, sweep::Work> running_;
  int stops_ = 0;  // signals
};

}  // namespace

void add_sweep(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("sweep", "Trains many runs with different settings and compares them");
  const auto path = std::make_shared<fs::path>();
  verb.text("file", *path, "The sweep file: which keys vary, how, and the number of ranks").required();
  verb.run([path] {
    require_one_process("sweep");
    constexpr base::MostBytes kMost = {size_t{4} << 20, "a sweep"};
    SweepRun(sweep::read_spec(base::read_file(*path, kMost), path->string())).run();
  });
}

}  // namespace kintsugi::app
