#include "kintsugi/train/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "kintsugi/build/programs.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/data/loader.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/evaluate/perplexity.h"
#include "kintsugi/models/step.h"
#include "kintsugi/train/batches.h"
#include "kintsugi/train/find_bad.h"
#include "kintsugi/train/learning_rate.h"

namespace kintsugi::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// The data that a rank reads for its steps.
struct Inputs {
  data::Share share;
  data::RowSizes row;
  std::vector<data::BatchMemory> batches;  // of a step: a stage with several chunks needs each once for each chunk
  data::Loader loader;
};

Inputs open_inputs(const Rank& rank, int64_t first_step) {
  const config::Settings& s = rank.settings();
  const data::Share share = share_of(*rank.executor, s);
  const data::RowSizes row = rank.corpus.train->row();
  std::vector<data::BatchMemory> batches;
  for (int64_t m = 0; m < build::micro_batches(s); ++m) batches.emplace_back(share.micro_batch, row);
  return {.share = share,
          .row = row,
          .batches = std::move(batches),
          .loader = {*rank.corpus.train,
                     {.share = share,
                      .first_step = static_cast<uint64_t>(first_step),
                      .end_step = static_cast<uint64_t>(s.train.steps)}}};
}

kernels::Numbers numbers_of(const config::Settings& s, int64_t step) {
  return {.seed = s.train.seed,
          .step = step,
          .batch_rows = build::samples_of_pass(s),
          .learning_rate = learning_rate(s.train, step)};
}

[[noreturn]] void fail_not_finite(Rank& rank, const Inputs& inputs, const Progress& progress, double loss) {
  const config::Settings& s = rank.settings();
  data::BatchMemory batch(inputs.share.micro_batch, inputs.row);
  const std::string where =
      find_bad(*rank.executor, *rank.all, numbers_of(s, progress.step), [&](const run::Executor::Inputs& to) {
        const auto step = static_cast<uint64_t>(progress.step);
        rank.corpus.train->fill(inputs.share.first_sample(step, to.micro_batch()), batch.view());
        evaluate::set_inputs(to, batch.view(), inputs.share.place(0), inputs.row);
      });
  const std::string what = std::isfinite(loss) ? "gradient norm" : "loss";
  std::string next = "nothing was saved yet: try a smaller learning_rate";
  if (!progress.checkpoint.empty()) {
    // A value that was bad before the step is in the checkpoint of the previous step.
    const bool saved = where.ends_with("before the step") &&
                       progress.checkpoint == checkpoint::step_folder(rank.folder(), progress.step);
    next = fmt::format("the newest checkpoint, {}, {}", progress.checkpoint.string(),
                       saved ? "holds it too: go on from an older one, or start over, with a smaller learning_rate"
                             : "is whole: try a smaller learning_rate");
  }
  throw comm::SharedError("train", "step {}: the {} is not finite; first bad value: {}; {}", progress.step + 1, what,
                          where.empty() ? "none when run again" : where, next);
}

// The data cannot be read any more: the file has become shorter, the disk fails.
[[noreturn]] void fail_data(const std::string& when, const Progress& progress, const base::UserError& error) {
  const std::string_view what = error.what();
  const size_t at = what.find("] ");  // our own [where] replaces that of the file
  const std::string next = progress.checkpoint.empty()
                               ? "nothing was saved yet"
                               : fmt::format("the newest checkpoint, {}, is whole, and --resume goes on from it",
                                             progress.checkpoint.string());
  throw base::UserError("train", "{}: {}; {}", when, at == what.npos ? what : what.substr(at + 2), next);
}

const data::Loader::Item& next_batch(Inputs& inputs, const Progress& progress) {
  try {
    return inputs.loader.next();
  } catch (const base::UserError& error) {
    fail_data(fmt::format("step {}", progress.step + 1), progress, error);
  }
}

// The validation samples, with the errors of training.
class ValidationSamples : public data::SampleSource {
 public:
  ValidationSamples(const data::SampleSource& samples, const Progress& progress)
      : samples_(samples), progress_(progress) {}

  data::RowSizes row() const override { return samples_.row(); }
  void fill(uint64_t sample, const data::BatchView& batch) const override {
    try {
      samples_.fill(sample, batch);
    } catch (const base::UserError& error) {
      fail_data(fmt::format("the validation after step {}", progress_.step), progress_, error);
    }
  }

 private:
  const data::SampleSource& samples_;
  const Progress& progress_;
};

