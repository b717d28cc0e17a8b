#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <sstream>
#include <utility>

#include "app/fold.h"
#include "app/program_of.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/exchange/config_json.h"
#include "kintsugi/models/models.h"
#include "kintsugi/program/print.h"
#include "kintsugi/train/corpus.h"

namespace kintsugi::app {
namespace {

// The findings, as comments above the file.
std::string summary_of(const config::Resolved& resolved) {
  if (const std::vector<std::string> open = config::sizes_of_data(resolved); !open.empty())
    return fmt::format("# NOT checked: the program, because {} {} not set and [data] train is not given\n",
                       fmt::join(open, ", "), open.size() == 1 ? "is" : "are");
  const std::vector<program::Program> stages = programs_of(resolved.settings);
  std::string text;
  if (resolved.settings.data.train.empty()) text += "# NOT checked: the data, because [data] train is not given\n";
  text +=
      "# the program is valid: every buffer is written before it is read, and not\n# overwritten before its last use\n";
  if (const std::string why = exchange::why_not_exported(resolved.settings.model); !why.empty())
    text += fmt::format("# this model cannot be exported to a Hugging Face folder: {}\n", why);
  for (const program::Program& p : stages) {
    if (stages.size() > 1) text += fmt::format("# stage {}\n", p.stage);
    const std::string totals = program::print_totals(p);
    for (size_t begin = 0, end; (end = totals.find('\n', begin)) != std::string::npos; begin = end + 1)
      text += fmt::format("# {}\n", totals.substr(begin, end - begin));
  }
  return text;
}

// Without the keys that have their defaults or those of the family.
std::string without_defaults(const config::Resolved& resolved) {
  config::Settings usual;
  usual.model = models::family(resolved.settings.model.family).config.defaults;
  std::istringstream lines(config::to_toml(resolved));
  std::string line, section, text;
  size_t key = 0, left_out = 0;
  while (std::getline(lines, line)) {
    if (line.starts_with('[')) section = "\n" + line + "\n";
    if (line.empty() || line.starts_with('[') || line.starts_with('#')) continue;
    const size_t i = key++;
    const auto kind = resolved.origins[i].kind;
    const auto& of = config::keys()[i];
    if (kind == config::Origin::Kind::standard || (kind == config::Origin::Kind::derived && of.section == "model" &&
                                                   of.get(usual) == of.get(resolved.settings))) {
      ++left_out;
      continue;
    }
    text += std::exchange(section, "") + line + "\n";
  }
  return fmt::format(
      "# The configuration of this run as it was resolved, with the origin of each value, except for {} with default "
      "values, which --all prints.\n{}",
      base::counted(static_cast<int64_t>(left_out), "key"), text);
}

// Comments that are too long continue on the next line.
std::string within_columns(const std::string& toml) {
  std::string text;
  for (size_t begin = 0, end; (end = toml.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = toml.substr(begin, end - begin);
    if (std::ssize(line) > kColumns && line.starts_with("# ")) {
      std::string folded = fold(line.substr(2), kColumns, 2);
      for (size_t next = 0; (next = folded.find("\n  ", next)) != std::string::npos; ++next) folded[next + 1] = '#';
      text += "# " + folded + "\n";
      continue;
    }
    const size_t comment = line.rfind("  # ");
    if (std::ssize(line) <= kColumns || comment == line.npos || comment + 24 > static_cast<size_t>(kColumns)) {
      text += line + "\n";
      continue;
    }
    const size_t at = comment + 4;
    std::string folded = fold(line.substr(at), kColumns, static_cast<int>(at));
    const std::string indent = "\n" + std::string(at, ' ');
    for (size_t next = 0; (next = folded.find(indent, next)) != std::string::npos; next += indent.size())
      folded[next + indent.size() - 2] = '#';
    text += line.substr(0, at) + folded + "\n";
  }
  return text;
}

void run(const RunOptions& options, bool all) {
  config::Resolved resolved = read_run(options);
  if (!resolved.settings.data.train.empty()) train::open_corpus(resolved);
  const std::string summary = summary_of(resolved);
  write_out("{}\n{}", summary, within_columns(all ? config::to_toml(resolved) : without_defaults(resolved)));
}

}  // namespace

void add_check(Command& kintsugi) {
  const Verb verb =
      kintsugi.add_verb("check", "Checks a run.toml and its data and verifies its program, without training");
  const auto options = add_run_options(verb);
  const auto all = std::make_shared<bool>(false);
  verb.flag("--all", *all, "Print every key, including those with default values");
  verb.run([options, all] {
    require_one_process("check");
    run(*options, *all);
  });
}

}  // namespace kintsugi::app
