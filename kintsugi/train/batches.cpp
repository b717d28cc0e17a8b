#include "kintsugi/train/batches.h"

#include <algorithm>

#include "kintsugi/build/programs.h"

namespace kintsugi::train {

Batch::Batch(int64_t rows, const config::Settings& s) {
  const auto n = static_cast<size_t>(rows * s.train.sequence);
  tokens_.resize(n);
  labels_.resize(n);
  if (s.data.reset_at_document) starts_.resize(n);
  view_ = {tokens_, labels_, starts_};
}

void Batch::copy(const data::BatchView& from) {
  std::copy(from.tokens.begin(), from.tokens.end(), tokens_.begin());
  std::copy(from.labels.begin(), from.labels.end(), labels_.begin());
  std::copy(from.document_starts.begin(), from.document_starts.end(), starts_.begin());
}

data::Share share_of(const run::Executor& executor, const config::Settings& s) {
  const run::Executor::RowRange needed = executor.input_rows(program::Step::train);
  const int64_t all = build::samples_of_pass(s), rows = needed.last - needed.first;
  const bool even = rows > 0 && all % rows == 0 && needed.first % rows == 0;
  if (!even) return {.global_batch = s.train.global_batch, .micro_batch = all};
  return {.global_batch = s.train.global_batch, .micro_batch = rows, .ranks = all / rows, .rank = needed.first / rows};
}

void set_inputs(const run::Executor::Inputs& inputs, const data::BatchView& batch, int64_t first, int64_t sequence) {
  inputs.set("tokens", {batch.tokens, first, sequence}, -1);
  inputs.set("labels", {batch.labels, first, sequence}, data::kIgnored);
  if (!batch.document_starts.empty()) inputs.set("starts", {batch.document_starts, first, sequence}, 0);
}

}  // namespace kintsugi::train
