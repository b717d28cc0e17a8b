// The command line: its help page, errors and exit codes.
#pragma once

#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "app/verb.h"
#include "kintsugi/base/error.h"

namespace kintsugi::app {

struct OptionPage {
  std::string name;   // "--length", or that of an argument, "run.toml"
  std::string value;  // what it takes, "INT"; "": nothing
  std::string what;
};
struct VerbPage {
  std::string name, what;
  std::vector<OptionPage> arguments, options;
};

class Command;
using AddVerb = void (*)(Command& kintsugi);

class Command {
 public:
  // With the verbs that the functions add, in order.
  explicit Command(std::span<const AddVerb> verbs);
  ~Command();

  Verb add_verb(const char* name, const std::string& what);

  // The data of the --help pages, for other forms of them.
  std::vector<VerbPage> pages() const;

  // Parses `args` (without the program's name) and runs the verb. Help and version go to `out`. An error is one line on
  // `err`: "error: [where] what". Returns the exit code: 0; 1 for an error of the input or the machine; 2 for a bug in
  // Kintsugi.
  int run(std::span<const std::string> args, std::ostream& out, std::ostream& err);

 private:
  void parse(std::span<const std::string> args, std::ostream& out, std::ostream& err);

  std::unique_ptr<CLI::App> app_;
};

// An error with a specific exit code, for scripts.
class EndedWith : public base::UserError {
 public:
  template <typename... Args>
  EndedWith(int code, std::string where, fmt::format_string<Args...> format, Args&&... args)
      : base::UserError(std::move(where), format, std::forward<Args>(args)...), code_(code) {}

  int code() const { return code_; }

 private:
  int code_;
};

// The one-line text of an error, "[where] what", and its exit code: 1 for an error of the input or the machine, 2 for a
// bug in Kintsugi.
struct Failure {
  std::string text;
  int code = 1;
};
Failure describe(const std::exception& error);

}  // namespace kintsugi::app
