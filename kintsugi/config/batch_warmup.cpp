#include "kintsugi/config/batch_warmup.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::config {
namespace {

constexpr int64_t kMostSteps = 1'000'000'000'000;

std::optional<int64_t> number_above_0(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > kMostSteps)
    return std::nullopt;
  return number;
}

}  // namespace

std::vector<BatchStage> batch_stages(const Train& train) {
  std::vector<BatchStage> stages;
  for (const std::string& text : train.batch_warmup) {
    const std::vector<std::string> parts = tensor::words(text);
    const auto samples = parts.size() == 2 ? number_above_0(parts[0]) : std::nullopt,
               steps = parts.size() == 2 ? number_above_0(parts[1]) : std::nullopt;
    if (!samples || !steps)
      throw base::UserError("config",
                            "train.batch_warmup: \"{}\" is not a number of samples and one of steps, as in \"64 1000\"",
                            base::one_line(text, 60));
    stages.push_back({*samples, *steps});
  }
  return stages;
}

int64_t batch_of_step(std::span<const BatchStage> stages, int64_t full, int64_t step) {
  for (const BatchStage& stage : stages) {
    if (step < stage.steps) return stage.samples;
    step -= stage.steps;
  }
  return full;
}

int64_t samples_before(std::span<const BatchStage> stages, int64_t full, int64_t step) {
  int64_t samples = 0;
  for (const BatchStage& stage : stages) {
    const int64_t steps = std::min(step, stage.steps);
    samples += steps * stage.samples;
    step -= steps;
  }
  return samples + step * full;
}

}  // namespace kintsugi::config
