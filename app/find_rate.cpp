#include "app/find_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/outputs.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/report/rate_picture.h"
#include "kintsugi/train/find_rate.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {
namespace {

constexpr int64_t kRateSteps = 100;

void print_rates(const train::RateTest& test, const std::filesystem::path& picture) {
  constexpr size_t kRows = 20;
  write_out("learning rate     loss   smooth\n");
  const size_t every = std::max<size_t>(1, (test.steps.size() + kRows - 1) / kRows);
  for (size_t i = 0; i < test.steps.size(); ++i) {
    const train::RateStep& step = test.steps[i];
    if (i % every == 0 || i + 1 == test.steps.size())
      write_out("{:13.1e} {:>8} {:>8}\n", step.rate, base::format_loss(step.loss), base::format_loss(step.smooth));
  }
  if (test.diverged && !test.steps.empty()) write_out("diverged after {:.1e}\n", test.steps.back().rate);
  if (!test.steepest || !test.lowest) {
    write_out("the loss does not fall at any rate\n");
  } else {
    write_out("lowest at {:.1e}; falls fastest at {:.1e}\nset train.learning_rate = {:.1e}\n", *test.lowest,
              *test.steepest, std::min(*test.steepest, *test.lowest / 3));
  }
  write_out("picture {}\n", picture.string());
}

}  // namespace

void find_learning_rate(const RunOptions& options, config::Resolved config, const std::filesystem::path& picture) {
  const std::array<base::Output, 1> outputs = {{{"--picture", picture}}};
  before_ranks_meet([&] { refuse_run_files("train", options, config.settings, outputs); });
  const auto worlds = before_ranks_meet([&] { return train::make_worlds(config.settings); });
  Progress progress("testing learning rates");
  train::RateTest test;
  try {
    require_same_start(worlds, "train", "--find-learning-rate");
    test = train::find_rate({.config = std::move(config),
                             .steps = kRateSteps,
                             .progress = [&](int64_t done, int64_t all) { progress.count(done, all, "steps"); },
                             .note = [&](const std::string& line) { progress.print(line); }},
                            worlds);
  } catch (const std::exception& e) {
    progress.finish();
    end_all(worlds, e);
    throw;
  }
  progress.finish();
  if (worlds[0]->rank() != 0) return;
  report::RateCurve curve;
  for (const train::RateStep& step : test.steps) {
    curve.losses.push_back({step.rate, step.loss});
    curve.smooth.push_back({step.rate, step.smooth});
  }
  if (test.steepest && test.lowest) curve.marked = std::min(*test.steepest, *test.lowest / 3);
  base::write_output(picture, report::rate_picture(curve, "Loss over learning rates"));
  print_rates(test, picture);
}

}  // namespace kintsugi::app
