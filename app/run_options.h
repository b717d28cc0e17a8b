// Options shared by check, explain and train: a run.toml, and --set.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/config/origin.h"

namespace kintsugi::app {

struct RunOptions {
  std::string path;
  std::vector<std::string> sets;  // "section.key=value"
};

// Adds the options to a verb. The result is filled when the command line is parsed; keep it for the callback.
std::shared_ptr<RunOptions> add_run_options(CLI::App& verb);

// Reads and resolves; warnings go to stderr, one line each. UserError for any invalid input.
config::Resolved read_run(const RunOptions& options);

}  // namespace kintsugi::app
