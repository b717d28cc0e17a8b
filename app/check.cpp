#include <fmt/format.h>

#include "app/run_options.h"
#include "app/verbs.h"
#include "kintsugi/config/resolved_file.h"

namespace kintsugi::app {

void add_check(CLI::App& kintsugi) {
  CLI::App* verb =
      kintsugi.add_subcommand("check", "Reads and resolves a run.toml, and prints the whole; trains nothing");
  const auto options = add_run_options(*verb);
  verb->callback([options] { fmt::print("{}", config::to_toml(read_run(*options))); });
}

}  // namespace kintsugi::app
