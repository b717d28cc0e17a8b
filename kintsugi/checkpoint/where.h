// Module names in error messages.
#pragma once

#include <string_view>

namespace kintsugi::checkpoint {

inline constexpr std::string_view kWhere = "checkpoint";
inline constexpr std::string_view kWhereSafetensors = "safetensors";

}  // namespace kintsugi::checkpoint
