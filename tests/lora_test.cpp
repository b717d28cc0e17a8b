// Adapters: gradients equal the algebra of the whole model, and every layout gives the answer of one rank.
#include "kintsugi/models/lora.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"
#include "tests/layout_lists.h"

namespace kintsugi::tests::lora_test {
namespace {

config::Settings lora_model(const std::string& name, const std::string& dtype) {
  config::Settings s = pipeline_model(name, dtype);
  s.train.global_batch = 16;
  s.train.micro_batch = 4;
  s.lora = {.rank = 3, .alpha = 6, .dropout = 0.1, .targets = {}};
  if (name.ends_with("-last")) s.lora.targets = {"layer3.attention.query"};  // the first stages have no backward pass
  if (name.ends_with("-value")) s.lora.targets = {"value"};                  // the first layer's keys need no gradient
  if (name.starts_with("mixtral")) {
    s.model.experts = 4;
    s.train.balance = "loss";
    s.lora.targets = {"*"};
  }
  if (name.starts_with("gptneox")) s.lora.targets = {"attention.*", "layer1.ffn.up"};
  if (name.ends_with("-int8")) s.lora.frozen_dtype = "int8";
  return s;
}

class LoraLayouts : public testing::TestWithParam<ModelLayout> {};

TEST_P(LoraLayouts, LossAndGradientsOfOneRankInFp64) {
  const Record found = run_layout(lora_model, GetParam(), "fp64", 4);
  EXPECT_EQ(difference(found, twin(lora_model, GetParam().model, "fp64", 4), 1e-9), "");
  for (const auto& [name, x] : found.gradients.back()) EXPECT_NE(name.find(".lora_"), name.npos) << name;
}

INSTANTIATE_TEST_SUITE_P(All, LoraLayouts,
                         testing::ValuesIn(std::vector<ModelLayout>{
                             {"llama", "data=2"},
                             {"llama", "data=4 zero=1"},
                             {"llama", "data=2 zero=2"},
                             {"gpt", "data=2 zero=3"},
                             {"llama", "tensor=2"},
                             {"gpt", "tensor=4"},
                             {"gptneox", "tensor=2 sequence_parallel"},
                             {"llama", "context=2"},
                             {"llama", "context=2 method=ring"},
                             {"llama", "pipe=2"},
                             {"gptneox", "pipe=2 schedule=zero_bubble"},
                             {"gpt", "pipe=4 recompute=full"},
                             {"llama", "pipe=2 data=2 zero=3"},
                             {"llama-last", "pipe=2"},
                             {"llama-value", "tensor=2"},
                             {"llama-last", "pipe=4 data=2 schedule=zero_bubble"},
                             {"llama", "data=2 tensor=2 zero=3 sequence_parallel"},
                             {"gptneox", "data=2 tensor=2 context=2 zero=2"},
                         }),
                         [](const auto& info) { return test_name(info.param); });

INSTANTIATE_TEST_SUITE_P(Experts, LoraLayouts,
                         testing::ValuesIn(std::vector<ModelLayout>{
                             {"mixtral", "expert=2"},
                             {"mixtral", "expert=2 tensor=2 zero=3"},
                             {"mixtral", "data=2 zero=1 rule=expert:data"},
                             {"mixtral", "expert=2 pipe=2 recompute=full"},
                         }),
                         [](const auto& info) { return test_name(info.param); });

INSTANTIATE_TEST_SUITE_P(Codes, LoraLayouts,
                         testing::ValuesIn(std::vector<ModelLayout>{
                             {"llama-int8", "data=2 zero=3"},
                             {"llama-int8", "data=2 tensor=2 zero=1 sequence_parallel"},
                             {"gpt-int8", "tensor=4"},
                             {"gptneox-int8", "pipe=2 data=2 zero=3"},
                             {"llama-int8", "pipe=4 recompute=full"},
                             {"mixtral-int8", "expert=2 tensor=2 zero=3"},
                         }),
                         [](const auto& info) { return test_name(info.param); });

// y [rows columns] += by a [rows inner] b [inner columns]; `turned` operands are transposed in memory.
void add_product(std::vector<double>& y, const std::vector<double>& a, const std::vector<double>& b, size_t inner,
                 double by, bool a_turned = false, bool b_turned = false) {
  const size_t rows = a.size() / inner, columns = b.size() / inner;
  ASSERT_EQ(y.size(), rows * columns);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      for (size_t k = 0; k < inner; ++k)
        y[r * columns + c] +=
            by * a[a_turned ? k * rows + r : r * inner + k] * b[b_turned ? c * inner + k : k * columns + c];
}

// The same for each of `experts` matrices, one after another.
void add_products(std::vector<double>& y, const std::vector<double>& a, const std::vector<double>& b, size_t inner,
                  double by, size_t experts, bool a_turned = false, bool b_turned = false) {
  const auto part = [&](const std::vector<double>& all, size_t e) {
    const auto size = static_cast<std::ptrdiff_t>(all.size() / experts), at = static_cast<std::ptrdiff_t>(e) * size;
    return std::vector<double>(all.begin() + at, all.begin() + at + size);
  };
  std::vector<double> sums;
  for (size_t e = 0; e < experts; ++e) {
    std::vector<double> own = part(y, e);
    add_product(own, part(a, e), part(b, e), inner, by, a_turned, b_turned);
    sums.insert(sums.end(), own.begin(), own.end());
  }
  y = std::move(sums);
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, const std::string& name) {
  ASSERT_EQ(got.size(), want.size()) << name;
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-12) << name << " " << i;
}

}  // namespace

