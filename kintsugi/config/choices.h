// Keys whose value is text, as types: read here once, compared nowhere else.
#pragma once

#include <cstdint>
#include <string_view>

#include "kintsugi/config/settings.h"

namespace kintsugi::config {

// [parallel] recompute, in the order of what is computed again.
enum class Recomputed : uint8_t { nothing, attention, layers };
Recomputed recomputed(const Parallel& parallel);
std::string_view name_of(Recomputed what);  // as the key has it

// [parallel] offload.
struct Offloaded {
  bool optimizer = false;
  bool activations = false;
};
Offloaded offloaded(const Parallel& parallel);
std::string_view name_of(Offloaded what);  // as the key has it

}  // namespace kintsugi::config
