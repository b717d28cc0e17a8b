#include "app/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <new>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include "app/fold.h"
#include "app/standard_streams.h"
#include "app/version.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"
#include "kintsugi/launch/process.h"

namespace kintsugi::app {
namespace {

constexpr std::string_view kWhat = "Kintsugi trains neural networks split over many devices.\n";

constexpr std::string_view kPage =
    "From a text to a sample:\n"
    "\n"
    "  kintsugi prepare book.txt --tokenizer bytes --output corpus/book\n"
    "  printf '[data]\\ntrain = \"corpus/book/train\"\\n' > run.toml\n"
    "  printf '[train]\\nfolder = \"runs/book\"\\nsteps = 500\\n' >> run.toml\n"
    "  kintsugi check run.toml\n"
    "  kintsugi train run.toml\n"
    "  kintsugi generate runs/book --prompt \"It was\"\n"
    "\n"
    "`kintsugi VERB --help` describes a verb; `kintsugi train --keys` lists the keys of run.toml.\n";

// The library's page without wrapping our texts again, as newer versions of the library would.
class Page : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return fold(CLI::Formatter::make_option_desc(option), kColumns - static_cast<int>(get_column_width()), 0);
  }
  std::string make_subcommand(const CLI::App* verb) const override {
    constexpr int kName = 13;  // columns of the longest name, with spaces around it
    return fmt::format("  {:<{}}{}\n", verb->get_name(), kName - 2, fold(verb->get_description(), kColumns, kName));
  }
  std::string make_description(const CLI::App* app) const override {
    return fold(CLI::Formatter::make_description(app), kColumns, 0);
  }
  std::string make_footer(const CLI::App* app) const override {
    std::istringstream lines(app->get_footer());
    std::string footer;
    for (std::string line; std::getline(lines, line);)
      footer += (std::ssize(line) > kColumns && !line.starts_with(' ') ? fold(line, kColumns, 0) : line) + "\n";
    return footer;
  }
};

// "kintsugi train", or "kintsugi" if no verb was parsed.
std::string name_of(const CLI::App& command) {
  const auto verbs = command.get_subcommands();
  return verbs.empty() ? "kintsugi" : "kintsugi " + verbs.front()->get_name();
}

std::vector<std::string> verb_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* verb : command.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  const auto verbs = command.get_subcommands();
  const CLI::App& reader = verbs.empty() ? command : *verbs.front();
  std::vector<std::string> names;
  for (const CLI::Option* option : reader.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// "--output" of "-o,--output".
std::string first_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? "-" + option.get_snames().front() : "--" + option.get_lnames().front();
}

// The intent of a user who gives a verb too many arguments.
struct TooMany {
  std::string_view verb, instead;
};
constexpr TooMany kTooMany[] = {
    {"kintsugi compare", "to show several runs on one page: kintsugi report RUN RUN"},
};

// The closest candidate, or "".
std::string meant(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = base::nearest(word, candidates);
  const int most = std::max<int>(1, static_cast<int>(word.size()) / 3);
  return word.size() < 64 && base::edit_distance(word, best) <= most ? best : "";
}

std::string unknown_verb(const CLI::App& command, const std::string& word) {
  const std::string near = meant(word, verb_names(command));
  return fmt::format("unknown verb \"{}\"; {}", base::one_line(word, 80),
                     near.empty() ? fmt::format("there are {}", fmt::join(verb_names(command), ", "))
                                  : fmt::format("did you mean \"{}\"?", near));
}

// The error for an unexpected argument.
std::string unexpected(const CLI::App& command) {
  const std::vector<std::string> rest = command.remaining(true);
  const std::string word = rest.empty() ? "" : rest.front();
  const std::string shown = base::one_line(word, 80);
  const std::string name = name_of(command);
  if (word.starts_with("-")) {
    const std::string option = word.substr(0, word.find('='));
    const std::string near = meant(option, option_names(command));
    return fmt::format("[{}] unknown option \"{}\"; {}", name, base::one_line(option, 80),
                       near.empty() ? fmt::format("see {} --help", name) : fmt::format("did you mean \"{}\"?", near));
  }
  if (command.get_subcommands().empty()) return "[kintsugi] " + unknown_verb(command, word);
  for (const TooMany& row : kTooMany)
    if (name == row.verb) return fmt::format("[{}] \"{}\" is an unexpected argument; {}", name, shown, row.instead);
  return fmt::format("[{}] \"{}\" is an unexpected argument; see {} --help", name, shown, name);
}

constexpr std::chrono::seconds kForFirstRank{2};

