// Whole models on the emulated device beside one rank of the processor: losses, gradients and weights of steps, of
// which the first is enqueued, the second captured and the rest replayed.
#include <gtest/gtest.h>

#include "kintsugi/train/compare.h"
#include "kintsugi/train/random_samples.h"
#include "tests/layouts.h"

namespace kintsugi::tests::device_models_test {
namespace {

struct Case {
  std::string family, dtype, layout;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.family << " " << c.dtype << " " << c.layout;
}

class OnADevice : public testing::TestWithParam<Case> {};

TEST_P(OnADevice, IsAsOnTheProcessor) {
  const auto& [family, dtype, layout] = GetParam();
  config::Settings s = small_model(family, dtype);
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  s.parallel.device = "cpu";
  set_layout(s, "device=emulated " + layout);
  s.model.layers = std::max<int64_t>(2, s.parallel.pipe * s.parallel.chunks);
  s.train.micro_batch /= s.parallel.data;
  const train::RandomSamples samples(s);
  const double tolerance = train::default_tolerance(s);
  const train::Comparison c = train::compare(
      {.settings = s, .data = samples, .steps = 4, .tolerance = tolerance, .loss_tolerance = tolerance / 10});
  EXPECT_EQ(c.first(), nullptr) << train::print(c);
}

INSTANTIATE_TEST_SUITE_P(
    Models, OnADevice,
    testing::Values(Case{"gpt", "fp32", ""}, Case{"gpt", "bf16", ""}, Case{"gpt", "fp16", ""},
                    Case{"llama", "fp32", ""}, Case{"llama", "bf16", "recompute=full"}, Case{"bert", "fp32", ""},
                    Case{"gpt", "fp32", "data=2"}, Case{"gpt", "fp32", "data=2 zero=1"},
                    Case{"llama", "fp32", "data=2 zero=2"}, Case{"gpt", "fp32", "data=2 zero=3"},
                    Case{"llama", "bf16", "data=2 zero=3"}, Case{"gpt", "fp32", "tensor=2"},
                    Case{"llama", "fp32", "tensor=2 sequence_parallel"},
                    Case{"gpt", "bf16", "tensor=2 sequence_parallel"}, Case{"gpt", "fp32", "context=2"},
                    Case{"llama", "fp32", "context=2 method=ring"}, Case{"llama", "fp32", "context=2 method=ulysses"},
                    Case{"gpt", "fp32", "pipe=2 schedule=gpipe"}, Case{"llama", "fp32", "pipe=2 schedule=1f1b"},
                    Case{"gpt", "fp32", "pipe=2 schedule=interleaved chunks=2"},
                    Case{"gpt", "fp32", "pipe=2 schedule=zero_bubble"}, Case{"llama", "fp32", "pipe=2 data=2 tensor=2"},
                    Case{"gpt", "bf16", "offload=optimizer"}, Case{"llama", "fp32", "data=2 zero=1 offload=all"},
                    Case{"gpt", "fp16", "data=2 tensor=2 zero=2"}, Case{"llama", "bf16", "context=2 tensor=2 zero=1"}));

}  // namespace
}  // namespace kintsugi::tests::device_models_test
