// Options shared by check, explain and train: a run.toml, and --set.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/verb.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/config/origin.h"

namespace kintsugi::app {

struct RunOptions {
  std::string path;
  std::vector<std::string> sets;  // "section.key=value"
  bool ranks = false;             // the first of them is from --ranks
};

// Adds the options to a verb. The result is filled when the command line is parsed; keep it for the verb's run.
std::shared_ptr<RunOptions> add_run_options(const Verb& verb);

// UserError "[where] ..." where an output of the user is a file of the run or its cluster's, or two are one.
void refuse_run_files(std::string_view where, const RunOptions& options, const config::Settings& settings,
                      std::span<const base::Output> outputs, const std::filesystem::path& cluster = {});

// Reads and resolves the configuration that is named, or run.toml of the current folder; warnings go to stderr, one
// line each: of this machine's cores only for a verb whose run is on this machine. UserError for any invalid input.
// quiet: without warnings.
enum class RunsOn { this_machine, any, quiet };
config::Resolved read_run(const RunOptions& options, RunsOn machine = RunsOn::this_machine);

}  // namespace kintsugi::app