Metrics one_step(Rank& rank, Inputs& inputs, const Progress& progress) {
  const config::Settings& s = rank.settings();
  run::Executor& executor = *rank.executor;
  kernels::Numbers numbers = numbers_of(s, progress.step);
  size_t read = 0;
  executor.run(program::Step::train, numbers, [&](const run::Executor::Inputs& to) {
    const auto m = static_cast<size_t>(to.micro_batch());
    for (; read <= m; ++read) inputs.batches[read].copy(next_batch(inputs, progress).batch);
    evaluate::set_inputs(to, inputs.batches[m].view(), inputs.share.place(0), inputs.row);
  });
  for (; read < inputs.batches.size(); ++read) next_batch(inputs, progress);
  Metrics metrics;
  metrics.loss = executor.number(models::kLossSum) / executor.number(models::kLossCount);
  metrics.learning_rate = numbers.learning_rate;
  metrics.gradient_norm = executor.number(models::kGradientNorm);
  const bool updated = executor.number(models::kFinite) != 0.0;
  // With a scaled loss an infinite gradient is expected while the scale is searched, and costs only the step.
  if (!std::isfinite(metrics.loss) || (!updated && s.train.dtype != "fp16"))
    fail_not_finite(rank, inputs, progress, metrics.loss);
  return metrics;
}

double validation_loss(Rank& rank, const Progress& progress) {
  const config::Train& train = rank.settings().train;
  const int64_t batch = build::samples_of_pass(rank.settings());
  auto samples = static_cast<int64_t>(rank.corpus.validation->num_samples());
  const int64_t batches = (samples + batch - 1) / batch;
  if (train.evaluate_batches > 0) samples = std::min(samples, std::min(batches, train.evaluate_batches) * batch);
  const ValidationSamples source(*rank.corpus.validation, progress);
  return evaluate::mean_loss(*rank.executor, source, {.samples = samples, .batch = batch}, {}).mean();
}

// The reason to stop after this step, the same on every rank.
Stop asked_to_stop(const Rank& rank, const LoopOptions& options, int64_t step, double seconds) {
  const double minutes = rank.settings().train.stop_after_minutes;
  Stop mine = Stop::none, any = Stop::none;
  if (minutes > 0 && seconds >= 60.0 * minutes) mine = Stop::time;
  if (options.stop && options.stop->load() != 0) mine = Stop::signal;
  try {
    rank.all->wait(rank.all->all_reduce(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(&any, 1)),
                                        tensor::DType::i32, comm::Reduction::max));
  } catch (const comm::Timeout& e) {
    const std::string_view why = std::string_view(e.what()).substr(std::string_view("[comm] ").size());
    throw comm::Timeout(fmt::format("rank {}: after step {}, whether to stop: {}", rank.world.rank(), step, why),
                        e.arrived, e.missing);
  }
  return any;
}

// Adds the metrics of a step that took that long, and its progress.
void count_step(const Rank& rank, double peak_flops, Metrics& m, Progress& progress) {
  const config::Train& train = rank.settings().train;
  const int64_t tokens = train.global_batch * train.sequence;
  progress.tokens += tokens;
  ++progress.step;
  m.step = progress.step;
  m.tokens = progress.tokens;
  m.tokens_per_second = static_cast<double>(tokens) / m.seconds;
  m.flops_per_second = rank.step_flops / m.seconds;
  if (peak_flops > 0) m.peak_share = m.flops_per_second / (peak_flops * rank.world.size());
  m.memory_bytes = rank.executor->allocated_bytes();
}

bool every_so_often(int64_t every, int64_t step) {
  return every > 0 && step % every == 0;
}

bool is_best(const std::optional<double>& loss, const std::optional<double>& best) {
  return loss && std::isfinite(*loss) && (!best || *loss < *best);
}

}  // namespace

std::string_view name_of(Stop stop) {
  switch (stop) {
    case Stop::none:
      return "";
    case Stop::time:
      return "stop_after_minutes";
    case Stop::signal:
      return "signal";
  }
  return "";
}

LoopEnd run_steps(Rank& rank, const LoopOptions& options, Progress& progress) {
  const config::Settings& s = rank.settings();
  const auto began = Clock::now();
  Inputs inputs = open_inputs(rank, progress.step);
  LoopEnd end;
  while (progress.step < s.train.steps && end.stop == Stop::none) {
    const auto start = Clock::now();
    Metrics m = one_step(rank, inputs, progress);
    m.seconds = seconds_since(start);
    count_step(rank, options.peak_flops, m, progress);

    const bool last = progress.step >= s.train.steps;
    const Stop stop = asked_to_stop(rank, options, progress.step, seconds_since(began));
    if (rank.corpus.validation && (last || every_so_often(s.train.evaluate_every, progress.step)))
      end.validation_loss = m.validation_loss = validation_loss(rank, progress);
    if (options.folder) options.folder->require_there();
    if (options.metrics) options.metrics->write(m);
    if (options.events) options.events->write(m.step, report::seconds_since_1970(), to_scalars(m));
    if (options.observer) options.observer->step(m, s.train.steps);
    const bool best = is_best(m.validation_loss, progress.best_validation_loss);
    if (last || stop != Stop::none || best || every_so_often(s.checkpoint.every, progress.step))
      save(rank, best ? m.validation_loss : std::nullopt, progress);
    if (options.folder && last) options.folder->require_there();
    if (!last) end.stop = stop;
  }
  return end;
}

}  // namespace kintsugi::train
