// Creates an executor for a program after routing it for the ranks' way of exchanging data.
#pragma once

#include <memory>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

// Determines how ranks on devices exchange data (comm::exchange_of), and routes the program accordingly (lower::route,
// lower::place_waits). Call collectively on all ranks of the world. Errors as for Executor.
std::unique_ptr<run::Executor> make_executor(program::Program program, const kernels::KernelSet& kernels,
                                             base::ThreadTeam& team, run::Place place);

}  // namespace kintsugi::evaluate
