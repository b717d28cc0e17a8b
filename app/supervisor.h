// `launch --with`: starts the ranks of a run, and starts them again until it has completed its steps.
#pragma once

#include <cstdint>
#include <string>

#include "app/run_options.h"

namespace kintsugi::app {

struct SupervisorOptions {
  std::string with;            // the command that starts the ranks
  std::string again;           // the command that continues the job later; ""
  std::string guard;           // the command that queues the job that takes over, and prints its id; ""
  double stop_after = 0;       // seconds; 0: no limit
  int64_t max_restarts = -1;   // -1: launch.max_restarts
  int64_t ranks_per_node = 0;  // 0: the ranks of the run divided by the nodes of the job
};

// Returns when the run is finished, or stopped and to be continued. Throws UserError, or EndedWith for exit code 93.
void supervise_run(const SupervisorOptions& options, const RunOptions& run);

}  // namespace kintsugi::app
