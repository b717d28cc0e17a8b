#include "app/keys_page.h"

#include <fmt/format.h>

#include <vector>

#include "app/fold.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/catalog.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/models/models.h"

namespace kintsugi::app {
namespace {

using config::Key;

constexpr int kName = 22, kUnder = 24;  // the columns of a key's name and of what is said of it

std::string entry(std::string_view name, std::string_view text) {
  return fmt::format("  {:<{}}{}\n", name, kName, fold(text, kColumns, kUnder));
}

std::string heading(std::string_view section) {
  return fmt::format("[{}]  {}\n", section, config::describe_section(section));
}

std::string_view on_resume(config::Resume resume) {
  switch (resume) {
    case config::Resume::fixed:
      return "may not change";
    case config::Resume::free:
      return "may change";
    case config::Resume::kept:
      return "is kept, unless it is given";
    case config::Resume::held:
      return "is kept, and may not change";
    case config::Resume::moved:
      return "may have another path, with the same content";
  }
  throw base::InternalError("keys", "an unknown way to resume");
}

std::string families() {
  std::string page = "families, for model.family\n";
  for (const config::Family& family : models::catalog().families) page += entry(family.name, family.about);
  std::string names;
  for (const config::NamedSize& size : models::catalog().sizes)
    names += (names.empty() ? "" : " ") + std::string(size.name);
  return page + "\nnamed sizes, for model.name\n  " + fold(names, kColumns, 2) + "\n";
}

std::string page_of(const Key& key) {
  std::string page = fmt::format("{}\n", key.full_name());
  page += entry("what it is", key.help);
  page += entry("allowed", config::describe(key.allowed));
  page += entry("default", config::default_text(key));
  page += entry("in a resumed run", on_resume(key.resume));
  if (!key.others.empty()) page += entry("called elsewhere", key.others);
  page += entry("in run.toml", fmt::format("[{}] {} = ...", key.section, key.name));
  page += entry("on the command line", fmt::format("--set {}=...", key.full_name()));
  return page + entry("more", "docs/configuration.md");
}

std::string page_of_section(std::string_view section) {
  std::string page = heading(section);
  for (const Key& key : config::keys()) {
    if (key.section != section) continue;
    page += entry(key.name, key.help);
    page += std::string(kUnder, ' ') +
            fold(fmt::format("{}; default: {}", config::describe(key.allowed), config::default_text(key)), kColumns,
                 kUnder) +
            "\n";
  }
  return section == "model" ? page + "\n" + families() : page;
}

std::string page_of_all() {
  std::string page;
  for (const std::string_view section : config::sections()) {
    page += (page.empty() ? "" : "\n") + heading(section);
    for (const Key& key : config::keys())
      if (key.section == section) page += entry(key.name, fmt::format("{} [{}]", key.help, config::default_text(key)));
  }
  return page +
         "\nIn brackets: the default. `--keys SECTION` says what is allowed,\n`--keys SECTION.KEY` all of a key.\n";
}

}  // namespace

std::string keys_page(std::string_view which) {
  if (which.empty()) return page_of_all();
  for (const std::string_view section : config::sections())
    if (which == section) return page_of_section(section);
  std::vector<const Key*> found;
  for (const Key& key : config::keys())
    if (which == key.full_name() || which == key.name) found.push_back(&key);
  if (!found.empty()) {
    std::string page;
    for (const Key* key : found) page += (page.empty() ? "" : "\n") + page_of(*key);
    return page;
  }
  const size_t dot = which.find('.');
  const std::string section = dot == which.npos ? "" : std::string(which.substr(0, dot));
  const std::string meant = config::meant_key(section, which.substr(dot == which.npos ? 0 : dot + 1));
  const std::string full = meant.empty() || meant.find('.') != meant.npos ? meant : section + "." + meant;
  throw base::UserError("keys", "{} is neither a section of run.toml nor a key; {}", base::in_quotes(which, 60),
                        full.empty() ? "`--keys` alone lists all" : fmt::format("did you mean {}?", full));
}

std::string sections_in_words() {
  std::string text;
  for (const std::string_view section : config::sections())
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", section, config::describe_section(section));
  return text;
}

}  // namespace kintsugi::app
