#include "kintsugi/exchange/config_reader.h"

#include "kintsugi/config/value.h"

namespace kintsugi::exchange {

std::vector<base::Json> ConfigReader::rest() const {
  std::vector<base::Json> rest;
  for (const base::Json& member : root_.members()) {
    if (taken_.contains(member.key())) continue;
    const std::string value = member.compact();
    const bool says_nothing = value == "null" || value == "false" || value == "0" || value == "0.0" || value == "[]" ||
                              value == "{}" || value == "\"\"";
    if (!says_nothing) rest.push_back(member);
  }
  return rest;
}

void ModelText::set(std::string_view key, double value) {
  set(key, config::to_toml(value));
}

void ModelText::set(std::string_view key, const std::vector<std::string>& words) {
  set(key, config::to_toml(config::Value(words)));
}

void ModelText::set(std::string_view key, const std::vector<double>& numbers) {
  set(key, config::to_toml(config::Value(numbers)));
}

}  // namespace kintsugi::exchange
