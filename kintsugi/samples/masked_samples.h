// Samples of which some tokens are hidden and to be predicted (Devlin et al. 2019, section 3.1), and pairs of which the
// second part follows the first or is from elsewhere. Made from windows of tokens:
//
//   [first] a window [separator]                               one part
//   [first] the window up to a cut [separator] B [separator]   two; B is the rest of the window (class 0), or as much
//   of
//                                                              another window (class 1), each with probability 1/2
//
// The cut is within a document where the window gives the documents' begins and there is such a place. Of the window's
// n tokens the nearest number to n * share, at least 1, is predicted, chosen at random: of these 80% are replaced by
// the mask, 10% by a random token of the vocabulary, and 10% are left. All of it is a function of the seed and the
// sample's number alone.
#pragma once

#include <memory>

#include "kintsugi/samples/batch.h"

namespace kintsugi::samples {

struct MaskedOptions {
  int64_t sequence = 0;  // tokens of a sample
  bool pairs = false;
  double share = 0.15;
  int64_t mask = 0;                    // ids
  int64_t first = -1, separator = -1;  // -1: none
  int64_t vocab = 0;
  uint64_t seed = 0;
};

// Tokens of the window of such a sample. UserError if there are too few.
int64_t window_of(const MaskedOptions& options);

class MaskedSamples : public FiniteSource {
 public:
  // `windows` gives tokens, labels and starts of window_of(options) tokens; `count` of them are whole, UINT64_MAX where
  // they do not end.
  MaskedSamples(std::unique_ptr<const SampleSource> windows, uint64_t count, MaskedOptions options);

  uint64_t num_samples() const override { return count_; }
  const Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const BatchView& batch) const override;

 private:
  // One window, as parts in the memory given; without starts if it is empty.
  void fill_from_window(uint64_t sample, std::span<int32_t> tokens, std::span<int32_t> labels,
                        std::span<int32_t> starts) const;
  void fill_sample(uint64_t sample, const BatchView& row) const;

  std::unique_ptr<const SampleSource> windows_;
  uint64_t count_;
  MaskedOptions options_;
  int64_t window_;
  bool documents_ = false;  // windows tell where documents begin
  Parts parts_;
};

}  // namespace kintsugi::samples
