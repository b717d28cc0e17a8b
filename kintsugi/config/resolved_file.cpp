#include "kintsugi/config/resolved_file.h"

#include <fmt/format.h>

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

}  // namespace kintsugi::config
