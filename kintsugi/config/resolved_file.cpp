#include "kintsugi/config/resolved_file.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "kintsugi/base/format.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"

namespace kintsugi::config {

std::string to_toml(const Resolved& resolved) {
  constexpr size_t kColumn = 44;
  std::string file = "# The configuration of this run as it was resolved, with the origin of each value.\n";
  std::string_view section;
  for (size_t i = 0; i < keys().size(); ++i) {
    const Key& key = keys()[i];
    if (key.section != section) file += fmt::format("\n[{}]\n", section = key.section);
    const std::string value = to_toml(key.get(resolved.settings));
    file += fmt::format("{:{}}  # {}\n", fmt::format("{} = {}", key.name, value), kColumn,
                        base::one_line(resolved.origins[i].text()));
  }
  return file;
}

Resolved load_saved(const std::filesystem::path& path, const Catalog& catalog) {
  return {fill_derived(read_file(path, catalog), 1), {}};
}

Resolved saved_text(const std::string& toml, const Catalog& catalog, const std::string& name) {
  return {fill_derived(read_text(toml, name, catalog), 1), {}};
}

std::vector<std::string> written_origins(const std::string& toml, const Settings& settings) {
  std::map<std::string, std::string> rest;  // [full name of a key]: rest of its line
  std::istringstream lines(toml);
  std::string line, section;
  while (std::getline(lines, line)) {
    if (line.starts_with('[')) section = line.substr(1, line.find(']') - 1);
    if (const size_t equals = line.find(" = "); equals != std::string::npos && !line.starts_with('#'))
      rest[section + "." + line.substr(0, equals)] = line.substr(equals + 3);
  }
  std::vector<std::string> origins;
  for (const Key& key : keys()) {
    std::string& origin = origins.emplace_back();
    const auto found = rest.find(key.full_name());
    const std::string value = to_toml(key.get(settings));
    if (found == rest.end() || !found->second.starts_with(value)) continue;
    const std::string after = found->second.substr(value.size());
    if (const size_t mark = after.find_first_not_of(' '); mark != std::string::npos && after[mark] == '#')
      origin = after.substr(std::min(mark + 2, after.size()));
  }
  return origins;
}

bool says_given(std::string_view origin) {
  const std::string saved = Origin{.kind = Origin::Kind::saved, .detail = {}}.text();
  return !origin.empty() && origin != Origin{}.text() && origin != saved && !origin.starts_with("derived: ");
}

}  // namespace kintsugi::config