// With W + s A B in place of W the whole model has the loss of the adapted one; with its gradient dW, the adapters'
// gradients are s dW B^T and s A^T dW.
TEST(Lora, GradientsAreThoseOfTheWholeModel) {
  for (const std::string family : {"llama", "gpt", "gptneox", "gemma3", "mixtral"}) {
    SCOPED_TRACE(family);
    config::Settings s = small_model(family, "fp64");
    s.model.dropout = 0;
    s.lora = {.rank = 3, .alpha = 4.5, .dropout = 0, .targets = {}};
    if (family == "mixtral") {
      s.model.experts = 3;
      s.lora.targets = {"*"};
      s.train.balance = "loss";
    }
    const auto experts = [&](const std::string& layer) -> size_t {
      return family == "mixtral" && layer.find(".ffn.") != layer.npos ? 3 : 1;
    };
    config::Settings whole = s;
    whole.lora = {};
    Machine adapted(s), full(whole);
    Numbers weights = adapted.states(program::StateKind::weight), merged = full.states(program::StateKind::weight);
    size_t layers = 0;
    for (auto& [name, b] : weights) {
      if (!name.ends_with(models::kLoraB)) continue;
      ++layers;
      for (size_t i = 0; i < b.size(); ++i) b[i] = 0.01 * static_cast<double>(i * 37 % 101) - 0.5;
      put(adapted.executor.state(name), b);
      const std::string layer = name.substr(0, name.size() - models::kLoraB.size());
      add_products(merged.at(layer + ".weight"), weights.at(layer + std::string(models::kLoraA)), b, 3, 1.5,
                   experts(layer));
    }
    EXPECT_EQ(layers, family.starts_with("gpt") ? 12u : 14u);
    for (const auto& [name, w] : merged) put(full.executor.state(name), w);
    EXPECT_NEAR(adapted.step(0, 0.0), full.step(0, 0.0), 1e-12);
    const Numbers gradients = adapted.states(program::StateKind::gradient),
                  of_full = full.states(program::StateKind::gradient);
    EXPECT_EQ(gradients.size(), 2 * layers);
    for (const auto& [name, b] : weights) {
      if (!name.ends_with(models::kLoraB)) continue;
      const std::string layer = name.substr(0, name.size() - models::kLoraB.size()),
                        a_name = layer + std::string(models::kLoraA);
      const std::vector<double>&a = weights.at(a_name), &dw = of_full.at(layer + ".weight.gradient");
      std::vector<double> da(a.size(), 0), db(b.size(), 0);
      const size_t n = experts(layer);
      add_products(da, dw, b, b.size() / n / 3, 1.5, n, false, true);
      add_products(db, a, dw, a.size() / n / 3, 1.5, n, true);
      expect_near(gradients.at(a_name + ".gradient"), da, a_name);
      expect_near(gradients.at(name + ".gradient"), db, name);
    }
  }
}

