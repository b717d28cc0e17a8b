#include "kintsugi/config/read.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/check_value.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/toml_reader.h"

namespace kintsugi::config {
namespace {

struct Assignment {
  int key;
  Value value;
  Origin origin;
  std::string old_name = {};  // the name used, if the key has since been renamed
};

bool is_section(std::string_view name) {
  return std::ranges::count(sections(), name) > 0;
}

[[noreturn]] void unknown_section(std::string_view section, std::string_view place) {
  const std::string meant = meant_word(section, sections());
  throw base::UserError("config", "{}: unknown section [{}]; {}", place, base::one_line(section, 60),
                        meant.empty() ? fmt::format("there are [{}]", fmt::join(sections(), "], ["))
                                      : fmt::format("did you mean [{}]?", meant));
}

// Index into keys(); throws UserError if there is no such key.
int known_key(std::string_view section, std::string_view name, std::string_view place) {
  if (!is_section(section)) unknown_section(section, place);
  const int index = find_key(section, name);
  if (index >= 0) return index;
  if (const RenamedKey* renamed = renamed_key(section, name)) return key_index(renamed->now);
  const std::string meant = meant_key(section, name);
  // Too many switches of the network to list in one line.
  std::vector<std::string_view> names;
  size_t switches = 0;
  for (const Key& key : keys())
    if (key.section == section) key.of_family ? void(++switches) : names.push_back(key.name);
  const std::string more = switches ? fmt::format(", and {} that --keys lists", switches) : "";
  throw base::UserError("config", "{}: unknown key {}.{}; {}", place, section, base::one_line(name, 60),
                        meant.empty() ? fmt::format("[{}] has {}{}", section, fmt::join(names, ", "), more)
                                      : fmt::format("did you mean {}?", meant));
}

// Checks a top-level name: a section, or a key that was meant to be in one.
void check_section(const Entry& entry, std::string_view place) {
  const bool table = entry.value.type == Raw::Type::table;
  if (is_section(entry.section)) {
    if (table) return;
    throw base::UserError("config", "{}: {} is {}; it must be a section, written [{}]", place, entry.section,
                          entry.value.type_name(), entry.section);
  }
  if (!table) {
    const std::string meant = meant_key("", entry.section);
    throw base::UserError("config", "{}: key {} comes before any section; {}", place, base::one_line(entry.section, 60),
                          meant.empty() ? fmt::format("there are [{}]", fmt::join(sections(), "], ["))
                                        : fmt::format("did you mean {}?", meant));
  }
  unknown_section(entry.section, place);
}

// The name used, if it is not the key's current name.
std::string old_name(int index, std::string_view full_name) {
  return keys()[static_cast<size_t>(index)].full_name() == full_name ? "" : std::string(full_name);
}

Assignment parse_set(const std::string& set) {
  constexpr std::string_view kPlace = "--set";
  const std::string shown = base::one_line(set, 80);
  if (!base::is_utf8(set)) throw base::UserError("config", "{}: \"{}\" is not UTF-8", kPlace, shown);
  const size_t equals = set.find('=');
  if (equals == std::string::npos)
    throw base::UserError("config", "{}: \"{}\" has no value; write --set section.key=value", kPlace, shown);
  const auto trim = [](std::string_view text) {
    const size_t first = text.find_first_not_of(" \t");
    return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
  };
  const std::string_view name = trim(std::string_view(set).substr(0, equals));
  const std::string_view text = trim(std::string_view(set).substr(equals + 1));
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) {
    const std::string meant = meant_key("", name);
    throw base::UserError("config", "{}: {} names no section; {}", kPlace, base::one_line(name, 60),
                          meant.empty() ? "write --set section.key=value" : fmt::format("did you mean {}?", meant));
  }
  const int index = known_key(name.substr(0, dot), name.substr(dot + 1), kPlace);
  const Key& key = keys()[index];

