#include "kintsugi/evaluate/image_outputs.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/evaluate/not_finite.h"
#include "kintsugi/evaluate/perplexity.h"
#include "kintsugi/models/sample_outputs.h"

namespace kintsugi::evaluate {
namespace {

constexpr program::Step kOutputList = program::Step::evaluate;

// The first rank with the outputs.
int rank_with_outputs(const run::Executor& executor, comm::Communicator& all) {
  const int32_t mine = executor.has_output(kOutputList, models::kOutputs) ? 1 : 0;
  std::vector<int32_t> every(static_cast<size_t>(all.size()));
  all.wait(all.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  const auto found = std::ranges::find(every, 1);
  base::require(found != every.end(), "evaluate", "no rank has the outputs");
  return static_cast<int>(found - every.begin());
}

}  // namespace

void for_outputs(std::string_view where, CheckpointModel& model, const samples::FiniteSource& source, int64_t batch,
                 const std::function<void(int64_t, std::span<const float>)>& take) {
  const config::Settings& s = model.settings();
  const auto samples = static_cast<int64_t>(source.num_samples());
  const int64_t even = even_batch(batch, samples, config::data_ranks(s.parallel));
  models::Graphs graphs;
  comm::together(model.all(), [&] { graphs = models::build_outputs(s, even, s.train.sequence); });
  const auto executor = model.load(graphs);
  const int from = rank_with_outputs(*executor, model.all());
  const run::Executor::RowRange mine = executor->input_rows(kOutputList);
  samples::BatchMemory memory(mine.last - mine.first, source.parts());
  for (int64_t first = 0; first < samples; first += even) {
    kernels::Numbers numbers;
    executor->run(kOutputList, numbers, [&](const run::Executor::Inputs& inputs) {
      if (mine.first == mine.last) return;
      source.fill(static_cast<uint64_t>(first + mine.first), memory.view());
      set_inputs(inputs, memory.view(), mine.first);
    });
    std::vector<float> some;
    int64_t size = 0;
    if (model.all().rank() == from) {
      const tensor::View out = executor->output(kOutputList, models::kOutputs);
      tensor::dispatch(out.dtype(), [&]<typename T>(T) {
        for (const T& x : out.as<T>()) some.push_back(static_cast<float>(static_cast<tensor::arithmetic_t<T>>(x)));
      });
      size = std::ssize(some);
    }
    comm::Communicator& all = model.all();
    all.wait(all.broadcast(std::as_writable_bytes(std::span(&size, 1)), from));
    some.resize(static_cast<size_t>(size));
    all.wait(all.broadcast(std::as_writable_bytes(std::span(some)), from));
    some.resize(static_cast<size_t>(size / even * std::min(even, samples - first)));
    require_finite<float>(where, "outputs", some, *executor, &all);
    take(first, some);
  }
}

std::vector<float> outputs_of_samples(CheckpointModel& model, const samples::FiniteSource& source, int64_t batch,
                                      const std::function<void(int64_t)>& progress) {
  std::vector<float> outputs;
  progress(0);
  for_outputs("classify", model, source, batch, [&](int64_t first, std::span<const float> some) {
    outputs.insert(outputs.end(), some.begin(), some.end());
    progress(first);
  });
  return outputs;
}

}  // namespace kintsugi::evaluate
