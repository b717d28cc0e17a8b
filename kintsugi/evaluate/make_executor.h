// An executor for a program, which is first routed by the way in which the ranks exchange data.
#pragma once

#include <memory>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

// Determines how ranks on devices exchange data (comm::exchange_of), and routes the program by it (lower::route,
// lower::place_waits). All ranks of the world call this together. Errors as of Executor.
std::unique_ptr<run::Executor> make_executor(program::Program program, const kernels::KernelSet& kernels,
                                             base::ThreadTeam& team, run::Place place);

}  // namespace kintsugi::evaluate
