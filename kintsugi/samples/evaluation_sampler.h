// The samples of an evaluation: adjacent windows from the first token to the last.
#pragma once

#include <cstdint>
#include <memory>

#include "kintsugi/data/token_file.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/window.h"

namespace kintsugi::samples {

struct EvaluationOptions {
  int64_t sequence = 0;
  bool reset_at_document = false;
  int64_t vocab_size = 0;  // bound on ids; 0: not checked
  int32_t begin = -1;      // prepended to each sample, which then predicts its first token too; -1: none
};

// Sample n begins at token n * sequence. Together the samples predict every token except the first exactly once, so
// that a loss over all of them is that of the entire file. Positions past the end, in the last sample and in any sample
// after it (which ranks may need for an even split), have the label kIgnored.
class EvaluationSampler : public FiniteSource {
 public:
  // Throws UserError if the file has fewer than two tokens.
  EvaluationSampler(std::shared_ptr<const data::TokenFile> file, EvaluationOptions options);

  uint64_t num_samples() const override;
  const Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const BatchView& batch) const override;

 private:
  std::shared_ptr<const data::TokenFile> file_;
  EvaluationOptions options_;
  Parts parts_;
};

}  // namespace kintsugi::samples
