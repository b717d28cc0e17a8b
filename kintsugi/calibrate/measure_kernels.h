// The time of each kernel of a run, in its program: with the caches, and beside the kernels of the other ranks, as in a
// step, but without communication.
#pragma once

#include <functional>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/program/program.h"
#include "kintsugi/simulate/measured.h"

namespace kintsugi::calibrate {

struct KernelOptions {
  const config::Settings& settings;             // resolved, with a vocabulary
  const std::vector<program::Program>& stages;  // checked
  int64_t warm_up = 1, steps = 3;
  std::function<void(int64_t done, int64_t all)> progress = {};  // of steps
};

// Runs some steps on all ranks, as threads of this process. Of kernels with equal keys the mean over their calls, of
// each of these the median over ranks and steps. UserError for a device whose kernels are not measured, or where the
// ranks need more memory than there is.
std::vector<simulate::MeasuredKernel> measure_kernels(const KernelOptions& options);

}  // namespace kintsugi::calibrate