  Raw raw;
  const bool is_text = std::holds_alternative<Text>(key.allowed) || std::holds_alternative<OneOf>(key.allowed) ||
                       std::holds_alternative<Name>(key.allowed) || std::holds_alternative<Texts>(key.allowed) ||
                       std::holds_alternative<Sources>(key.allowed) || std::holds_alternative<Domains>(key.allowed);
  const bool quoted = text.starts_with('"') || text.starts_with('\'');
  const bool composed =
      (std::holds_alternative<Sources>(key.allowed) && (text.starts_with('[') || text.starts_with('{'))) ||
      (std::holds_alternative<Domains>(key.allowed) && text.starts_with('{')) ||
      (std::holds_alternative<Texts>(key.allowed) && text.starts_with('['));
  bool read = (!is_text || quoted || composed) && read_toml_value(text, raw);
  // Allow betas=0.9,0.95: brackets are special in a shell.
  if (!read && std::holds_alternative<Numbers>(key.allowed) && !text.starts_with('['))
    read = read_toml_value(fmt::format("[{}]", text), raw);
  if (!read) {
    if (raw.type != Raw::Type::too_large) raw.type = Raw::Type::text;
    raw.text = text;
  }
  std::string old = old_name(index, name);
  return {index, check_value(key, raw, kPlace), {Origin::Kind::set, ""}, std::move(old)};
}

// The last assignment of `key`, or null.
const Assignment* last_of(std::string_view key, const std::vector<Assignment>& assignments) {
  const Assignment* last = nullptr;
  for (const Assignment& a : assignments)
    if (a.key == key_index(key)) last = &a;
  return last;
}

// Rejects two names of one key in one place, where only their order would decide.
void require_one_name(const Assignment& old, const std::vector<Assignment>& assignments) {
  for (const Assignment& a : assignments)
    if (a.key == old.key && a.old_name.empty() && a.origin.kind == old.origin.kind)
      throw base::UserError("config", "{}: {} is called {} now, which is given too ({}); leave one out",
                            old.origin.text(), old.old_name, keys()[old.key].full_name(), a.origin.text());
}

// The catalog row that `assigned` names.
template <typename Row>
const Row& row_named(std::span<const Row> rows, std::string_view what, const Assignment& assigned) {
  const auto& name = std::get<std::string>(assigned.value);
  std::vector<std::string_view> names;
  for (const Row& row : rows) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  const std::string meant = meant_word(name, names);
  // "resnet" is closer to "lenet" than to "resnet18".
  std::vector<std::string_view> longer;
  std::ranges::copy_if(names, std::back_inserter(longer),
                       [&](std::string_view row) { return !name.empty() && row.starts_with(name); });
  throw base::UserError("config", "{}: {} = {} is not {}; {}", assigned.origin.text(), keys()[assigned.key].full_name(),
                        base::one_line(to_toml(std::string_view(name)), 60), what,
                        !longer.empty() ? fmt::format("there are {}", fmt::join(longer, ", "))
                        : meant.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                        : fmt::format("did you mean \"{}\"?", meant));
}

void require_optimizer(const Given& given, const std::vector<Assignment>& assignments) {
  if (const Assignment* optimizer = last_of("train.optimizer", assignments))
    row_named(given.catalog->optimizers, "an optimizer", *optimizer);
}

// Applies the named size or folder in model.name as defaults. Returns whether it is a folder.
bool apply_named_model(Given& given, const std::vector<Assignment>& assignments) {
  const Catalog& catalog = *given.catalog;
  const Assignment* family = last_of("model.family", assignments);
  if (family) row_named(catalog.families, "a family of models", *family);
  const Assignment* assigned = last_of("model.name", assignments);
  if (!assigned) return false;
  const auto& name = std::get<std::string>(assigned->value);
  if (name.empty()) return false;
  std::optional<Model> of_folder;
  if (catalog.model_of_folder && !catalog.size(name)) of_folder = catalog.model_of_folder(name);
  if (!of_folder && name.find('/') != name.npos)
    throw base::UserError("config", "{}: model.name = {} is not a folder with a config.json", assigned->origin.text(),
                          base::one_line(to_toml(std::string_view(name)), 60));
  const Model& model = of_folder ? *of_folder : row_named(catalog.sizes, "a named size", *assigned).model;
  if (family && std::get<std::string>(family->value) != model.family)
    throw base::UserError("config",
                          "{}: model.family = {} is not that of model.name = {}, which is \"{}\"; leave one out",
                          family->origin.text(), to_toml(family->value),
                          base::one_line(to_toml(std::string_view(name)), 60), model.family);
  Settings named;
  named.model = model;
  for (size_t i = 0; i < keys().size(); ++i) {
    const Key& key = keys()[i];
    if (key.section != "model" || key.name == "name" || key.name == "dropout") continue;
    key.set(given.settings, key.get(named));
    given.origins[i] = {of_folder ? Origin::Kind::folder : Origin::Kind::named_size, name};
  }
  return of_folder.has_value();
}

}  // namespace

Given read_text(std::string_view text, std::string_view name, const Catalog& catalog,
                std::span<const std::string> sets) {
  std::vector<Assignment> assignments;
  const std::string file = base::one_line(name);
  for (const Entry& entry : read_toml(text, file)) {
    std::string place = fmt::format("{}:{}", file, entry.line);
    if (entry.key.empty()) {
      check_section(entry, place);
      continue;
    }
    const int index = known_key(entry.section, entry.key, place);
    // One statement each: g++ 12 destroys members twice if a later one throws.
    Value value = check_value(keys()[index], entry.value, place);
    std::string old = old_name(index, fmt::format("{}.{}", entry.section, entry.key));
    assignments.push_back({index, std::move(value), {Origin::Kind::file, std::move(place)}, std::move(old)});
  }
  for (const std::string& set : sets) assignments.push_back(parse_set(set));

  Given given;
  given.catalog = &catalog;
  given.origins.resize(keys().size());
  const bool folder = apply_named_model(given, assignments);
  require_optimizer(given, assignments);
  for (const Assignment& a : assignments) {
    if (!a.old_name.empty()) require_one_name(a, assignments);
    if (!a.old_name.empty())
      given.warnings.push_back(
          fmt::format("{}: {} is called {} now", a.origin.text(), a.old_name, keys()[a.key].full_name()));
    keys()[a.key].set(given.settings, a.value);
    given.origins[a.key] = a.origin;
  }
  if (folder) given.settings.model.name.clear();  // resolved values do not need it again
  return given;
}

Given read_file(const std::filesystem::path& path, const Catalog& catalog, std::span<const std::string> sets) {
  constexpr base::MostBytes kMost = {4 << 20, "a configuration"};
  return read_text(base::read_file(path, kMost), path.string(), catalog, sets);
}

}  // namespace kintsugi::config
