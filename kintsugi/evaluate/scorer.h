// Log-likelihoods of continuations, by a program with outputs per sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

// A text whose last `scored` tokens are each predicted from all tokens before.
struct ScoredText {
  std::span<const int32_t> ids;  // at least `scored` + 1
  int64_t scored = 0;
};

struct Score {
  double log_likelihood = 0;  // the sum of log p(token | preceding tokens) over the scored tokens
  int64_t count = 0;          // number of scored tokens
  bool greedy = true;         // each is the most likely token, possibly tied
};

// A list with the outputs of models::build_scoring, and the sizes of its batch; 0: those of the program's inputs, if it
// is the only list.
struct ScoringList {
  program::Step step = program::Step::evaluate;
  int64_t batch = 0, sequence = 0;
};

// Runs such a list. Construct and call collectively on all ranks.
class Scorer {
 public:
  // Both must outlive it.
  Scorer(run::Executor& executor, comm::Communicator& all, const ScoringList& list = {});

  int64_t batch() const { return batch_; }  // maximum number of texts per call
  int64_t sequence() const { return sequence_; }

  // Returns a score per text, identical on every rank. A text has at most sequence() + 1 ids.
  std::vector<Score> score(std::span<const ScoredText> texts);

 private:
  run::Executor& executor_;
  comm::Communicator& all_;
  program::Step step_;
  int64_t batch_ = 0, sequence_ = 0;
  int from_ = 0;                          // the first rank with the outputs
  std::vector<int32_t> tokens_, labels_;  // [batch sequence]
};

}  // namespace kintsugi::evaluate
