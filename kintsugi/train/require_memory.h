// Checks that every rank of a run has the memory that it needs, before any allocates it.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/compile/fit.h"

namespace kintsugi::train {

// All ranks of `all` call together, each with its own machine. SharedError if one of them has too little memory; before
// that, `now` is told of the search for changes that would fit.
void require_memory(const config::Settings& settings, const std::vector<program::Program>& stages,
                    const compile::Machine& machine, comm::Communicator& all,
                    const std::function<void(std::string_view)>& now = {});

}  // namespace kintsugi::train
