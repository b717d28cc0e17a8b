// The value of a key of any type, and its TOML form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kintsugi/config/settings.h"

namespace kintsugi::config {

using Value = std::variant<bool, int64_t, double, std::string, std::vector<std::string>, std::vector<double>,
                           std::vector<DataSource>, std::vector<ValidationFile>>;

// One line of TOML that reads back to exactly the same value.
std::string to_toml(const Value& value);
std::string to_toml(double number);
std::string to_toml(std::string_view text);  // must be UTF-8

}  // namespace kintsugi::config
