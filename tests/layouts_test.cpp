// Every layout gives the answer of one rank: loss and every gradient, by name, over 20 steps, with dropout.
#include "tests/layouts.h"

#include <gtest/gtest.h>

#include <map>

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

struct Layout {
  std::string model, parallel;
};

std::string name_of(const Layout& l) {
  return l.model + ": " + l.parallel;
}

void PrintTo(const Layout& l, std::ostream* out) {
  *out << name_of(l);
}

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> list = {
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

// What one rank makes of a model, made once.
const Record& twin(const std::string& model, const std::string& dtype, int64_t steps) {
  static std::map<std::string, Record> known;
  Record& r = known[model + dtype];
  if (r.losses.empty()) {
    const config::Settings s = model_of(model, dtype);
    train::LayoutRun run(s);
    r = record(run, s, steps);
  }
  return r;
}

Record run_layout(const Layout& l, const std::string& dtype, int64_t steps) {
  config::Settings s = model_of(l.model, dtype);
  set_layout(s, l.parallel);
  s.train.micro_batch /= s.parallel.data;
  train::LayoutRun run(s);
  return record(run, s, steps);
}

class Layouts : public testing::TestWithParam<Layout> {};

TEST_P(Layouts, LossAndGradientsOfOneRankOver20StepsInFp64) {
  EXPECT_EQ(difference(run_layout(GetParam(), "fp64", 20), twin(GetParam().model, "fp64", 20), 1e-9), "");
}

TEST_P(Layouts, OneStepInFp32) {
  EXPECT_EQ(difference(run_layout(GetParam(), "fp32", 1), twin(GetParam().model, "fp32", 1), 1e-5), "");
}

INSTANTIATE_TEST_SUITE_P(All, Layouts, testing::ValuesIn(layouts()), [](const auto& info) {
  std::string name = name_of(info.param);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace kintsugi::tests
