// Ensembles: several models with one vocabulary, whose probabilities are averaged (Lakshminarayanan et al. 2017).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/generator.h"
#include "kintsugi/samples/samples.h"

namespace kintsugi::app {

// The mean of the members' probabilities at one position, and how much they differ.
struct Mixed {
  std::vector<float> log_probabilities;  // [vocab] of the mean
  double divergence = 0;                 // Jensen-Shannon: entropy of the mean less the mean entropy, in nats
  bool agree = true;                     // all have the same most likely token
};
// `logits`: [vocab] of each member, of equal size.
Mixed mix(const std::vector<std::span<const float>>& logits);

// On one rank. Texts are read one at a time, by key-value caches of each member.
class Ensemble {
 public:
  // The model and those of --with, with the computation type `dtype`. Throws UserError for more than one rank, and for
  // models whose vocabularies or tokenizers differ.
  Ensemble(const std::string& model, const std::vector<std::string>& with, const config::Parallel& layout,
           comm::World& world, const std::string& dtype);

  size_t size() const { return models_.size(); }
  const evaluate::CheckpointModel& first() const { return *models_[0]; }
  // Loads the weights, for texts of up to `positions` tokens.
  void load(int64_t positions);
  // What follows a text, and then one more token.
  Mixed read(std::span<const int32_t> ids);
  Mixed feed(int32_t id);

 private:
  std::vector<std::unique_ptr<evaluate::CheckpointModel>> models_;
  std::vector<std::unique_ptr<run::Executor>> executors_;
  std::vector<std::unique_ptr<evaluate::Generator>> generators_;
};

struct EnsembleLoss {
  double sum = 0;                // of the mean of probabilities
  double divergence = 0;         // sum
  int64_t count = 0, agree = 0;  // tokens; of which all members have the same most likely one
};

// Over the next-token predictions of the first `samples` of a source, each read from its beginning.
EnsembleLoss ensemble_loss(Ensemble& ensemble, const samples::FiniteSource& source, int64_t samples,
                           const std::function<void(int64_t)>& progress);

}  // namespace kintsugi::app
