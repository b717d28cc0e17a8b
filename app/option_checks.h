// Options are checked as strictly as the keys of run.toml. An error is a UserError: "[generate] --length 1e3 is not an
// integer from 0 to 1,000".
#pragma once

#include <CLI/CLI.hpp>
#include <limits>
#include <string_view>

#include "kintsugi/config/allowed.h"

namespace kintsugi::app {

// Each value of the option must be in decimal digits, whole or with a fraction and an exponent, and in the range.
CLI::Option* require(const CLI::App& verb, CLI::Option* option, config::Integer range);
CLI::Option* require(const CLI::App& verb, CLI::Option* option, config::Number range);

// No value of the option may be empty.
CLI::Option* require_text(const CLI::App& verb, CLI::Option* option);

// The range of a key of run.toml: range_of("train.steps").
config::Integer range_of(std::string_view key);

// 0 to the largest seed.
inline constexpr config::Integer kSeeds = {0, std::numeric_limits<int64_t>::max()};

}  // namespace kintsugi::app
