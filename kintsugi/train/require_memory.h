// Checks that every rank of a run has enough memory, before any allocates it.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/compile/fit.h"

namespace kintsugi::train {

// Collective over `all`, each rank with its own machine. Throws SharedError if one of them has too little memory;
// before that, calls `now` about the search for changes that would fit.
void require_memory(const config::Settings& settings, const std::vector<program::Program>& stages,
                    const compile::Machine& machine, comm::Communicator& all,
                    const std::function<void(std::string_view)>& now = {});

}  // namespace kintsugi::train
