// Training samples as a pure function of the seed: no state between steps, so the cursor of a run is its step, and a
// resumed run sees exactly what it would have seen.
//
//   sample n of a run, n = step * global_batch + i    (share.h assigns i to ranks)
//     -> (file, m)         the mixture: it is the m-th sample taken from that file
//     -> (epoch, j)        m = epoch * S + j, S = tokens / sequence samples per epoch of that file
//     -> window k          = Permutation(S, key of seed, file, epoch)(j)
//     -> first token       = (offset + k * sequence) mod tokens, with a random offset per epoch
//
// A file is treated as a ring, so that windows are adjacent for any offset: an epoch predicts each token at most once,
// and all except fewer than `sequence` exactly once. Where the ring closes, the file's last token predicts nothing.
// Each file of a mixture has its own epochs.
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
  int64_t vocab_size = 0;  // bound on ids; 0: not checked
  int32_t begin = -1;      // of each sample; -1: none
};

class Sampler : public SampleSource {
 public:
  // Throws UserError if a file has at most `sequence` tokens.
  Sampler(std::vector<WeightedFile> files, SamplerOptions options);

  struct Place {
    size_t file;
    uint64_t epoch;
    uint64_t window;  // within the epoch
    uint64_t start;   // the first token
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
