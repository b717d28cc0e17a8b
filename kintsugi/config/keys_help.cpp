#include "kintsugi/config/keys_help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kintsugi/base/format.h"

namespace kintsugi::config {
namespace {

// Escapes `|`, which ends a cell.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string default_cell(const Key& key) {
  const std::string value = default_text(key);
  return key.rule.empty() && value != "none" ? fmt::format("`{}`", value) : cell(value);
}

std::string_view resume_word(Resume resume) {
  switch (resume) {
    case Resume::fixed:
    case Resume::held:
      return "no";
    case Resume::free:
      return "yes";
    case Resume::moved:
      return "its path, not its content";
    default:
      return "yes, where given";
  }
}

}  // namespace

std::string markdown_row(const Key& key) {
  return fmt::format("| `{}` | {} | {} | {} | {} |", key.name, cell(describe(key.allowed)), default_cell(key),
                     cell(key.help), resume_word(key.resume));
}

std::string markdown_tables() {
  std::string tables;
  for (const std::string_view section : sections()) {
    tables += fmt::format(
        "{}## `[{}]`: {}\n\n| key | allowed | default | what it is | may change on resume |\n"
        "|---|---|---|---|---|\n",
        tables.empty() ? "" : "\n", section, describe_section(section));
    for (const Key& key : keys())
      if (key.section == section) tables += markdown_row(key) + "\n";
  }
  return tables;
}

std::string markdown_families(const Catalog& catalog) {
  std::string table = "| family | what it is |\n|---|---|\n";
  for (const Family& f : catalog.families) table += fmt::format("| `{}` | {} |\n", f.name, cell(f.about));
  return table;
}

std::string markdown_optimizers(const Catalog& catalog) {
  std::string table = "| optimizer | what it is | its keys |\n|---|---|---|\n";
  for (const Optimizer& o : catalog.optimizers)
    table += fmt::format("| `{}` | {} | {} |\n", o.name, cell(o.about), fmt::join(o.keys, ", "));
  return table;
}

std::string markdown_sizes(const Catalog& catalog) {
  std::string table =
      "| name | family | layers | embed | heads | kv_heads | ffn | vocab | context | source |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const NamedSize& s : catalog.sizes)
    table += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", s.name, s.model.family,
                         s.model.layers, s.model.embed, s.model.heads, s.model.kv_heads, s.model.ffn, s.model.vocab,
                         s.model.context, s.source);
  return table;
}

}  // namespace kintsugi::config
