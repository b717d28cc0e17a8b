// How ranks share a model for evaluation and generation: [parallel] and the dtype as given now, whatever layout and
// dtype the model was trained in.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/origin.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/program/program.h"

namespace kintsugi::evaluate {

// Settings with the [parallel] that `sets` give ("parallel.tensor=2"), by default one rank; derived and checked, with
// warnings. `cores`: those of all ranks together. UserError "[verb] ..." for a key of another section, since those
// come from the checkpoint.
config::Resolved read_layout(std::string_view verb, std::span<const std::string> sets, int64_t cores);

// The settings of a checkpoint on the ranks of `layout`, with weights and computation in `dtype`; empty: that of
// training.
config::Settings settings_now(config::Settings saved, const config::Parallel& layout, const std::string& dtype);

// UserError if the plan splits the tokens of a sample, since generation makes one at a time.
void require_whole_samples(const plan::Plan& plan, const config::Parallel& parallel);

// The axes of the mesh along which nothing of any stage is split, so that their ranks repeat each other's work.
std::vector<std::string> repeated_axes(std::span<const program::Program> stages);

}  // namespace kintsugi::evaluate
