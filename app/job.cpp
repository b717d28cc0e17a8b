#include "kintsugi/jobs/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>

#include "app/job_advice.h"
#include "app/program_of.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/shell_word.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/comm/mpi_world.h"
#include "kintsugi/compile/fit.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/memory_size.h"
#include "kintsugi/jobs/node_list.h"
#include "kintsugi/jobs/supervise.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/node_checks.h"
#include "kintsugi/train/run_files.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

struct JobOptions {
  std::string site = "local", time = "60", partition, account, output;
  int64_t nodes = 1, least_nodes = 0, spares = 0, save_seconds = 120;
  bool submit = false, guard = false;
};

// "runs/first" -> "first"; what schedulers do not take in a name becomes "-".
std::string job_name(const fs::path& run_folder) {
  std::string name = (run_folder / "").parent_path().filename().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  const size_t begin = name.find_first_not_of('-');
  return "kintsugi-" + (begin == std::string::npos ? "run" : name.substr(begin, 40));
}

// srun joins ranks of Open MPI by PMIx, and those of MPICH by PMI-2.
std::string srun_interface() {
  return comm::mpi_built() == "MPICH" ? "pmi2" : "pmix";
}

// As the user knows it.
fs::path script_path(const JobOptions& o, const config::Settings& s, bool manifest) {
  return o.output.empty() ? fs::path(s.train.folder) / (manifest ? "job.yaml" : "job.sh") : fs::path(o.output);
}

jobs::Job job_of(const JobOptions& o, const RunOptions& run, const config::Settings& s) {
  jobs::Job job;
  job.site = jobs::find_site(o.site);
  job.nodes = o.nodes;
  job.ranks = s.parallel.ranks;
  job.seconds = jobs::seconds_of(o.time);
  job.save_seconds = o.save_seconds;
  job.least_nodes = o.least_nodes;
  job.spares = o.spares;
  job.guard = o.guard;
  job.partition = o.partition;
  job.account = o.account;
  job.mpi = srun_interface();
  const config::Device device = config::device(s.parallel);
  job.needs_nvidia = device == config::Device::cuda;
  job.on_devices =
      job.needs_nvidia || (device == config::Device::automatic && job.site.vendor == "nvidia" && job.site.devices > 0);
  job.folder = fs::current_path().string();
  job.run_folder = fs::absolute(s.train.folder).lexically_normal().string();
  job.name = job_name(job.run_folder);
  job.command = fs::read_symlink("/proc/self/exe").string();
  job.arguments = {run.path};
  for (const std::string& set : run.sets) job.arguments.insert(job.arguments.end(), {"--set", set});
  const bool manifest = job.site.scheduler == launch::Scheduler::kubernetes;
  job.script = fs::absolute(script_path(o, s, manifest)).lexically_normal().string();
  job.asked = fmt::format("kintsugi job {} --site {} --nodes {} --time {}", shell_word(run.path), shell_word(o.site),
                          o.nodes, shell_word(o.time));
  return job;
}

// What a rank may use on a node of the site, and whether it is enough; "" if it is, or is not known.
std::string does_not_fit(const jobs::Job& job, config::Settings s) {
  if (s.parallel.memory_per_rank.empty()) {
    if (job.site.memory.empty() || job.on_devices) return "";
    const auto node = config::memory_size(job.site.memory);
    if (!node)
      throw base::UserError("job", "node.memory of {} is \"{}\"; write e.g. \"512 GiB\"", job.site.title,
                            base::one_line(job.site.memory, 40));
    s.parallel.memory_per_rank = fmt::format("{} MiB", *node / job.ranks_per_node() >> 20);
  }
  Progress progress("planning");
  const auto stages = programs_of(s);
  const auto excess = compile::excess(s, stages, {});
  return excess ? compile::one_line(*excess) : "";
}

