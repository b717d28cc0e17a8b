// A job: a run at a site on some nodes for some time. Generates its script and checks it against the site's limits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/jobs/site.h"

namespace kintsugi::jobs {

struct Job {
  Site site;
  std::string name;                    // of the job, without spaces
  std::string asked;                   // the command that requested it, for the first line
  std::string command;                 // absolute path of kintsugi
  std::vector<std::string> arguments;  // of launch: run.toml, --set ...
  std::string folder;                  // working directory, absolute
  std::string run_folder;              // of the run, absolute: for logs and the script
  std::string script;                  // absolute path of the script
  std::string partition, account;      // "": the site's default
  int64_t nodes = 1;
  int64_t least_nodes = 0;     // with which the job may start, after nodes were lost; 0: nodes
  int64_t spares = 0;          // nodes in addition to `nodes`, for those that are lost
  int64_t ranks = 1;           // of the run, a multiple of `nodes`
  int64_t seconds = 0;         // time limit
  int64_t save_seconds = 120;  // time before the limit in which the run finishes its step and saves
  bool guard = false;          // a second job takes over if the first is killed
  bool on_devices = false;
  bool needs_nvidia = false;  // parallel.device = "cuda"
  std::string mpi = "pmix";   // how srun connects ranks: pmix or pmi2

  int64_t ranks_per_node() const { return ranks / nodes; }
};

// Parses "90" (minutes), "1:30:00", "2-12:00:00", "30m" and "2h" to seconds. Throws UserError "[job] --time ..."
// otherwise.
int64_t seconds_of(std::string_view text);
// "1-02:03:04", "02:03:04"
std::string time_text(int64_t seconds);

// Throws UserError for what the site cannot provide: more nodes or time than the partition's limit, more ranks than fit
// on a node, devices on a partition without any, ranks that do not divide evenly among the nodes.
void check(const Job& job);

// Generates the script, or the manifest for Kubernetes, with the reason for every line.
std::string script(const Job& job);

// The command, in the script's shell, that queues the script again, to run if the job does not end well, and prints the
// id of that job; "" if the scheduler has none.
std::string again_of_guard(const Job& job);

// The command that submits the script at `path`: "sbatch job.sh".
std::string submit_command(const Job& job, std::string_view path);
// The program that submits: "sbatch"; "" where the script itself is run.
std::string_view submit_program(launch::Scheduler scheduler);

}  // namespace kintsugi::jobs
