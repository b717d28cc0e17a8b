// Synthetic samples, for programs without data.
#pragma once

#include "kintsugi/config/settings.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::train {

// Has all parts that the model reads. Tokens are uniformly distributed, keyed by (seed, sample, position). One label in
// sixteen is not counted, and if a batch has document starts, each sample has two documents.
class RandomSamples : public samples::SampleSource {
 public:
  explicit RandomSamples(const config::Settings& settings);

  const samples::Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const samples::BatchView& batch) const override;

 private:
  samples::Parts parts_;
  uint32_t vocab_, types_, classes_;
  bool is_float_images_;
  uint64_t seed_;
};

}  // namespace kintsugi::train