// In bf16 frozen weights have no master, 2 bytes each; adapters have 2 + 4 + 4 + 4 + 4 bytes, gradient included.
TEST(Lora, FrozenWeightsTakeTheirBytesAlone) {
  config::Settings s = lora_model("llama", "bf16");
  Machine machine(s);
  int64_t frozen = 0, adapters = 0;
  for (const program::StateInfo& info : machine.executor.program().states) {
    const bool adapter = info.name.find(".lora_") != info.name.npos;
    if (info.kind == program::StateKind::weight) {
      (adapter ? adapters : frozen) += info.whole.shape.elements();
      EXPECT_EQ(info.whole.dtype, tensor::DType::bf16);
    } else if (info.kind != program::StateKind::statistic) {
      EXPECT_TRUE(adapter) << info.name;
    }
  }
  int64_t bytes = 0;
  for (const program::StateInfo& info : machine.executor.program().states)
    if (info.kind != program::StateKind::statistic)
      bytes += info.whole.shape.elements() * tensor::size_of(machine.executor.program().buffer(info.buffer).type.dtype);
  EXPECT_EQ(bytes, 2 * frozen + (2 + 4 + 4 + 4 + 4) * adapters);
}

// With int8, matrices of the blocks have 1 byte per element and 4 per column; the other frozen weights have 2 bytes.
TEST(Lora, CodesAndScalesTakeTheirBytesAlone) {
  config::Settings s = lora_model("llama-int8", "bf16");
  Machine machine(s);
  const program::Program& p = machine.executor.program();
  int64_t codes = 0, scales = 0, others = 0, adapters = 0, bytes = 0;
  for (const program::StateInfo& info : p.states) {
    if (info.kind == program::StateKind::statistic) continue;
    bytes += info.whole.shape.elements() * tensor::size_of(p.buffer(info.buffer).type.dtype);
    if (info.kind != program::StateKind::weight) continue;
    const bool scale = info.name.ends_with(models::kScale), code = info.whole.dtype == tensor::DType::i8;
    int64_t& elements = models::is_adapter(info.name) ? adapters : code ? codes : scale ? scales : others;
    elements += info.whole.shape.elements();
    EXPECT_EQ(code, info.layer >= 0 && info.layer < s.model.layers && info.name.ends_with(models::kWeight))
        << info.name;
  }
  EXPECT_GT(codes, 10 * scales);
  EXPECT_EQ(bytes, codes + 4 * scales + 2 * others + (2 + 4 + 4 + 4 + 4) * adapters);
}

