#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/ranks.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::app {
namespace {

std::string names_of_options(const VerbPage& verb) {
  std::vector<std::string_view> names;
  for (const OptionPage& option : verb.options) names.push_back(option.name);
  return fmt::format("{}", fmt::join(names, " "));
}

// "model.layers= model.embed= ...", the completions of --set.
std::string keys_to_set() {
  std::string keys;
  for (const config::Key& key : config::keys()) keys += (keys.empty() ? "" : " ") + key.full_name() + "=";
  return keys;
}

// In single quotes, for every shell; escapes characters of `special` with a backslash.
std::string in_single_quotes(std::string_view text, std::string_view special = "") {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (special.find(c) != special.npos) result += '\\';
    result += c;
  }
  return result + "'";
}

std::string brief_of(std::string_view what) {
  return std::string(what.substr(0, what.find_first_of(";:\n")));
}

std::string bash(const std::vector<VerbPage>& verbs) {
  std::string names, cases;
  for (const VerbPage& verb : verbs) {
    names += (names.empty() ? "" : " ") + verb.name;
    cases += fmt::format("    {}) options='{}' ;;\n", verb.name, names_of_options(verb));
  }
  return fmt::format(
      R"(# bash completion of kintsugi: source it, or put it into bash_completion.d
_kintsugi() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} options= word= i
  local verbs='{}'
  local keys='{}'
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "$verbs help --help --version" -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
    help) COMPREPLY=($(compgen -W "$verbs" -- "$current")); return ;;
{}  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
    return
  fi
  for ((i = COMP_CWORD - 1; i > 1; --i)); do
    word=${{COMP_WORDS[i]}}
    [[ $word == --* ]] && break
  done
  if [[ $word == --set && $current != *=* ]]; then
    compopt -o nospace 2> /dev/null
    COMPREPLY=($(compgen -W "$keys" -- "$current"))
  fi
  COMPREPLY+=($(compgen -f -- "$current"))
}}
complete -o filenames -F _kintsugi kintsugi
)",
      names, keys_to_set(), cases);
}

std::string zsh(const std::vector<VerbPage>& verbs) {
  constexpr std::string_view kSpecial = ":[]\\";
  std::string names, cases;
  for (const VerbPage& verb : verbs) {
    names += fmt::format("    {}\n", in_single_quotes(verb.name + ":" + brief_of(verb.what)));
    cases += fmt::format("    {})\n      _arguments \\\n", verb.name);
    for (const OptionPage& option : verb.options) {
      const std::string value = option.value.empty()     ? ""
                                : option.name == "--set" ? R"(:key:{compadd -S "" -- $keys})"
                                                         : ":value:_files";
      cases += fmt::format("        {}{}{} \\\n", in_single_quotes(option.name + "["),
                           in_single_quotes(brief_of(option.what), kSpecial), in_single_quotes("]" + value));
    }
    cases += "        '*:file:_files' ;;\n";
  }
  return fmt::format(
      R"(#compdef kintsugi
# zsh completion of kintsugi: put it into a folder of $fpath as _kintsugi, or source it
_kintsugi() {{
  local -a verbs keys
  verbs=(
{}  )
  keys=({})
  if ((CURRENT == 2)); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  ((CURRENT--))
  case $verb in
{}  esac
}}
if [[ $funcstack[1] == _kintsugi ]]; then _kintsugi "$@"; else compdef _kintsugi kintsugi; fi
)",
      names, keys_to_set(), cases);
}

std::string fish(const std::vector<VerbPage>& verbs) {
  constexpr std::string_view kSpecial = "\\";
  std::string text = "# fish completion of kintsugi: ~/.config/fish/completions/kintsugi.fish\n";
  for (const VerbPage& verb : verbs)
    text += fmt::format("complete -c kintsugi -f -n __fish_use_subcommand -a {} -d {}\n", verb.name,
                        in_single_quotes(brief_of(verb.what), kSpecial));
  for (const VerbPage& verb : verbs)
    for (const OptionPage& option : verb.options) {
      if (!option.name.starts_with("--")) continue;
      const std::string value = option.value.empty()     ? ""
                                : option.name == "--set" ? fmt::format(" -x -a '{}'", keys_to_set())
                                                         : " -r";
      text += fmt::format("complete -c kintsugi -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n", verb.name,
                          option.name.substr(2), value, in_single_quotes(brief_of(option.what), kSpecial));
    }
  return text;
}

}  // namespace

void add_completion(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("completion", "Prints a shell completion script");
  const auto shell = std::make_shared<std::string>();
  verb.word("shell", *shell, {{"bash", "zsh", "fish"}}, "bash, zsh or fish").required();
  verb.run([shell, &kintsugi] {
    require_one_process("completion");
    const std::vector<VerbPage> pages = kintsugi.pages();
    print_at_once(*shell == "bash" ? bash(pages) : *shell == "zsh" ? zsh(pages) : fish(pages));
  });
}

}  // namespace kintsugi::app