// The run locks its folder, renames checkpoints into place, and compares times of files with the clock.
void require_usable(const fs::path& folder) {
  const fs::path path = folder / ".job_check", renamed = folder / ".job_check_renamed";
  try {
    const base::FileLock lock(path, "another command checks the folder");
    fs::rename(path, renamed);
  } catch (const base::UserError& e) {
    base::remove_if_possible(path);
    std::string_view why = e.what();
    why.remove_prefix(std::min(why.size(), why.find("] ") + 2));
    throw base::UserError("job", "the file system of {} cannot hold a run's folder, which needs locks and renames: {}",
                          base::in_quotes(folder.string()), why);
  } catch (const fs::filesystem_error& e) {
    base::remove_if_possible(path);
    throw base::UserError("job", "the file system of {} cannot hold a run's folder, which needs renames: {}",
                          base::in_quotes(folder.string()), e.code().message());
  }
  std::error_code error;
  const fs::file_time_type made = fs::last_write_time(renamed, error);
  base::remove_if_possible(renamed);
  const double ahead = std::chrono::duration<double>(made - fs::file_time_type::clock::now()).count();
  if (!error && std::abs(ahead) > train::kClockSeconds)
    throw base::UserError(
        "job", "the clock of the file system of {} is {:.0f} s {} that of this host; set both by NTP: chronyc makestep",
        base::in_quotes(folder.string()), std::abs(ahead), ahead > 0 ? "ahead of" : "behind");
}

void run_job(const JobOptions& o, const RunOptions& run) {
  require_one_process("job");
  config::Resolved config = read_run(run, RunsOn::any);
  const jobs::Job job = job_of(o, run, config.settings);
  check(job);
  jobs::require_distinct_hosts("job", job.site.launch);
  for (const std::string& directive : job.site.directives) jobs::require_distinct_hosts("job", directive);
  const std::string program = jobs::missing_program(jobs::submit_program(job.site.scheduler));
  if (o.submit && !program.empty())
    throw base::UserError("job",
                          "--submit: {} not found, so jobs cannot be submitted to {} from this host; leave --submit "
                          "out to write the script only",
                          program, job.site.title);
  refuse_run_files("job", run, config.settings, std::vector<base::Output>{{"--output", o.output}});
  train::complete_from_data(config);
  if (const std::string why = does_not_fit(job, config.settings); !why.empty())
    write_warning("the run does not fit: " + why);
  const JobAdvice advice = job_advice(job, run, config.settings);
  for (const std::string& warning : advice.warnings) write_warning(warning);
  base::make_folders(job.run_folder);
  require_usable(job.run_folder);
  base::write_output(job.script, script(job));
  const bool manifest = job.site.scheduler == launch::Scheduler::kubernetes;
  const std::string shown = script_path(o, config.settings, manifest).string();
  const std::string submit = jobs::submit_command(job, shown);
  write_out("{}: {} rank{} on {} node{} of {}, {}\n", shown, job.ranks, job.ranks == 1 ? "" : "s", job.nodes,
            job.nodes == 1 ? "" : "s", job.site.title, jobs::time_text(job.seconds));
  if (!advice.proposal.empty()) write_out("{}\n", advice.proposal);
  if (!o.submit) {
    write_out("submit it with: {}\n", submit);
    return;
  }
  std::fflush(stdout);
  if (const int status = std::system(submit.c_str()); status != 0)
    throw base::UserError("job", "`{}` failed; what it said is above", submit);
}

}  // namespace

void add_job(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("job", "Writes a job script for a cluster and submits it");
  const auto run = add_run_options(verb);
  const auto o = std::make_shared<JobOptions>();
  verb.text("--site", o->site, "A site of sites/ (slurm, pbs, flux, local, frontier, ...), or a site file")
      .show_default();
  verb.integer("--nodes", o->nodes, {1, 1'000'000}, "Number of nodes").show_default();
  verb.text("--time", o->time, "Time limit: 90 (minutes), 1:30:00, 2-12:00:00 (with days) or 2h").show_default();
  verb.text("--partition", o->partition, "Partition or queue; default: the site's");
  verb.text("--account", o->account, "Account or project to charge");
  verb.text("-o,--output", o->output, "Output script; default: job.sh in the run's folder");
  verb.integer("--save-seconds", o->save_seconds, {10, 86'400},
               "Seconds before the time limit at which the run saves and stops")
      .show_default();
  verb.integer("--least-nodes", o->least_nodes, {0, 1'000'000},
               "Nodes with which the job may start if some were lost, on Slurm; 0: --nodes")
      .show_default();
  verb.integer("--spares", o->spares, {0, 1'000'000}, "Further nodes that replace lost ones").show_default();
  verb.flag("--guard", o->guard, "Queue a second job that takes over if this one is killed");
  verb.flag("--submit", o->submit, "Submit it");
  verb.run([o, run] { run_job(*o, *run); });
}

}  // namespace kintsugi::app
