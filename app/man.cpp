#include <fmt/format.h>

#include "app/ranks.h"
#include "app/standard_streams.h"
#include "app/verbs.h"

namespace kintsugi::app {
namespace {

// In roff a backslash is an escape, and a line that starts with a point or a quote is a request.
std::string roff(std::string_view text) {
  std::string result;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    begins = c == '\n';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string option_entry(const OptionPage& option) {
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(option.name),
                     option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(option.value)), roff(option.what));
}

std::string man_page(const std::vector<VerbPage>& verbs) {
  std::string text =
      ".TH KINTSUGI 1 \"\" \"kintsugi\" \"User Commands\"\n"
      ".SH NAME\nkintsugi \\- train neural networks that are split over many devices\n"
      ".SH SYNOPSIS\n.B kintsugi\n.I VERB\n[\\fIOPTION\\fR]...\n"
      ".SH DESCRIPTION\nKintsugi trains neural networks that are split over many devices, and generates text from "
      "them. A run is described in a file, run.toml, whose keys\n.B kintsugi train \\-\\-keys\nprints.\n"
      ".SH VERBS\n";
  for (const VerbPage& verb : verbs) text += fmt::format(".TP\n.B {}\n{}\n", roff(verb.name), roff(verb.what));
  for (const VerbPage& verb : verbs) {
    std::string synopsis;
    for (const OptionPage& argument : verb.arguments) synopsis += fmt::format(" [\\fI{}\\fR]", roff(argument.name));
    text +=
        fmt::format(".SH \"KINTSUGI {0}\"\n\\fBkintsugi {0}\\fR [\\fIOPTION\\fR]...{1}\n", roff(verb.name), synopsis);
    for (const OptionPage& argument : verb.arguments) text += option_entry(argument);
    for (const OptionPage& option : verb.options) text += option_entry(option);
  }
  return text +
         ".SH \"EXIT STATUS\"\n0 on success, 1 for an error of the input or the machine, 2 for a bug of kintsugi.\n";
}

}  // namespace

void add_man(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("man", "Prints the manual page");
  verb.footer("kintsugi man > ~/.local/share/man/man1/kintsugi.1; man kintsugi");
  verb.run([&kintsugi] {
    require_one_process("man");
    print_at_once(man_page(kintsugi.pages()));
  });
}

}  // namespace kintsugi::app
