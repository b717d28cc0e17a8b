// `kintsugi evaluate MODEL --ids FILE`: results of a model for given ids, for external checks.
#pragma once

#include <memory>
#include <string>

#include "app/model_options.h"

namespace kintsugi::app {

struct EvaluateIds {
  std::shared_ptr<ModelOptions> model;
  std::string ids;              // a file
  std::string dump;             // a file for loss, logits and gradients; empty: none
  double balance_weight = 0.0;  // of the balance loss of experts in the gradients
  bool allow_not_finite = false;
};

// Prints the loss, and writes the dump. For a Hugging Face folder, gradients have the names and shapes of its tensors;
// for a checkpoint, ours.
void evaluate_ids(const EvaluateIds& options);

}  // namespace kintsugi::app
