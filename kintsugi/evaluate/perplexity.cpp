#include "kintsugi/evaluate/perplexity.h"

namespace kintsugi::evaluate {

run::LossSum mean_loss(run::Executor& executor, const data::SampleSource& source, int64_t samples,
                       const std::function<void(int64_t)>& progress) {
  const tensor::View tokens = executor.input("evaluate", "tokens"), labels = executor.input("evaluate", "labels");
  const bool has_starts = executor.has_input("evaluate", "starts");
  const data::BatchView batch = {
      tokens.as<int32_t>(), labels.as<int32_t>(),
      has_starts ? executor.input("evaluate", "starts").as<int32_t>() : std::span<int32_t>()};
  const int64_t rows = tokens.size("batch");
  return run::run_evaluation(executor, (samples + rows - 1) / rows, [&](int64_t i) {
    if (progress) progress(i * rows);
    source.fill(static_cast<uint64_t>(i * rows), batch);
  });
}

}  // namespace kintsugi::evaluate
