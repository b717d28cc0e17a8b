#include "kintsugi/config/origin.h"

#include <fmt/format.h>

#include "kintsugi/base/format.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::config {

std::string Origin::text() const {
  switch (kind) {
    case Kind::standard:
      return "default";
    case Kind::derived:
      return "derived: " + detail;
    case Kind::named_size:
      return "size " + detail;
    case Kind::folder:
      return "folder " + detail;
    case Kind::set:
      return detail.empty() ? "--set" : detail;
    case Kind::saved:
      return "saved in the run";
    case Kind::file:
      break;
  }
  return detail;
}

const Origin& Given::origin(std::string_view full_name) const {
  return origins[key_index(full_name)];
}

std::string Given::say(std::string_view full_name) const {
  const int i = key_index(full_name);
  const std::string note = origins[i].given() ? "" : fmt::format(" ({})", origins[i].text());
  return fmt::format("{} = {}{}", full_name, base::one_line(to_toml(keys()[i].get(settings)), 80), note);
}

}  // namespace kintsugi::config