// The rank of this process if a launcher started it as one of several; otherwise 0.
int launched_rank() {
  try {
    const auto launched = launch::launched();
    return launched && launched->ranks > 1 ? launched->rank : 0;
  } catch (const base::UserError&) {  // the variables of a launcher that contradict each other
    return 0;
  }
}

// The user's input may be long; our text is at the beginning and at the end.
std::string line_of(std::string_view text) {
  constexpr size_t kLongest = 400;
  return base::without_middle(base::one_line(text, std::string_view::npos), kLongest);
}

std::string usage_error(const CLI::App& command, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) return unexpected(command);
  const std::string name = name_of(command);
  return fmt::format("[{}] {}; see {} --help", name, error.what(), name);
}

}  // namespace

Command::Command(std::span<const AddVerb> verbs) : app_(std::make_unique<CLI::App>(std::string(kWhat), "kintsugi")) {
  const auto page = std::make_shared<Page>();
  page->label("SUBCOMMAND", "VERB");
  app_->formatter(page);
  app_->set_version_flag("--version", version_text, "The build, its features, and the processor's units");
  app_->footer(std::string(kPage));
  app_->require_subcommand(0, 1);
  for (const AddVerb add : verbs) add(*this);
}

Command::~Command() = default;

Verb Command::add_verb(const char* name, const std::string& what) {
  CLI::App* verb = app_->add_subcommand(name, what);
  verb->group("Verbs");
  verb->footer("");  // not that of the command, which it would have otherwise
  return Verb(*verb);
}

std::vector<VerbPage> Command::pages() const {
  std::vector<VerbPage> pages;
  for (const CLI::App* verb : app_->get_subcommands([](const CLI::App*) { return true; })) {
    VerbPage& page = pages.emplace_back(VerbPage{verb->get_name(), verb->get_description(), {}, {}});
    for (const CLI::Option* option : verb->get_options()) {
      const bool argument = option->get_lnames().empty() && option->get_snames().empty();
      const bool takes = option->get_items_expected_max() > 0;
      (argument ? page.arguments : page.options)
          .push_back({argument ? option->get_name() : first_name(*option), takes ? option->get_type_name() : "",
                      option->get_description()});
    }
  }
  return pages;
}

Failure describe(const std::exception& error) {
  if (const auto* ended = dynamic_cast<const EndedWith*>(&error)) return {error.what(), ended->code()};
  if (dynamic_cast<const base::UserError*>(&error)) return {error.what()};
  if (dynamic_cast<const std::bad_alloc*>(&error)) return {std::string(base::kNoMemory)};
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return {line_of(fmt::format("[file] \"{}\": {}", file->path1().string(), file->code().message()))};
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    if (std::ferror(stdout) != 0) return {fmt::format("[output] {}", not_printed(system->code().message()))};
    return {line_of(fmt::format("[system] {}", error.what()))};
  }
  return {line_of(fmt::format("{}; this is a bug in Kintsugi", error.what())), 2};
}

void Command::parse(std::span<const std::string> args, std::ostream& out, std::ostream& err) {
  try {
    std::vector<std::string> from_back(args.rbegin(), args.rend());  // it takes them from the back
    if (!args.empty() && args[0] == "help") {                        // "help VERB" is "VERB --help"
      if (args.size() > 1 && !args[1].starts_with("-") && std::ranges::count(verb_names(*app_), args[1]) == 0)
        throw base::UserError("kintsugi", "{}", unknown_verb(*app_, args[1]));
      from_back.pop_back();
      from_back.insert(from_back.begin(), "--help");
    }
    app_->parse(std::move(from_back));
    if (app_->get_subcommands().empty()) out << app_->help();
  } catch (const CLI::Success& page) {  // of --help and --version
    app_->exit(page, out, err);
  }
  require_printed(out);
}

int Command::run(std::span<const std::string> args, std::ostream& out, std::ostream& err) {
  const auto fail = [&err](const Failure& failure) {
    // If ranks as processes meet the same error, the first prints it, and its launcher ends the others.
    if (launched_rank() > 0) std::this_thread::sleep_for(kForFirstRank);
    err << "error: " << failure.text << std::endl;
    return failure.code;
  };
  try {
    parse(args, out, err);
    return 0;
  } catch (const CLI::ParseError& error) {
    return fail({line_of(usage_error(*app_, error))});
  } catch (const std::exception& error) {
    try {
      return fail(describe(error));
    } catch (const std::bad_alloc&) {  // no memory even for the text
      err << "error: " << base::kNoMemory << std::endl;
      return 1;
    }
  }
}

}  // namespace kintsugi::app
