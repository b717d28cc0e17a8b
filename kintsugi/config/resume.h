// Which settings a resumed run may change.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// The full names of the keys that differ and may not, in the order of the list. Sizes that
// follow from data which `now` has not opened yet (sizes_of_data) are not compared.
std::vector<std::string> compare_for_resume(const Resolved& saved, const Resolved& now);

// The configuration to go on with: `now`, with the derived values that must be kept (train.decay_steps, the sizes of
// the data) taken from `saved`. UserError that names every key of compare_for_resume, if there is one.
Resolved resume_with(const Resolved& saved, Resolved now);

}  // namespace kintsugi::config
