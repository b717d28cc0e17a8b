// The command line as a whole: its help page, its errors, its exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <span>
#include <string>

namespace kintsugi::app {

using AddVerb = void (*)(CLI::App& kintsugi);

// The command with the verbs that the functions add, in their order.
std::unique_ptr<CLI::App> make_command(std::span<const AddVerb> verbs);

// The text printed for an error, "[where] what" in one line, and the exit code: 1 for an error of the input or the
// machine, 2 for a bug of ours.
struct Failure {
  std::string text;
  int code = 1;
};
Failure describe(const std::exception& error);

// Parses `args` (without the program's name) and runs the verb. Help and version go to `out`. An error is one line on
// `err`: "error: [where] what". Returns the exit code: 0; 1 for an error of the input or the machine; 2 for a bug of
// ours.
int run_command(CLI::App& command, std::span<const std::string> args, std::ostream& out, std::ostream& err);

}  // namespace kintsugi::app
