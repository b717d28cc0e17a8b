// A job: a run at a site, on some nodes for some time. Its script, and whether the site can have it at all.
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
  std::string asked;                   // the command that asked for it, for the first line
  std::string command;                 // kintsugi, by an absolute path
  std::vector<std::string> arguments;  // of launch: run.toml, --set ...
  std::string folder;                  // where it is started, absolute
  std::string run_folder;              // of the run, absolute: for logs, and the script
  std::string script;                  // the path of the script, absolute
  std::string partition, account;      // "": the site's default
  int64_t nodes = 1;
  int64_t ranks = 1;           // of the run, a multiple of `nodes`
  int64_t seconds = 0;         // the time limit
  int64_t save_seconds = 120;  // before the limit, in which the run ends its step and saves
  int64_t max_restarts = 100;
  bool on_devices = false;
  bool needs_nvidia = false;  // parallel.device = "cuda"
  std::string mpi = "pmix";   // by which srun joins ranks: pmix, or pmi2

  int64_t ranks_per_node() const { return ranks / nodes; }
};

// "90" (minutes), "1:30:00", "2-12:00:00", "30m", "2h", in seconds. UserError "[job] --time ..." for anything else.
int64_t seconds_of(std::string_view text);
// "1-02:03:04", "02:03:04"
std::string time_text(int64_t seconds);

// UserError for what the site cannot give: more nodes or time than the partition's limit, more ranks than a node has
// places for, devices of a partition without any, ranks that do not divide among the nodes.
void check(const Job& job);

// The script, or the manifest for Kubernetes, with every line's reason.
std::string script(const Job& job);

// The command that submits its script, which is at `path`: "sbatch job.sh".
std::string submit_command(const Job& job, std::string_view path);
// The program that this is run by: "sbatch"; "" where the script itself is run.
std::string_view submit_program(launch::Scheduler scheduler);

}  // namespace kintsugi::jobs
