// The programs that a configuration compiles to, for verbs that inspect them without running them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kintsugi/compile/fit.h"
#include "kintsugi/config/origin.h"
#include "kintsugi/lower/lower.h"
#include "kintsugi/simulate/software.h"

namespace kintsugi::app {

// Compiles and verifies the training programs of all stages, showing progress.
std::vector<program::Program> programs_of(const config::Settings& settings, const lower::Dump& dump = {});

// The same for a simulation of that software, with only the fusions of its kernels.
std::vector<program::Program> programs_of(const config::Settings& settings, const simulate::Software& software,
                                          const lower::Dump& dump = {});
std::unique_ptr<kernels::KernelSet> kernels_of(const config::Settings& settings, const simulate::Software& software);

// The memory limit of a rank. A plan with more ranks than this machine has cores is for other machines: then only
// memory_per_rank applies.
std::optional<compile::MemoryLimit> memory_limit_of(const config::Settings& settings);

}  // namespace kintsugi::app
