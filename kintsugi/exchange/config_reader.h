// The members of config.json, each taken by the code that understands it.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json.h"

namespace kintsugi::exchange {

class ConfigReader {
 public:
  explicit ConfigReader(base::Json root) : root_(std::move(root)) {}

  const base::Json& root() const { return root_; }
  // Returns the member, or nothing if it is absent or null.
  std::optional<base::Json> take(std::string_view key) {
    taken_.emplace(key);
    std::optional<base::Json> value = root_.find(key);
    return value && value->is_null() ? std::nullopt : value;
  }
  void ignore(std::string_view key) { taken_.emplace(key); }
  // The members that were not taken and are not null.
  std::vector<base::Json> rest() const;

 private:
  base::Json root_;
  std::set<std::string, std::less<>> taken_;
};

// Builds the lines of [model] equivalent to a config.json.
class ModelText {
 public:
  // `value`: TOML
  void set(std::string_view key, std::string_view value) {
    lines_ += fmt::format("{} = {}\n", key, value);
    keys_.emplace(key);
  }
  void set(std::string_view key, int64_t value) { set(key, fmt::format("{}", value)); }
  void set(std::string_view key, double value);
  void set(std::string_view key, const std::vector<std::string>& words);
  void set(std::string_view key, const std::vector<double>& numbers);

  bool has(std::string_view key) const { return keys_.contains(key); }
  std::string text() const { return "[model]\n" + lines_; }

 private:
  std::string lines_;
  std::set<std::string, std::less<>> keys_;
};

}  // namespace kintsugi::exchange
