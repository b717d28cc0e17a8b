// The samples of training as a pure function of the seed: nothing is kept between steps, so that the cursor of a run
// is its step, and a resumed run sees what it would have seen.
//
//   sample n of a run, n = step * global_batch + i    (share.h says which i are whose)
//     -> (file, m)         the mixture: it is the m-th sample taken from that file
//     -> (epoch, j)        m = epoch * S + j, S = tokens / sequence samples per epoch of that file
//     -> window k          = Permutation(S, key of seed, file, epoch)(j)
//     -> first token       = (offset + k * sequence) mod tokens, the offset a random one of the epoch
//
// A file is treated as a ring, so that windows are adjacent from any offset: in an epoch each token is predicted at
// most once, and all but fewer than `sequence` of them exactly once. Where the ring closes, the file's last token
// predicts nothing. Each file of a mixture has its own epochs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kintsugi/data/token_file.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/mixture.h"
#include "kintsugi/samples/window.h"

namespace kintsugi::samples {

struct WeightedFile {
  std::shared_ptr<const data::TokenFile> file;
  double weight = 1.0;
};

struct SamplerOptions {
  int64_t sequence = 0;  // tokens per sample
  uint64_t seed = 0;
  bool reset_at_document = false;
  int64_t vocab_size = 0;  // ids are checked against it; 0: not checked
  int32_t begin = -1;      // of each sample; -1: none
};

class Sampler : public SampleSource {
 public:
  // UserError if a file has no more than `sequence` tokens.
  Sampler(std::vector<WeightedFile> files, SamplerOptions options);

  struct Place {
    size_t file;
    uint64_t epoch;
    uint64_t window;  // within the epoch
    uint64_t start;   // the token it begins with
  };
  Place locate(uint64_t sample) const;

  const Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const BatchView& batch) const override;

  uint64_t samples_per_epoch(size_t file) const;

 private:
  std::vector<WeightedFile> files_;
  SamplerOptions options_;
  WindowOptions window_;
  Mixture mixture_;
  Parts parts_;
};

}  // namespace kintsugi::samples
