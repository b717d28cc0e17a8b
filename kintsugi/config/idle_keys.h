// Warnings about keys without effect.
#pragma once

#include "kintsugi/config/resolve.h"

namespace kintsugi::config {

// Warns of keys that have an effect only with certain values of another key, which differ in this configuration.
void warn_of_idle_keys(Resolved& given);

}  // namespace kintsugi::config
