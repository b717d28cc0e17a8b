#include "kintsugi/config/derive.h"

#include <fmt/format.h>

#include <algorithm>

namespace kintsugi::config {

std::string place(const Given& given, std::initializer_list<std::string_view> names) {
  return place(given, std::vector<std::string>(names.begin(), names.end()));
}

std::string place(const Given& given, const std::vector<std::string>& names) {
  for (const Origin::Kind kind : {Origin::Kind::set, Origin::Kind::file})
    for (const std::string& name : names)
      if (given.origin(name).kind == kind) return given.origin(name).text() + ": ";
  return "";
}

std::string divisors_around(int64_t n, int64_t x) {
  int64_t below = 0, above = 0;
  for (int64_t d = std::min(x, n); d >= 1 && !below; --d)
    if (n % d == 0) below = d;
  for (int64_t d = x; d <= n && !above; ++d)
    if (n % d == 0) above = d;
  return above ? fmt::format("{}, {}", below, above) : fmt::format("{}", below);
}

std::string multiples_around(int64_t x, int64_t step) {
  const int64_t below = x / step * step;
  return below ? fmt::format("{}, {}", below, below + step) : fmt::format("{}", below + step);
}

namespace {

// Warns if the user set `name` to something other than in `standard`.
void warn_if_changed(Resolved& given, std::string_view name, const Settings& standard, std::string_view other) {
  const Key& key = keys()[static_cast<size_t>(key_index(name))];
  if (key.get(given.settings) == key.get(standard) || !given.origin(name).given()) return;
  given.warnings.push_back(
      fmt::format("{}{} has no effect with {}", place(given, {name}), given.say(name), given.say(other)));
}

}  // namespace

void warn_if_idle(Resolved& given, std::string_view name, bool used, std::string_view other) {
  if (!used) warn_if_changed(given, name, Settings{}, other);
}

void warn_if_idle(Resolved& given, std::initializer_list<std::string_view> names, bool used, std::string_view other) {
  if (used) return;
  Settings family;  // its defaults are not the user's choice
  family.model = given.catalog->family(given.settings.model.family)->defaults;
  for (const std::string_view name : names) warn_if_changed(given, name, family, other);
}

bool reads_tokens(const Given& given) {
  return given.catalog->family(given.settings.model.family)->reads_tokens;
}

}  // namespace kintsugi::config
