#include "kintsugi/evaluate/perplexity.h"

#include <algorithm>
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/evaluate/batch_inputs.h"

namespace kintsugi::evaluate {

int64_t even_batch(int64_t batch, int64_t samples, int64_t data) {
  return (std::min(batch, samples) + data - 1) / data * data;
}

run::LossSum mean_loss(run::Executor& executor, const samples::SampleSource& source, const Rows& rows) {
  return *mean_loss_while(executor, source, rows, [](int64_t) { return true; });
}

std::optional<run::LossSum> mean_loss_while(run::Executor& executor, const samples::SampleSource& source,
                                            const Rows& rows, const std::function<bool(int64_t)>& goes_on) {
  const run::Executor::RowRange mine =
      executor.input_rows(program::Step::evaluate);  // none where a stage has no inputs
  samples::BatchMemory batch(mine.last - mine.first, source.parts());
  return run::run_evaluation(
      executor, (rows.samples + rows.batch - 1) / rows.batch,
      [&](const run::Executor::Inputs& inputs, int64_t i) {
        if (mine.first == mine.last) return;
        source.fill(static_cast<uint64_t>(i * rows.batch + mine.first), batch.view());
        set_inputs(inputs, batch.view(), mine.first);
      },
      [&](int64_t i) { return goes_on(i * rows.batch); });
}

double perplexity(std::string_view where, std::string_view what, double loss) {
  const double found = std::exp(loss);
  if (std::isinf(found))
    throw base::UserError(where, "the loss {} is {}, and its perplexity exceeds 1.8e308: the logits are too large",
                          what, base::format_loss(loss, 6));
  return found;
}

}  // namespace kintsugi::evaluate
