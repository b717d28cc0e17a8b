// Some samples of a file, spread over the whole of it.
#pragma once

#include <cstdint>

#include "kintsugi/data/batch.h"

namespace kintsugi::train {

// Sample i of `taken` is sample i * all / taken of the source: the same ones each time, in every layout. With as many
// as there are, it is the source.
class SpreadSamples : public data::FiniteSource {
 public:
  SpreadSamples(const data::FiniteSource& source, uint64_t taken);

  uint64_t num_samples() const override { return taken_; }
  data::RowSizes row() const override { return source_.row(); }
  void fill(uint64_t first, const data::BatchView& batch) const override;

 private:
  const data::FiniteSource& source_;
  uint64_t all_, taken_;
};

}  // namespace kintsugi::train
