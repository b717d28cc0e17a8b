// The value of a key, whatever its type, and how a TOML file writes it.
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

// TOML that reads back to the same value, to the last bit of a number; one line.
std::string to_toml(const Value& value);
std::string to_toml(double number);
std::string to_toml(std::string_view text);  // must be UTF-8

}  // namespace kintsugi::config
