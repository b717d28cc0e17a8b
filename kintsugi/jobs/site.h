// A place where jobs run, described by a file in sites/: scheduler, partitions and their limits, the resources of a
// node, how ranks are started, and the settings that its network requires.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/launch/process.h"

namespace kintsugi::jobs {

// An environment variable and why the site needs it.
struct Setting {
  std::string name, value, why;
};

// Jobs of at most `nodes` nodes may run for `hours`.
struct Limit {
  int64_t nodes = 0;
  double hours = 0;
};

struct Partition {
  std::string name;
  std::vector<Limit> limits;  // by nodes, ascending; empty: unknown
  int64_t least_nodes = 1;
  int64_t devices = -1;  // per node; -1: as in [node]
};

struct Site {
  std::string name;   // as requested
  std::string title;  // "Frontier (OLCF)"
  launch::Scheduler scheduler = launch::Scheduler::none;
  // How a job continues after its time limit: requeued by the scheduler, or by resubmitting its script.
  bool requeue = true;
  std::vector<std::string> directives;  // in addition to those of every job; may contain {nodes}, as `launch` may
  std::vector<std::string> modules;
  std::string partition;  // the default; "": the scheduler's
  int64_t cores = 0;      // per node, available to ranks; 0: unknown
  int64_t ranks = 0;      // per node, at most; 0: unknown
  int64_t devices = 0;    // per node
  std::string vendor;     // of the devices: "nvidia", "amd", "intel"
  std::string memory;     // per node: "512 GiB"; "": unknown
  // The command that starts the ranks. Substitutes {nodes}, {ranks}, {ranks_per_node}, {cores} (per rank), {devices}
  // (per node) and {mpi} (pmix or pmi2, depending on the MPI of this build).
  std::string launch;
  std::string launch_devices;  // appended to it where the run computes on devices
  std::string storage;         // of the run's folder: "lustre", "gpfs"; "": unknown
  std::string image, claim;    // for Kubernetes: the container image, and the volume claim that contains the run
  std::vector<Setting> environment;
  std::vector<Partition> partitions;
};

// Throws UserError "[job] PATH:LINE: ..." for unknown sections or keys and for invalid values.
Site read_site(std::string_view text, std::string_view path);

// Accepts a path or a name: NAME.toml in sites/ of the working directory, next to the command or above it. Throws
// UserError if there is none.
Site find_site(const std::string& name);

// The folders that find_site searches.
std::vector<std::filesystem::path> site_folders();

}  // namespace kintsugi::jobs
