// How ranks share a model for evaluation and generation: by the given [parallel] and dtype, independent of those used
// in training.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/origin.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/program/program.h"

namespace kintsugi::evaluate {

// Derives and checks settings with the [parallel] keys in `sets` ("parallel.tensor=2"), by default one rank; includes
// warnings. `cores`: total over all ranks. Throws UserError "[verb] ..." for a key of another section, since those come
// from the checkpoint.
config::Resolved read_layout(std::string_view verb, std::span<const std::string> sets, int64_t cores);

// The settings of a checkpoint for the ranks of `layout`, with weights and computation in `dtype`; empty: as in
// training.
config::Settings settings_now(config::Settings saved, const config::Parallel& layout, const std::string& dtype);

// Whether each token of a sample is on the same ranks.
bool keeps_samples_whole(const plan::Plan& plan);
// Throws UserError if the plan splits a sample's tokens, since generation makes one token at a time.
void require_whole_samples(const plan::Plan& plan, const config::Parallel& parallel);

// The mesh axes along which no stage splits anything, so that their ranks replicate each other's work.
std::vector<std::string> repeated_axes(std::span<const program::Program> stages);

}  // namespace kintsugi::evaluate
