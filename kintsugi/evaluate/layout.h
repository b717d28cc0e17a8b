// How ranks share a model that is asked for text or for its loss: [parallel] as it is given now, whatever the model was
// trained on.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/origin.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/program/program.h"

namespace kintsugi::evaluate {

// The settings whose [parallel] is that of `sets` ("parallel.tensor=2"), one rank where they say nothing, derived,
// checked, and with its warnings. `cores` are those that all ranks may use together. UserError "[verb] ..." for a key
// of another section: that is the checkpoint's.
config::Resolved read_layout(std::string_view verb, std::span<const std::string> sets, int64_t cores);

// The settings of a checkpoint on the ranks of `layout`.
config::Settings on_ranks_of(config::Settings saved, const config::Parallel& layout);

// UserError where the plan cuts the tokens of a sample, of which generation makes one at a time.
void require_whole_samples(const plan::Plan& plan, const config::Parallel& parallel);

// The axes of the mesh along which nothing of any stage is split, so that their ranks repeat the work of each other.
std::vector<std::string> repeated_axes(std::span<const program::Program> stages);

}  // namespace kintsugi::evaluate
