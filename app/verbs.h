// The verbs of the command `kintsugi`, one file each. Each function adds its subcommand, with its options and help, and
// a callback that does the work. A callback throws base::UserError for bad input; main prints it and exits with 1.
#pragma once

#include <CLI/CLI.hpp>

namespace kintsugi::app {

void add_prepare(CLI::App& kintsugi);
void add_show(CLI::App& kintsugi);
void add_check(CLI::App& kintsugi);
void add_compare(CLI::App& kintsugi);
void add_plan(CLI::App& kintsugi);
void add_explain(CLI::App& kintsugi);
void add_train(CLI::App& kintsugi);
void add_evaluate(CLI::App& kintsugi);
void add_generate(CLI::App& kintsugi);

}  // namespace kintsugi::app
