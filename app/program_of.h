// The programs that a configuration compiles to, for verbs that inspect them and run nothing.
#pragma once

#include <vector>

#include "kintsugi/config/origin.h"
#include "kintsugi/lower/lower.h"

namespace kintsugi::app {

// Fills model.vocab from the data if run.toml does not set it; this opens and checks the data.
void fill_vocab(config::Resolved& resolved);

// Lowers and verifies the training programs of all stages.
std::vector<program::Program> programs_of(const config::Settings& settings, const lower::Dump& dump = {});

}  // namespace kintsugi::app
