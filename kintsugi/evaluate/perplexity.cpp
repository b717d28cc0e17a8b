#include "kintsugi/evaluate/perplexity.h"

#include <algorithm>
#include <vector>

namespace kintsugi::evaluate {

int64_t even_batch(int64_t batch, int64_t samples, int64_t data) {
  return (std::min(batch, samples) + data - 1) / data * data;
}

run::LossSum mean_loss(run::Executor& executor, const data::SampleSource& source, const Rows& rows,
                       const std::function<void(int64_t)>& progress) {
  const run::Executor::RowRange mine = executor.input_rows(program::Step::evaluate);  // none where a stage has no inputs
  const int64_t sequence = source.sequence();
  const auto size = static_cast<size_t>((mine.last - mine.first) * sequence);
  std::vector<int32_t> tokens(size), labels(size), starts;
  if (executor.has_input(program::Step::evaluate, "starts")) starts.resize(size);
  return run::run_evaluation(executor, (rows.samples + rows.batch - 1) / rows.batch, [&](const run::Executor::Inputs& inputs, int64_t i) {
    if (progress) progress(i * rows.batch);
    if (size == 0) return;
    source.fill(static_cast<uint64_t>(i * rows.batch + mine.first), {tokens, labels, starts});
    inputs.set("tokens", {tokens, mine.first, sequence}, -1);
    inputs.set("labels", {labels, mine.first, sequence}, data::kIgnored);
    if (!starts.empty()) inputs.set("starts", {starts, mine.first, sequence}, 0);
  });
}

}  // namespace kintsugi::evaluate
