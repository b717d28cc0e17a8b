// Log-likelihoods of continuations, by a program with outputs per sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

// A text whose last `scored` tokens are predicted, each from all tokens before it.
struct ScoredText {
  std::span<const int32_t> ids;  // at least one more than `scored`
  int64_t scored = 0;
};

struct Score {
  double log_likelihood = 0;  // the sum over the scored tokens of log p(token | tokens before it)
  int64_t count = 0;          // scored tokens
  bool greedy = true;         // each is the most likely token, or as likely as that
};

// Runs the list `evaluate` of a program of models::build_scoring. All ranks construct theirs and call it together.
class Scorer {
 public:
  // Both must outlive it.
  Scorer(run::Executor& executor, comm::Communicator& all);

  int64_t batch() const { return batch_; }  // texts of a call, at most
  int64_t sequence() const { return sequence_; }

  // A score for each text, the same on every rank. A text has at most sequence() + 1 ids.
  std::vector<Score> score(std::span<const ScoredText> texts);

 private:
  run::Executor& executor_;
  comm::Communicator& all_;
  int64_t batch_ = 0, sequence_ = 0;
  int from_ = 0;                          // the first rank that has the outputs
  std::vector<int32_t> tokens_, labels_;  // [batch sequence]
};

}  // namespace kintsugi::evaluate
