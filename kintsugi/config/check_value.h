// Checks a value as written and converts it to the value of a key, or throws.
#pragma once

#include <string_view>

#include "kintsugi/config/keys.h"
#include "kintsugi/config/toml_reader.h"

namespace kintsugi::config {

// `place` begins the message: "run.toml:7", "--set". Throws UserError for a value of another type or out of range.
Value check_value(const Key& key, const Raw& raw, std::string_view place);

}  // namespace kintsugi::config
