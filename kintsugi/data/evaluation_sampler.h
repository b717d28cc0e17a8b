// The samples of an evaluation: adjacent windows from the first token to the last.
#pragma once

#include <cstdint>
#include <memory>

#include "kintsugi/data/batch.h"
#include "kintsugi/data/token_file.h"
#include "kintsugi/data/window.h"

namespace kintsugi::data {

struct EvaluationOptions {
  int64_t sequence = 0;
  bool reset_at_document = false;
  int64_t vocab_size = 0;  // ids are checked against it; 0: not checked
};

// Sample n begins at token n * sequence. Together the samples predict every token but the first exactly once, so that
// a loss over all of them is that of the whole file. Positions past the end, in the last sample and in any sample
// after it (which ranks may need for an even division), have the label kIgnored.
class EvaluationSampler : public FiniteSource {
 public:
  // UserError if the file has fewer than two tokens.
  EvaluationSampler(std::shared_ptr<const TokenFile> file, EvaluationOptions options);

  uint64_t num_samples() const override;
  RowSizes row() const override { return row_of_tokens(options_.sequence, options_.reset_at_document); }
  void fill(uint64_t first, const BatchView& batch) const override;

 private:
  std::shared_ptr<const TokenFile> file_;
  EvaluationOptions options_;
};

}  // namespace kintsugi::data
