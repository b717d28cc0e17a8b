// Which settings a resumed run may change.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// Full names of the keys that differ but must not, in list order. Skips sizes that depend on data which `now` has not
// opened yet (sizes_of_data).
std::vector<std::string> compare_for_resume(const Resolved& saved, const Resolved& now);

// The configuration to continue with: `now`, with derived values that must be kept (train.decay_steps, data sizes)
// taken from `saved`. Throws UserError that lists the keys of compare_for_resume(), if any.
Resolved resume_with(const Resolved& saved, Resolved now);

}  // namespace kintsugi::config
