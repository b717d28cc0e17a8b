// A subset of a file's samples, spaced evenly.
#pragma once

#include <cstdint>

#include "kintsugi/samples/batch.h"

namespace kintsugi::samples {

// Sample i of `taken` is sample i * all / taken of the source, independent of the layout. If `taken` equals the size of
// the source, it is the source.
class SpreadSamples : public FiniteSource {
 public:
  SpreadSamples(const FiniteSource& source, uint64_t taken);

  uint64_t num_samples() const override { return taken_; }
  const Parts& parts() const override { return source_.parts(); }
  void fill(uint64_t first, const BatchView& batch) const override;

 private:
  const FiniteSource& source_;
  uint64_t all_, taken_;
};

}  // namespace kintsugi::samples
