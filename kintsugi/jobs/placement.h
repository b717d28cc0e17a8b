// Which nodes of a job the next attempt uses, and the command that starts its ranks there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/jobs/node_list.h"
#include "kintsugi/jobs/suspects.h"

namespace kintsugi::jobs {

struct Placement {
  std::vector<std::string> used;      // empty: unknown, or as the command chooses
  std::vector<std::string> left_out;  // nodes of the job that are down or excluded
  std::vector<std::string> spare;
  int64_t ranks = 0;   // that the used nodes have places for, at most those of the run
  bool fewer = false;  // than those of the run
};

// Nodes for `ranks`, `per_node` on each. Leaves out what is down; then what is excluded, unless nothing would be left.
// With fewer nodes than the ranks need: as many ranks as fit if `shrink`. Throws UserError if no node is left, or,
// without `shrink`, if they are too few.
Placement place(const JobNodes& nodes, const std::vector<Suspect>& excluded, int64_t ranks, int64_t per_node,
                bool shrink);

// The command of `launch --with` for a placement. Replaces {ranks} and {nodes}; {hosts}: "n1,n2". Where a node is left
// out or spare, or the ranks are fewer, adds options for srun (--nodelist) and flux (--requires), and under PBS
// replaces the file after "hostfile" by `host_file`, which it writes.
std::string placed_command(const std::string& command, const launch::Process& process, const Placement& placement,
                           int64_t per_node, const std::string& host_file);

}  // namespace kintsugi::jobs
