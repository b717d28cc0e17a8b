// Every optimizer, averages and training methods on the emulated device, compared with one rank of the processor.
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "kintsugi/models/optimizers.h"
#include "kintsugi/train/compare.h"
#include "kintsugi/train/random_samples.h"
#include "tests/layouts.h"

namespace kintsugi::tests::device_updates_test {
namespace {

// An optimizer, and what else is trained: "muon ema", "adamw dpo".
struct Case {
  std::string how, dtype, layout;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.how << " " << c.dtype << " " << c.layout;
}

config::Settings settings_of(const Case& c) {
  const auto is = [&](std::string_view word) { return c.how.find(word) != c.how.npos; };
  config::Settings s = small_model("llama", c.dtype);
  s.model.context = s.train.sequence = 8;
  s.model.layers = 2;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  s.train.optimizer = c.how.substr(0, c.how.find(' '));
  if (is("ema")) s.train.ema_decay = 0.9;
  if (is("dpo")) s.train.method = "dpo", s.dpo.beta = 0.3;
  if (is("grpo")) s.train.method = "grpo";
  if (is("clip")) s.grpo.clip = 0.5;
  s.data.reset_at_document = is("dpo") || is("sft");
  if (is("lora")) s.lora = {.rank = 3, .alpha = 6, .dropout = 0, .targets = {}};
  if (is("int8")) s.lora.frozen_dtype = "int8";
  if (is("frozen16")) s.lora.frozen_dtype = "bf16";
  set_layout(s, "device=emulated " + c.layout);
  s.train.micro_batch /= s.parallel.data;
  return s;
}

class UpdatesOnADevice : public testing::TestWithParam<Case> {};

TEST_P(UpdatesOnADevice, AreAsOnTheProcessor) {
  const config::Settings s = settings_of(GetParam());
  const train::RandomSamples samples(s);
  const double tolerance = train::default_tolerance(s);
  const train::Comparison c = train::compare(
      {.settings = s, .data = samples, .steps = 3, .tolerance = tolerance, .loss_tolerance = tolerance / 10});
  EXPECT_EQ(c.first(), nullptr) << train::print(c);
}

// Updates that need an entire weight, or depend on positions in it, in several layouts; updates of single elements in
// one each. Codes of moments of bf16 gradients vary with the layout.
std::vector<Case> optimizer_cases() {
  std::vector<Case> cases;
  const std::string layouts[] = {"data=2 zero=1", "data=2 zero=3", "tensor=2"};
  size_t next = 0;
  for (const models::Optimizer& optimizer : models::optimizers()) {
    const std::string name(optimizer.config.name);
    cases.push_back({name + " ema", "fp32", ""});
    const bool in_all = !optimizer.then.empty() || name == "lars" || name == "adamw8" || name == "adamw16";
    for (size_t i = 0; i < std::size(layouts); ++i)
      if (in_all || i == next % std::size(layouts))
        cases.push_back({name, i == 1 && name != "adamw8" ? "bf16" : "fp32", layouts[i]});
    ++next;
  }
  cases.push_back({"muon", "fp32", "data=2 zero=2"});
  return cases;
}

std::vector<Case> method_cases() {
  std::vector<Case> cases;
  const std::string layouts[] = {"", "data=2 zero=3", "tensor=2", "context=2"};
  size_t next = 0;
  for (const std::string method : {"dpo", "grpo", "grpo clip", "sft lora", "sft lora int8", "sft lora frozen16"})
    for (size_t i = 0; i < 2; ++i) cases.push_back({"adamw " + method, "fp32", layouts[i == 0 ? 0 : 1 + next++ % 3]});
  cases.push_back({"muon dpo", "bf16", "pipe=2"});
  cases.push_back({"adamw sft lora int8", "bf16", "pipe=2"});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, UpdatesOnADevice, testing::ValuesIn(optimizer_cases()));
INSTANTIATE_TEST_SUITE_P(Methods, UpdatesOnADevice, testing::ValuesIn(method_cases()));

}  // namespace
}  // namespace kintsugi::tests::device_updates_test
