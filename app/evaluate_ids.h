// `kintsugi evaluate MODEL --ids FILE`: what a model computes of given ids, for checks from outside.
#pragma once

#include <memory>
#include <string>

#include "app/model_options.h"

namespace kintsugi::app {

struct EvaluateIds {
  std::shared_ptr<ModelOptions> model;
  std::string ids;   // a file
  std::string dump;  // a file for loss, logits and gradients; empty: none
};

// Prints the loss, and writes the dump. Of a Hugging Face folder, gradients have the names and shapes that its tensors
// have; of a checkpoint, ours.
void evaluate_ids(const EvaluateIds& options);

}  // namespace kintsugi::app
