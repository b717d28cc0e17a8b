// A place where jobs run, as a file of sites/ describes it: scheduler, partitions with their limits, what a node has,
// how ranks are started there, and the settings that its network needs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/launch/process.h"

namespace kintsugi::jobs {

// An environment variable, and why the site needs it.
struct Setting {
  std::string name, value, why;
};

// Jobs of at most this many nodes may run this long.
struct Limit {
  int64_t nodes = 0;
  double hours = 0;
};

struct Partition {
  std::string name;
  std::vector<Limit> limits;  // by nodes, ascending; empty: not known
  int64_t least_nodes = 1;
  int64_t devices = -1;  // of a node; -1: those of [node]
};

struct Site {
  std::string name;   // as it was asked for
  std::string title;  // "Frontier (OLCF)"
  launch::Scheduler scheduler = launch::Scheduler::none;
  // How a job goes on after its time limit: by the scheduler's requeue, or by submitting its script again.
  bool requeue = true;
  std::vector<std::string> directives;  // beside those that every job has; may hold {nodes}, as `launch` may
  std::vector<std::string> modules;
  std::string partition;  // the default; "": the scheduler's
  int64_t cores = 0;      // of a node, for ranks; 0: not known
  int64_t ranks = 0;      // on a node, at most; 0: not known
  int64_t devices = 0;    // of a node
  std::string vendor;     // of the devices: "nvidia", "amd", "intel"
  std::string memory;     // of a node: "512 GiB"; "": not known
  // The command that starts the ranks. {nodes}, {ranks}, {ranks_per_node}, {cores} (of a rank), {devices} (of a node)
  // and {mpi} (pmix or pmi2, by the MPI of this build) are filled in.
  std::string launch;
  std::string launch_devices;  // added to it where the run computes on devices
  std::string image, claim;    // of Kubernetes: the container, and the volume that holds the run
  std::vector<Setting> environment;
  std::vector<Partition> partitions;
};

// UserError "[job] PATH:LINE: ..." for unknown sections or keys, and values that are none.
Site read_site(std::string_view text, std::string_view path);

// A path, or a name: NAME.toml in sites/ of this folder, or beside the command or above it. UserError if there is none.
Site find_site(const std::string& name);

// The folders in which find_site looks.
std::vector<std::filesystem::path> site_folders();

}  // namespace kintsugi::jobs
