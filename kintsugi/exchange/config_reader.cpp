#include "kintsugi/exchange/config_reader.h"

#include "kintsugi/config/value.h"

namespace kintsugi::exchange {

void ConfigReader::refuse_rest() const {
  for (const base::Json& member : root_.members()) {
    if (taken_.contains(member.key())) continue;
    const std::string value = member.compact();
    if (value == "null" || value == "false" || value == "0" || value == "0.0" || value == "[]" || value == "{}" ||
        value == "\"\"")
      continue;
    member.fail(
        "\"{}\" is {}, a setting that is not known here; without knowing what it does the model would be "
        "another",
        member.key(), member.shown());
  }
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
