// Changes to a configuration that reduce memory per rank.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/config/value.h"

namespace kintsugi::plan {

// Full key names with values: "parallel.zero", 1.
using Sets = std::vector<std::pair<std::string, config::Value>>;

// The keys a change sets; empty if it does not apply.
using Change = Sets (*)(const config::Settings&);

// All changes, those with the least extra computation and communication first.
std::span<const Change> changes();

config::Settings with(config::Settings settings, const Sets& sets);

// Appends `later` to `sets`, later values overriding earlier ones, and drops those without effect in `made`, the
// settings with all of them applied.
void append(Sets& sets, const Sets& later, const config::Settings& made);

// "parallel.tensor = 4, parallel.data = 1"
std::string to_string(const Sets& sets);

}  // namespace kintsugi::plan
