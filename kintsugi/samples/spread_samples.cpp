#include "kintsugi/samples/spread_samples.h"

#include "kintsugi/base/error.h"

namespace kintsugi::samples {

SpreadSamples::SpreadSamples(const FiniteSource& source, uint64_t taken)
    : source_(source), all_(source.num_samples()), taken_(taken) {
  base::require(taken_ > 0 && taken_ <= all_, "validation", "{} of {} samples", taken_, all_);
}

void SpreadSamples::fill(uint64_t first, const BatchView& batch) const {
  if (taken_ == all_) return source_.fill(first, batch);
  for_each_row(batch, parts(), [&](uint64_t row, const BatchView& view) {
    const uint64_t i = first + row;
    // Samples past the last are uncounted, as in the source.
    source_.fill(
        i < taken_ ? static_cast<uint64_t>(static_cast<unsigned __int128>(i) * all_ / taken_) : all_ + (i - taken_),
        view);
  });
}

}  // namespace kintsugi::samples
