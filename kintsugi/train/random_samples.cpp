#include "kintsugi/train/random_samples.h"

#include "kintsugi/kernels/random.h"

namespace kintsugi::train {

void RandomSamples::fill(uint64_t first, const data::BatchView& batch) const {
  const auto key = kernels::random_key(seed_, "samples"), other = kernels::random_key(seed_, "documents");
  const auto vocab = static_cast<uint32_t>(vocab_), sequence = static_cast<uint32_t>(sequence_);
  data::for_each_row(batch, sequence_, [&](size_t row, const data::BatchView& view) {
    const uint64_t sample = first + row;
    const auto token = [&](uint32_t at) { return kernels::random_word(key, sample, at); };
    for (uint32_t i = 0; i < sequence; ++i) {
      view.tokens[i] = static_cast<int32_t>(token(i) % vocab);
      const uint32_t next = token(i + 1);
      view.labels[i] = next / vocab % 16 == 0 ? data::kIgnored : static_cast<int32_t>(next % vocab);
    }
    const uint32_t second = kernels::random_word(other, sample, 0) % sequence;
    for (uint32_t i = 0; i < view.document_starts.size(); ++i)
      view.document_starts[i] = i < second ? 0 : static_cast<int32_t>(second);
  });
}

}  // namespace kintsugi::train
