// Changes of a configuration that reduce the memory its ranks need.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/config/value.h"

namespace kintsugi::plan {

// Full names of keys, and the value of each: "parallel.zero", 1.
using Sets = std::vector<std::pair<std::string, config::Value>>;

// What a change sets; nothing if there is nothing to change.
using Change = Sets (*)(const config::Settings&);

// All of them, the cheapest in work and communication first.
std::span<const Change> changes();

config::Settings with(config::Settings settings, const Sets& sets);

// Appends what is set after `sets`: of each key the later value, but none of those that have no effect in `made`, the
// settings with all of them.
void append(Sets& sets, const Sets& later, const config::Settings& made);

// "parallel.tensor = 4, parallel.data = 1"
std::string to_string(const Sets& sets);

}  // namespace kintsugi::plan
