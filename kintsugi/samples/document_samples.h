// Samples that are the documents of a token file, each with a class or numbers from a table of labels:
//
//   [first] the document, truncated to fit [separator] padding
//
// Padding is a document of its own, of tokens -1.
#pragma once

#include <memory>

#include "kintsugi/data/number_table.h"
#include "kintsugi/data/token_file.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/sample_order.h"

namespace kintsugi::samples {

struct DocumentOptions {
  int64_t sequence = 0;                // tokens per sample
  int64_t targets = 0;                 // numbers per sample; 0: a class
  int64_t first = -1, separator = -1;  // ids; -1: none
  int64_t vocab = 0;
  SampleOrder order;
};

class DocumentSamples : public FiniteSource {
 public:
  // Throws UserError unless there is a line of labels for each document, with the requested number of columns.
  DocumentSamples(std::shared_ptr<const data::TokenFile> file, std::shared_ptr<const data::NumberTable> labels,
                  DocumentOptions options);

  uint64_t num_samples() const override { return file_->num_documents(); }
  const Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const BatchView& batch) const override;

 private:
  std::shared_ptr<const data::TokenFile> file_;
  std::shared_ptr<const data::NumberTable> labels_;
  DocumentOptions options_;
  Parts parts_;
};

}  // namespace kintsugi::samples
