#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/program_of.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/verbs.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/exchange/config_json.h"
#include "kintsugi/program/print.h"
#include "kintsugi/train/corpus.h"

namespace kintsugi::app {
namespace {

void run(const RunOptions& options) {
  config::Resolved resolved = read_run(options);
  if (!resolved.settings.data.train.empty()) train::open_corpus(resolved);
  fmt::print("{}", config::to_toml(resolved));
  if (const std::vector<std::string> open = config::sizes_of_data(resolved); !open.empty()) {
    fmt::print("\n# the program is not checked: {} {} not set, and [data] train is not given\n", fmt::join(open, ", "),
               open.size() == 1 ? "is" : "are");
    return;
  }
  if (const std::string why = exchange::why_not_exported(resolved.settings.model); !why.empty())
    fmt::print("\n# no Hugging Face folder can be written of this model: {}\n", why);
  const std::vector<program::Program> stages = programs_of(resolved.settings);
  fmt::print(
      "\n# the program is valid: every buffer is written before it is read, and not overwritten before its last use\n");
  for (const program::Program& p : stages) {
    if (stages.size() > 1) fmt::print("# stage {}\n", p.stage);
    const std::string totals = program::print_totals(p);
    for (size_t begin = 0, end; (end = totals.find('\n', begin)) != std::string::npos; begin = end + 1)
      fmt::print("# {}\n", totals.substr(begin, end - begin));
  }
}

}  // namespace

void add_check(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("check", "Reads a run.toml and its data, verifies its program; trains nothing");
  const auto options = add_run_options(verb);
  verb.run([options] {
    require_one_process("check");
    run(*options);
  });
}

}  // namespace kintsugi::app
