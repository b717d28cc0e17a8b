#include "kintsugi/train/find_rate.h"

#include <algorithm>
#include <cmath>

#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/models/step.h"
#include "kintsugi/samples/loader.h"
#include "kintsugi/train/batches.h"
#include "kintsugi/train/checkpoints.h"
#include "kintsugi/train/rank.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::train {
namespace {

constexpr double kFirstRate = 1e-7, kLastRate = 10.0;
constexpr double kSmoothing = 0.9;  // of the losses
constexpr double kDiverged = 4.0;   // times the lowest smooth loss
constexpr int64_t kSettling = 10;   // steps until a smooth loss is the mean of 1 / (1 - kSmoothing) losses

// A moving average whose first values are not drawn towards 0.
class SmoothLoss {
 public:
  double add(double loss) {
    sum_ = kSmoothing * sum_ + (1 - kSmoothing) * loss;
    weight_ = kSmoothing * weight_ + (1 - kSmoothing);
    return sum_ / weight_;
  }

 private:
  double sum_ = 0, weight_ = 0;
};

RateTest test_on_rank(const FindRateOptions& options, comm::World& world, bool alone) {
  Rank rank = make_rank(options.config, world, {.alone = alone});
  restore(rank, false, [&](const std::string& line) {
    if (rank.leads() && options.note) options.note(line);
  });
  const config::Settings& s = rank.settings();
  const samples::Share share = share_of(*rank.executor, s);
  std::vector<samples::BatchMemory> batches;
  for (int64_t m = 0; m < compile::micro_batches(s); ++m)
    batches.emplace_back(share.micro_batch, rank.corpus.train->parts());
  samples::Loader loader(*rank.corpus.train,
                         {.share = share, .first_step = 0, .end_step = static_cast<uint64_t>(options.steps)});
  std::vector<RateStep> steps;
  SmoothLoss smooth;
  double lowest = INFINITY;
  for (int64_t step = 0; step < options.steps; ++step) {
    if (options.progress && rank.leads()) options.progress(step, options.steps);
    kernels::Numbers numbers = {.seed = s.train.seed,
                                .step = step,
                                .batch_rows = compile::samples_of_pass(s),
                                .learning_rate = test_rate(step, options.steps)};
    for (samples::BatchMemory& batch : batches) batch.copy(loader.next().batch);
    rank.executor->run(program::Step::train, numbers, [&](const run::Executor::Inputs& to) {
      evaluate::set_inputs(to, batches[static_cast<size_t>(to.micro_batch())].view(), share.place(0));
    });
    const double count = rank.executor->number(models::kLossCount);
    if (count == 0) continue;  // no labels
    const double loss = rank.executor->number(models::kLossSum) / count;
    // Every rank has the same loss, so that all end together.
    if (!std::isfinite(loss) || rank.executor->number(models::kFinite) == 0) return judge_rates(steps, true);
    steps.push_back({.rate = numbers.learning_rate, .loss = loss});
    const double now = smooth.add(loss);
    lowest = std::min(lowest, now);
    if (now > kDiverged * lowest) return judge_rates(steps, true);
  }
  return judge_rates(steps, false);
}

}  // namespace

double test_rate(int64_t step, int64_t steps) {
  const double share = steps > 1 ? static_cast<double>(step) / static_cast<double>(steps - 1) : 0.0;
  return kFirstRate * std::pow(kLastRate / kFirstRate, share);
}

RateTest judge_rates(std::vector<RateStep> steps, bool diverged) {
  RateTest test = {.steps = std::move(steps), .diverged = diverged, .steepest = {}, .lowest = {}};
  SmoothLoss smooth;
  for (RateStep& step : test.steps) step.smooth = smooth.add(step.loss);
  if (test.steps.size() < 3) return test;
  const auto least = std::ranges::min_element(test.steps, {}, &RateStep::smooth);
  test.lowest = least->rate;
  double steepest = 0;
  // The first averages are those of few losses, whose differences are noise.
  const auto first = test.steps.begin() + std::min<int64_t>(kSettling, std::ssize(test.steps) - 1);
  for (auto at = first; at < least && at + 1 != test.steps.end(); ++at) {
    const double slope = ((at + 1)->smooth - (at - 1)->smooth) / std::log((at + 1)->rate / (at - 1)->rate);
    if (slope < steepest) {
      steepest = slope;
      test.steepest = at->rate;
    }
  }
  return test;
}

RateTest find_rate(const FindRateOptions& options, std::span<const std::unique_ptr<comm::World>> worlds) {
  require_ranks(*worlds[0], options.config.settings);
  require_order(*worlds[0], options.config.settings);
  RateTest result;
  comm::run_ranks(worlds, [&](comm::World& world) {
    RateTest mine = test_on_rank(options, world, worlds.size() == 1);
    if (&world == worlds[0].get()) result = std::move(mine);
  });
  return result;
}

}  // namespace kintsugi::train
