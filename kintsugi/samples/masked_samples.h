// Samples with masked tokens to predict (Devlin et al. 2019, section 3.1), and pairs whose second segment follows the
// first or comes from elsewhere. Built from windows of tokens:
//
//   [first] a window [separator]                               one segment
//   [first] the window up to a cut [separator] B [separator]   two; B is the rest of the window (class 0), or as much
//   of
//                                                              another window (class 1), each with probability 1/2
//
// The cut is within a document if the window provides the beginnings of documents and such a place exists. Of the
// window's n tokens, predicts n * share, rounded, at least 1, chosen at random: replaces 80% of these by the mask and
// 10% by a random token of the vocabulary, and leaves 10%. All of this is a function of only the seed and the sample's
// index.
#pragma once

#include <memory>

#include "kintsugi/samples/batch.h"

namespace kintsugi::samples {

struct MaskedOptions {
  int64_t sequence = 0;  // tokens per sample
  bool pairs = false;
  double share = 0.15;
  int64_t mask = 0;                    // ids
  int64_t first = -1, separator = -1;  // -1: none
  int64_t vocab = 0;
  uint64_t seed = 0;
};

// The number of tokens in the window of such a sample. Throws UserError if there are too few.
int64_t window_of(const MaskedOptions& options);

class MaskedSamples : public FiniteSource {
 public:
  // `windows` provides tokens, labels and starts of window_of(options) tokens; `count` of them are complete, UINT64_MAX
  // if they do not end.
  MaskedSamples(std::unique_ptr<const SampleSource> windows, uint64_t count, MaskedOptions options);

  uint64_t num_samples() const override { return count_; }
  const Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const BatchView& batch) const override;

 private:
  // Fills the given memory with parts of one window; an empty `starts` is skipped.
  void fill_from_window(uint64_t sample, std::span<int32_t> tokens, std::span<int32_t> labels,
                        std::span<int32_t> starts) const;
  void fill_sample(uint64_t sample, const BatchView& row) const;

  std::unique_ptr<const SampleSource> windows_;
  uint64_t count_;
  MaskedOptions options_;
  int64_t window_;
  bool documents_ = false;  // windows provide the beginnings of documents
  Parts parts_;
};

}  // namespace kintsugi::samples
