// The reference of direct preference optimization: the model that training starts from.
#pragma once

#include <functional>
#include <string_view>

#include "kintsugi/train/rank.h"

namespace kintsugi::train {

inline constexpr std::string_view kReferenceFile = "reference.json";  // in the run's folder

// With [train] method "dpo", gives the margin of each pair of the corpus by the reference to the samples: computed with
// the current weights and stored in the run's folder, or, for a resumed run, read from there. Calls now(what) before
// it computes. Collective; does nothing for other methods. Throws UserError on all ranks for a missing or damaged file.
void set_reference(Rank& rank, bool resumed, const std::function<void(std::string_view)>& now);

}  // namespace kintsugi::train
