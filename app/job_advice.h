// What the simulated step says about a job, for runs with [parallel] cluster.
#pragma once

#include <string>
#include <vector>

#include "app/run_options.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/jobs/job.h"

namespace kintsugi::app {

struct JobAdvice {
  std::vector<std::string> warnings;  // the run does not end in the job's time; nodes are wasted
  std::string proposal;               // a time that is enough; "" if nothing is planned
};

// `settings`: completed from the data. UserError as for plan --cluster.
JobAdvice job_advice(const jobs::Job& job, const RunOptions& run, const config::Settings& settings);

}  // namespace kintsugi::app
