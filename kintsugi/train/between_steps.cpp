#include "kintsugi/train/between_steps.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/field_error.h"
#include "kintsugi/evaluate/perplexity.h"
#include "kintsugi/samples/spread_samples.h"
#include "kintsugi/train/decide.h"
#include "kintsugi/train/sample_texts.h"

namespace kintsugi::train {

void fail_data(const std::string& when, const base::UserError& error) {
  const std::string_view what = error.what();
  const size_t at = what.find("] ");  // our own [where] replaces that of the file
  throw DataFailure("train", "{}: {}", when, at == what.npos ? what : what.substr(at + 2));
}

namespace {

// Validation samples, with errors reported as in training.
class SamplesWithin : public samples::FiniteSource {
 public:
  SamplesWithin(const samples::FiniteSource& samples, const Progress& progress)
      : samples_(samples), progress_(progress) {}

  uint64_t num_samples() const override { return samples_.num_samples(); }

  const samples::Parts& parts() const override { return samples_.parts(); }
  void fill(uint64_t sample, const samples::BatchView& batch) const override {
    try {
      samples_.fill(sample, batch);
    } catch (const base::UserError& error) {
      fail_data(fmt::format("the validation after step {}", progress_.step), error);
    }
  }

 private:
  const samples::FiniteSource& samples_;
  const Progress& progress_;
};

// Whether all ranks continue with what is done between two steps: not if it takes longer than half a second after a
// signal.
class Goes {
 public:
  Goes(const Rank& rank, const LoopOptions& options, std::string when)
      : rank_(rank), options_(options), when_(std::move(when)) {}

  bool on() {
    if (signalled(options_) && !asked_) asked_ = std::chrono::steady_clock::now();
    const bool late = asked_ && std::chrono::steady_clock::now() - *asked_ >= std::chrono::milliseconds(500);
    return decide(rank_, {.stop = late ? Stop::signal : Stop::none}, when_).stop == Stop::none;
  }

 private:
  const Rank& rank_;
  const LoopOptions& options_;
  std::string when_;
  std::optional<std::chrono::steady_clock::time_point> asked_;
};

// Number of samples of a validation file to evaluate, in any layout.
int64_t evaluated_samples(const config::Settings& s, const samples::FiniteSource& source) {
  const int64_t batch = s.train.global_batch, batches = s.train.evaluate_batches;
  const auto all = static_cast<int64_t>(source.num_samples());
  return batches > 0 && batches < (all + batch - 1) / batch ? batches * batch : all;
}

// Sets the losses. Returns false, without losses, if a signal interrupted it.
bool validate(Rank& rank, TextBytes* text_bytes, const LoopOptions& options, const Progress& progress, Metrics& m) {
  const config::Settings& s = rank.settings();
  m.validation_loss.reset(), m.top1.reset(), m.top5.reset(), m.validation_bits_per_byte.reset();
  m.rmse.reset(), m.rmse_channels.clear();
  int64_t bytes = 0;
  m.domains.clear();
  int64_t all = 0, before = 0;
  for (const ValidationSamples& file : rank.corpus.validation) all += evaluated_samples(s, *file.samples);
  Goes goes(rank, options, fmt::format("in the validation after step {}", progress.step));
  run::LossSum sum;
  std::vector<DomainLoss> domains;
  for (const ValidationSamples& file : rank.corpus.validation) {
    const SamplesWithin source(*file.samples, progress);
    const int64_t samples = evaluated_samples(s, source);
    const samples::SpreadSamples spread(source, static_cast<uint64_t>(samples));
    const auto goes_on = [&](int64_t done) {
      if (options.observer) options.observer->validating(before + done, all);
      return goes.on();
    };
    const auto loss = evaluate::mean_loss_while(*rank.executor, spread,
                                                {.samples = samples, .batch = compile::samples_of_pass(s)}, goes_on);
    if (!loss) return false;
    before += samples;
    sum.add(*loss);
    if (text_bytes) bytes += text_bytes->of_file(file.domain, spread, samples);
    if (!file.domain.empty() && loss->count > 0) domains.push_back({file.domain, loss->mean()});
  }
  if (sum.count == 0) {
    if (options.observer)
      options.observer->note(
          fmt::format("validation after step {}: none of its samples has a label, so there is no loss", progress.step));
    return true;
  }
  m.validation_loss = sum.mean();
  if (bytes > 0) m.validation_bits_per_byte = bits_per_byte(sum.sum, bytes);
  if (sum.correct)
    m.validation_preferences = {.reward_margin = *sum.reward / sum.count, .accuracy = *sum.correct / sum.count};
  if (sum.top1) m.top1 = *sum.top1 / sum.count;
  if (sum.top5) m.top5 = *sum.top5 / sum.count;
  if (!sum.errors.empty()) {
    evaluate::FieldError error = evaluate::field_error(s, sum);
    m.rmse = error.all;
    m.rmse_channels = std::move(error.channels);
  }
  m.domains = std::move(domains);
  return true;
}

// The same for answers to validation prompts, of the first of which `evaluate_batches` steps are made.
bool validate_rewards(Rank& rank, Rollouts& rollouts, const LoopOptions& options, const Progress& progress,
                      Metrics& m) {
  Goes goes(rank, options, fmt::format("in the validation after step {}", progress.step));
  const config::Train& train = rank.settings().train;
  m.validation_reward = rollouts.validate(train.evaluate_batches * train.global_batch, [&](int64_t done, int64_t all) {
    if (options.observer) options.observer->validating(done, all);
    return goes.on();
  });
  return m.validation_reward.has_value();
}

// Nothing if a signal interrupted it.
std::optional<std::vector<SampledText>> samples_of(Rank& rank, const LoopOptions& options, const Progress& progress) {
  Goes goes(rank, options, fmt::format("in the texts after step {}", progress.step));
  return sample_texts(rank, [&](int64_t done, int64_t all) {
    if (options.observer) options.observer->sampling(done, all);
    return goes.on();
  });
}

// Nothing if a signal interrupted it.
std::optional<std::vector<TaskScore>> task_scores_of(Rank& rank, const LoopOptions& options, const Progress& progress) {
  Goes goes(rank, options, fmt::format("in the evaluation tasks after step {}", progress.step));
  return rank.tasks->score(rank, [&](int64_t done, int64_t all) {
    if (options.observer) options.observer->scoring(done, all);
    return goes.on();
  });
}

}  // namespace

bool every_so_often(int64_t every, int64_t step) {
  return every > 0 && step % every == 0;
}

bool look_between_steps(Rank& rank, const BetweenSteps& between, const LoopOptions& options, const Progress& progress,
                        Metrics& m) {
  const config::Train& train = rank.settings().train;
  const bool last = progress.step >= train.steps || stops_here(options, progress.step);
  const auto due = [&](int64_t every) { return last || every_so_often(every, progress.step); };
  if (!rank.corpus.validation.empty() && due(train.evaluate_every) &&
      !validate(rank, between.bytes, options, progress, m))
    return false;
  if (!rank.corpus.validation_prompts.empty() && due(train.evaluate_every) &&
      !validate_rewards(rank, *between.rollouts, options, progress, m))
    return false;
  if (rank.tasks && due(rank.settings().evaluate.tasks_every)) {
    auto scores = task_scores_of(rank, options, progress);
    if (!scores) return false;
    m.tasks = std::move(*scores);
  }
  if (train.sample_every > 0 && due(train.sample_every)) {
    auto samples = samples_of(rank, options, progress);
    if (!samples) return false;
    m.samples = std::move(*samples);
  }
  return true;
}

}  // namespace kintsugi::train
