// What may be changed in a configuration so that its ranks need less memory.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/config/value.h"

namespace kintsugi::plan {

// Keys by their full names, and what each is set to: "parallel.zero", 1.
using Sets = std::vector<std::pair<std::string, config::Value>>;

// What a change sets; nothing where there is nothing to change.
using Change = Sets (*)(const config::Settings&);

// All of them, in the order of what they cost in work and communication.
std::span<const Change> changes();

config::Settings with(config::Settings settings, const Sets& sets);

// Adds what is set after `sets`: of each key the later value, and of those that `made`, the settings with all of them,
// gives no effect, none.
void append(Sets& sets, const Sets& later, const config::Settings& made);

// "parallel.tensor = 4, parallel.data = 1"
std::string to_string(const Sets& sets);

}  // namespace kintsugi::plan
