// Every layout gives the answer of one rank: loss and every gradient, by name, over 20 steps, with dropout.
#include "tests/layouts.h"

#include <gtest/gtest.h>

namespace kintsugi::tests {
namespace {

// Models whose sizes divide, and models whose sizes do not.
config::Settings model_of(const std::string& name, const std::string& dtype) {
  config::Settings s = small_model(name.substr(0, name.find('-')), dtype);
  s.model.dropout = 0.2;
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  s.train.steps = 20;
  if (name.ends_with("-even")) {
    s.model.vocab = 64;
    s.model.embed = 32;
    s.model.heads = 4;
    s.model.kv_heads = 4;
    s.model.ffn = 48;
  } else if (name.ends_with("-three")) {  // 3 key-value heads of 2 query heads each; a vocabulary of 65
    s.model.heads = 6;
    s.model.kv_heads = 3;
    s.model.ffn = 33;
    s.train.sequence = 7;
  } else if (name.ends_with("-one")) {  // one key-value head for all
    s.model.kv_heads = 1;
  }
  return s;
}

const std::vector<ModelLayout>& layouts() {
  static const std::vector<ModelLayout> list = {
      {"gpt", "data=2"},
      {"gpt", "data=4"},
      {"gpt", "data=2 zero=1"},
      {"gpt", "data=4 zero=1"},
      {"gpt", "data=2 zero=2"},
      {"gpt", "data=4 zero=2"},
      {"gpt", "data=2 zero=3"},
      {"gpt", "data=4 zero=3"},
      {"gpt", "data=4 zero=3 shard_group=2"},
      {"gpt", "data=4 zero=1 shard_group=2"},
      {"gpt", "tensor=2"},
      {"gpt", "tensor=2 keep_logits=false"},
      {"gpt", "tensor=4"},
      {"gpt-even", "tensor=4"},
      {"gpt", "tensor=2 sequence_parallel"},
      {"gpt", "tensor=2 sequence_parallel keep_gathered"},
      {"gpt", "tensor=4 sequence_parallel"},
      {"gpt-even", "tensor=4 sequence_parallel"},
      {"gpt", "context=2"},
      {"gpt", "context=4"},
      {"gpt", "context=2 balance=contiguous"},
      {"gpt", "context=2 method=ring"},
      {"gpt", "context=4 method=ring balance=contiguous"},
      {"gpt", "context=2 method=ulysses"},
      {"gpt-even", "context=4 method=ulysses"},
      {"gpt-three", "tensor=2"},
      {"gpt-three", "tensor=4"},
      {"gpt-three", "tensor=2 sequence_parallel"},
      {"gpt-three", "context=2"},
      {"gpt-three", "context=2 method=ring"},
      {"gpt-three", "data=4 zero=3"},
      {"gpt-one", "tensor=2"},
      {"gpt-one", "tensor=4"},
      {"gpt-one", "context=2 method=ulysses"},
      {"gpt-one", "tensor=2 context=2 method=ring"},
      {"gpt", "data=2 tensor=2"},
      {"gpt", "data=2 tensor=2 zero=3"},
      {"gpt", "data=2 tensor=2 zero=2 sequence_parallel"},
      {"gpt", "data=4 tensor=2 zero=3 sequence_parallel"},
      {"gpt", "data=2 context=2 zero=1"},
      {"gpt", "data=2 context=2 zero=3 shard_context"},
      {"gpt", "data=2 context=2 zero=2 method=ring"},
      {"gpt", "tensor=2 context=2"},
      {"gpt", "tensor=2 context=2 sequence_parallel method=ulysses"},
      {"gpt", "tensor=2 context=2 sequence_parallel method=ring"},
      {"gpt", "data=2 tensor=2 context=2 zero=1 sequence_parallel"},
      {"gpt", "data=2 tensor=2 context=2 zero=3 sequence_parallel method=ulysses"},
      {"gpt-three", "data=2 tensor=2 context=2 zero=3 sequence_parallel method=ulysses"},
      {"llama", "data=2 zero=3"},
      {"llama", "tensor=2"},
      {"llama", "tensor=4 sequence_parallel"},
      {"llama-three", "tensor=2 sequence_parallel"},
      {"llama", "context=2 method=ring"},
      {"llama", "context=2 method=ulysses"},
      {"llama", "data=2 tensor=2 zero=2"},
      {"llama", "data=2 tensor=2 context=2 zero=3 sequence_parallel method=ring"},
      {"llama-three", "data=2 tensor=2 context=2 zero=2"},
      {"llama-one", "data=2 tensor=4 zero=1 sequence_parallel"},
  };
  return list;
}

class Layouts : public testing::TestWithParam<ModelLayout> {};

TEST_P(Layouts, LossAndGradientsOfOneRankOver20StepsInFp64) {
  const Record found = run_layout(model_of, GetParam(), "fp64", 20);
  EXPECT_EQ(difference(found, twin(model_of, GetParam().model, "fp64", 20), 1e-9), "");
}

TEST_P(Layouts, OneStepInFp32) {
  const Record found = run_layout(model_of, GetParam(), "fp32", 1);
  EXPECT_EQ(difference(found, twin(model_of, GetParam().model, "fp32", 1), 1e-5), "");
}

INSTANTIATE_TEST_SUITE_P(All, Layouts, testing::ValuesIn(layouts()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace kintsugi::tests
