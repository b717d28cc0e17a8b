// Samples for a program without data.
#pragma once

#include "kintsugi/data/batch.h"

namespace kintsugi::train {

// Every token is equally likely, keyed by (seed, sample, position). One label in sixteen is not counted, and if a
// batch has starts of documents, each sample has two documents.
class RandomSamples : public data::SampleSource {
 public:
  RandomSamples(int64_t sequence, int64_t vocab, uint64_t seed) : sequence_(sequence), vocab_(vocab), seed_(seed) {}

  int64_t sequence() const override { return sequence_; }
  void fill(uint64_t first, const data::BatchView& batch) const override;

 private:
  int64_t sequence_, vocab_;
  uint64_t seed_;
};

}  // namespace kintsugi::train
