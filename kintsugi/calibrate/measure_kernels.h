// Times each kernel of a run within its program: with the cache state of a step, and concurrently with the kernels of
// the other ranks, but without communication.
#pragma once

#include <functional>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/program/program.h"
#include "kintsugi/simulate/measured.h"

namespace kintsugi::calibrate {

struct KernelOptions {
  const config::Settings& settings;             // resolved, with a vocabulary
  const std::vector<program::Program>& stages;  // verified
  int64_t warm_up = 1, steps = 3;
  std::function<void(int64_t done, int64_t all)> progress = {};  // of steps
};

// Runs some steps on all ranks, as threads of this process. Averages kernels with equal keys over their calls, then
// takes the median over ranks and steps. Throws UserError for a device whose kernels are not measured, or if the ranks
// need more memory than the machine has.
std::vector<simulate::MeasuredKernel> measure_kernels(const KernelOptions& options);

}  // namespace kintsugi::calibrate
