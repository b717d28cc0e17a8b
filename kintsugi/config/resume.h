// Which settings a resumed run may change.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/config/origin.h"

namespace kintsugi::config {

// The full names of the keys that differ and may not, in the order of the list. Values that are unset in `now`
// (model.vocab of a tokenizer that is not known yet) are not compared.
std::vector<std::string> compare_for_resume(const Resolved& saved, const Resolved& now);

// The configuration to go on with: `now`, with the derived values that must be kept (train.decay_steps, model.vocab)
// taken from `saved`. UserError that names every key of compare_for_resume, if there is one.
Resolved resume_with(const Resolved& saved, Resolved now);

}  // namespace kintsugi::config