namespace {

// Frozen matrices stored in bf16 have the loss and the gradients of the same values in the training's dtype.
void expect_the_same_in_bf16(const std::string& family, int64_t matrices) {
  config::Settings s = small_model(family, "fp64");
  s.model.dropout = 0;
  s.lora = {.rank = 3, .alpha = 6, .dropout = 0, .targets = {}};
  if (s.model.experts > 0) s.model.experts = 3, s.train.balance = "loss", s.lora.targets = {"*"};
  config::Settings narrow = s;
  narrow.lora.frozen_dtype = "bf16";
  Machine stored(narrow), whole(s);
  Numbers weights = stored.states(program::StateKind::weight);
  int64_t elements = 0;
  for (const program::StateInfo& info : stored.executor.program().states)
    if (info.whole.dtype == tensor::DType::bf16) elements += info.whole.shape.elements();
  EXPECT_EQ(elements, matrices);
  const auto bytes = [](const Machine& m) {  // without the padding of buckets
    const program::Program& p = m.executor.program();
    int64_t sum = 0;
    for (const program::StateInfo& info : p.states)
      sum += info.whole.shape.elements() * tensor::size_of(p.buffer(info.buffer).type.dtype);
    return sum;
  };
  EXPECT_EQ(bytes(whole) - bytes(stored), 6 * elements);
  for (auto& [name, w] : weights) {
    if (name.ends_with(models::kLoraB))
      for (size_t i = 0; i < w.size(); ++i) w[i] = 0.01 * static_cast<double>(i * 37 % 101) - 0.5;
    put(stored.executor.state(name), w);
    put(whole.executor.state(name), w);
  }
  EXPECT_NEAR(stored.step(0, 0.0), whole.step(0, 0.0), 1e-12);
  const Numbers gradients = stored.states(program::StateKind::gradient);
  for (const auto& [name, g] : whole.states(program::StateKind::gradient)) expect_near(gradients.at(name), g, name);
}

}  // namespace

TEST(Lora, FrozenMatricesStoredInBf16) {
  constexpr int64_t kAttention = 2 * 24 * 24 + 2 * 24 * 12, kFeedForward = 3 * 24 * 36;
  expect_the_same_in_bf16("llama", 2 * (kAttention + kFeedForward));
  expect_the_same_in_bf16("mixtral", 2 * (kAttention + 3 * kFeedForward));  // each of three experts
}

// Frozen matrices in codes have the loss and the gradients of codes times scales.
TEST(Lora, FrozenMatricesStoredAsCodes) {
  for (const std::string family : {"llama", "gpt", "gemma3", "mixtral"}) {
    SCOPED_TRACE(family);
    config::Settings s = small_model(family, "fp64");
    s.model.dropout = 0;
    s.lora = {.rank = 3, .alpha = 6, .dropout = 0, .targets = {}};
    if (family == "mixtral") s.model.experts = 3, s.train.balance = "loss", s.lora.targets = {"*"};
    config::Settings coded = s;
    coded.lora.frozen_dtype = "int8";
    Machine stored(coded), whole(s);
    Numbers weights = stored.states(program::StateKind::weight);
    size_t matrices = 0;
    for (auto& [name, w] : weights) {
      if (name.ends_with(models::kScale)) continue;
      if (name.ends_with(models::kLoraB))
        for (size_t i = 0; i < w.size(); ++i) w[i] = 0.01 * static_cast<double>(i * 37 % 101) - 0.5;
      put(stored.executor.state(name), w);
      const auto scale = weights.find(name.substr(0, name.rfind('.')) + std::string(models::kScale));
      if (name.ends_with(models::kWeight) && scale != weights.end()) {
        ++matrices;
        const size_t experts = name.find(".ffn.") != name.npos && family == "mixtral" ? 3 : 1,
                     columns = scale->second.size() / experts, matrix = w.size() / experts;
        for (size_t i = 0; i < w.size(); ++i) w[i] *= scale->second[i / matrix * columns + i % columns];
      }
      put(whole.executor.state(name), w);
    }
    EXPECT_GE(matrices, 12u);
    EXPECT_NEAR(stored.step(0, 0.0), whole.step(0, 0.0), 1e-12);
    const Numbers gradients = stored.states(program::StateKind::gradient);
    EXPECT_FALSE(gradients.empty());
    for (const auto& [name, g] : whole.states(program::StateKind::gradient)) expect_near(gradients.at(name), g, name);
  }
}

TEST(Lora, RefusesTargetsThatMatchNothing) {
  config::Settings s = lora_model("llama", "fp32");
  s.lora.targets = {"query", "q_proj"};
  EXPECT_EQ(error_of([&] { models::build_training(s); }),
            "[model] lora.targets: no linear layer of a block matches \"q_proj\"; nearest: layer*.attention.query, "
            "layer*.ffn.up, layer*.attention.key");
}

}  // namespace kintsugi::tests::lora_test
