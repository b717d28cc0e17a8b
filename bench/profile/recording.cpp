// What it costs to record when each instruction began and ended: steps of all ranks, as threads, with a recorder and
// without one, in turns.
//
//   recording run.toml [--pairs N] [--set section.key=value ...]
//
// Inputs are random. [data] is not needed where model.vocab is given.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "kintsugi/base/error.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "kintsugi/profile/recorder.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/layout_run.h"
#include "kintsugi/train/random_samples.h"

namespace {

using namespace kintsugi;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void measure(int argc, char** argv) {
  std::vector<std::string> sets;
  int pairs = 20;
  for (int i = 2; i < argc; ++i)
    if (std::string(argv[i]) == "--pairs" && i + 1 < argc)
      pairs = std::max(1, std::atoi(argv[++i]));
    else if (std::string(argv[i]) != "--set")
      sets.emplace_back(argv[i]);
  config::Resolved resolved = config::load(argv[1], models::catalog(), sets, base::usable_cores());
  train::complete_from_data(resolved);
  const config::Settings& s = resolved.settings;
  train::LayoutRun run(s);
  const train::RandomSamples samples(s);
  std::vector<std::unique_ptr<profile::Recorder>> recorders;
  for (int rank = 0; rank < run.ranks(); ++rank)
    recorders.push_back(std::make_unique<profile::Recorder>(run.executor(rank).program(), program::Step::train));
  const auto step = [&](bool recorded) {
    for (int rank = 0; rank < run.ranks(); ++rank)
      run.executor(rank).recorder = recorded ? recorders[static_cast<size_t>(rank)].get() : nullptr;
    const int64_t begin = profile::now();
    run.step(0, 0, [&](int64_t, samples::BatchMemory& batch) { samples.fill(0, batch.view()); });
    return 1e-9 * static_cast<double>(profile::now() - begin);
  };
  step(false), step(true);
  std::vector<double> with, without, ratios;
  for (int pair = 0; pair < pairs; ++pair) {
    const bool first = pair % 2 == 0;  // which of them begins changes
    const double one = step(first), other = step(!first);
    with.push_back(first ? one : other);
    without.push_back(first ? other : one);
    ratios.push_back(with.back() / without.back());
  }
  size_t instructions = 0;
  for (const auto& recorder : recorders) instructions = std::max(instructions, recorder->times().instructions.size());
  fmt::print("{} pairs of steps of {} ranks, {} instructions a step; medians:\n", pairs, run.ranks(), instructions);
  fmt::print("without {:.3f} ms, with {:.3f} ms, {:+.2f}% of pairs\n", 1e3 * median(without), 1e3 * median(with),
             100 * (median(ratios) - 1));
  const double least_with = *std::ranges::min_element(with), least_without = *std::ranges::min_element(without);
  fmt::print("the fastest, which other programs disturb least: without {:.3f} ms, with {:.3f} ms, {:+.2f}%\n",
             1e3 * least_without, 1e3 * least_with, 100 * (least_with / least_without - 1));
  const int64_t begin = profile::now();
  for (int i = 0; i < 1'000'000; ++i) static_cast<void>(profile::now());
  const double clock = 1e-6 * static_cast<double>(profile::now() - begin);
  fmt::print("the clock takes {:.0f} ns, twice an instruction at most: {:.3f}% of the step\n", clock,
             200e-9 * clock * static_cast<double>(instructions) / median(without));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: recording run.toml [--pairs N] [--set section.key=value ...]\n");
    return 1;
  }
  try {
    measure(argc, argv);
  } catch (const base::UserError& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
