#include "kintsugi/exchange/weight_map.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/exchange/strides.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"

namespace kintsugi::exchange::weight_map_test {
namespace {

using Sizes = std::vector<int64_t>;

config::Model small(std::string_view family) {
  config::Model m = models::defaults_of(family);
  m.layers = 2;
  m.embed = 4;
  m.heads = m.kv_heads = 2;
  m.head_dim = 2;
  m.rotary_dims = 2;
  m.ffn = 5;
  m.vocab = 7;
  m.context = 3;
  return m;
}

std::map<std::string, MappedTensor> map_of(const config::Model& model) {
  std::map<std::string, MappedTensor> map;
  for (const MappedTensor& tensor : weight_map(models::family(model.family), model))
    EXPECT_TRUE(map.emplace(tensor.name, tensor).second) << tensor.name;
  return map;
}

void expect_place(const MappedWeight& w, const std::string& name, int64_t first, const Sizes& stride) {
  EXPECT_EQ(w.name, name);
  EXPECT_EQ(w.first, first) << name;
  EXPECT_EQ(w.stride, stride) << name << " " << to_string(w.shape);
}

std::string error_of(const config::Model& model) {
  try {
    weight_map(models::family(model.family), model);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(WeightMap, ColumnsSideBySide) {  // GPT-2
  const auto map = map_of(small("gpt"));
  const MappedTensor& weight = map.at("transformer.h.1.attn.c_attn.weight");
  EXPECT_EQ(weight.shape, (Sizes{4, 12}));
  ASSERT_EQ(weight.weights.size(), 3u);
  expect_place(weight.weights[0], "layer1.attention.query.weight", 0, {12, 2, 2, 1});
  expect_place(weight.weights[1], "layer1.attention.key.weight", 4, {12, 2, 1});
  expect_place(weight.weights[2], "layer1.attention.value.weight", 8, {12, 2, 1});
  const MappedTensor& bias = map.at("transformer.h.0.attn.c_attn.bias");
  EXPECT_EQ(bias.shape, (Sizes{12}));
  expect_place(bias.weights[2], "layer0.attention.value.bias", 8, {2, 1});
  expect_place(map.at("transformer.h.0.mlp.c_fc.weight").weights[0], "layer0.ffn.up.weight", 0, {5, 1});
  EXPECT_FALSE(map.contains("lm_head.weight"));
}

TEST(WeightMap, EachHeadsRowsSideBySide) {  // GPT-NeoX
  const auto map = map_of(small("gptneox"));
  const MappedTensor& weight = map.at("gpt_neox.layers.0.attention.query_key_value.weight");
  EXPECT_EQ(weight.shape, (Sizes{12, 4}));
  ASSERT_EQ(weight.weights.size(), 3u);
  expect_place(weight.weights[0], "layer0.attention.query.weight", 0, {1, 24, 24, 4});
  expect_place(weight.weights[1], "layer0.attention.key.weight", 8, {1, 24, 4});
  expect_place(weight.weights[2], "layer0.attention.value.weight", 16, {1, 24, 4});
  EXPECT_TRUE(map.contains("embed_out.weight"));
  config::Model grouped = small("gptneox");
  grouped.kv_heads = 1;
  EXPECT_EQ(error_of(grouped),
            "[model] a Hugging Face folder of gptneox has no place for this model: in "
            "gpt_neox.layers.0.attention.query_key_value.weight, layer0.attention.key.weight has no dim group");
}

TEST(WeightMap, RowsSideBySideWithFewerKeys) {  // Phi-3
  config::Model m = small("phi3");
  m.embed = 8;
  m.heads = 4;
  const auto map = map_of(m);
  const MappedTensor& weight = map.at("model.layers.0.self_attn.qkv_proj.weight");
  EXPECT_EQ(weight.shape, (Sizes{16, 8}));
  ASSERT_EQ(weight.weights.size(), 3u);
  expect_place(weight.weights[0], "layer0.attention.query.weight", 0, {1, 32, 16, 8});
  expect_place(weight.weights[1], "layer0.attention.key.weight", 64, {1, 16, 8});
  expect_place(weight.weights[2], "layer0.attention.value.weight", 96, {1, 16, 8});
  const MappedTensor& up = map.at("model.layers.1.mlp.gate_up_proj.weight");
  EXPECT_EQ(up.shape, (Sizes{10, 8}));
  expect_place(up.weights[1], "layer1.ffn.up.weight", 40, {1, 8});
}

TEST(WeightMap, Transposed) {  // Llama
  const auto map = map_of(small("llama"));
  const MappedTensor& down = map.at("model.layers.0.mlp.down_proj.weight");
  EXPECT_EQ(down.shape, (Sizes{4, 5}));
  expect_place(down.weights[0], "layer0.ffn.down.weight", 0, {1, 5});
  expect_place(map.at("model.embed_tokens.weight").weights[0], "embedding.table", 0, {4, 1});
  expect_place(map.at("lm_head.weight").weights[0], "head.table", 0, {4, 1});
}

TEST(WeightMap, WeightsWithoutAPlaceAreRefused) {
  config::Model m = small("llama");
  config::set_biases(m, true);
  m.norm = "layer";
  EXPECT_EQ(error_of(m), "[model] a Hugging Face folder of llama has no place for this model: of final_norm.beta");
  m = small("phi3");
  m.gated = false;
  EXPECT_EQ(error_of(m),
            "[model] a Hugging Face folder of phi3 has no place for this model: model.layers.0.mlp.gate_up_proj.weight "
            "has weights that it lacks");
}

// One tensor per expert, for a weight that holds all: the second `*` of a row.
TEST(WeightMap, ATensorForEachExpert) {
  config::Model m = small("mixtral");
  m.experts = 3;
  const auto map = map_of(m);
  for (int64_t expert = 0; expert < 3; ++expert) {
    const MappedTensor& down =
        map.at("model.layers.1.block_sparse_moe.experts." + std::to_string(expert) + ".w2.weight");
    EXPECT_EQ(down.shape, (Sizes{4, 5}));  // embed, ffn
    ASSERT_EQ(down.weights.size(), 1u);
    expect_place(down.weights[0], "layer1.ffn.down.weight", 0, {20, 1, 5});
    EXPECT_EQ(down.weights[0].begin, expert);
    EXPECT_EQ(to_string(down.weights[0].whole), "[expert:3 ffn:5 embed:4]");
  }
  EXPECT_EQ(map.at("model.layers.0.block_sparse_moe.gate.weight").shape, (Sizes{3, 4}));
  EXPECT_FALSE(map.contains("model.layers.0.block_sparse_moe.experts.3.w1.weight"));
  m.router_bias = true;  // no weight: folders have no place for it, which config.json says
  EXPECT_EQ(map_of(m).size(), map.size());
}

// Each weight of each family is at one place, and each element of each tensor belongs to one weight.
TEST(WeightMap, EveryFamilyIsMappedOnce) {
  for (const models::Family& family : models::families()) {
    // The round-trip test covers convolutional networks, some of which are large.
    if (family.hugging_face.model_types.empty() || family.config.reads_images) continue;
    SCOPED_TRACE(family.config.name);
    config::Settings s;
    s.model = small(family.config.name);
    const models::Graphs graphs = models::build_evaluation(s, 1, 1);
    std::set<std::string> left;
    for (const graph::State& state : *graphs.states)
      if (state.kind == graph::StateKind::weight) left.insert(state.name);
    if (family.config.name == "deepseek_v3")  // whose folders have the load-balancing bias
      left.insert("layer1.ffn.router.bias");
    for (const MappedTensor& tensor : weight_map(family, s.model)) {
      std::vector<int> times(static_cast<size_t>(tensor.elements()), 0);
      for (const MappedWeight& w : tensor.weights) {
        EXPECT_EQ(left.erase(w.name), w.begin == 0 ? 1u : 0u) << w.name;
        EXPECT_EQ(w.shape.elements() * (w.shape == w.whole ? 1 : w.whole[0].size), w.whole.elements()) << w.name;
        const checkpoint::Box whole = checkpoint::whole_box(w.shape);
        const Grid theirs = {w.first, whole.size, w.stride};
        std::vector<int64_t> index(whole.size.size(), 0);
        for (int64_t i = 0; i < whole.elements(); ++i) {
          int64_t rest = i;
          for (size_t d = index.size(); d-- > 0; rest /= whole.size[d]) index[d] = rest % whole.size[d];
          const int64_t at = theirs.at(index);
          ASSERT_TRUE(0 <= at && at < tensor.elements()) << w.name;
          ++times[static_cast<size_t>(at)];
        }
      }
      EXPECT_EQ(std::set(times.begin(), times.end()), std::set{1}) << tensor.name;
    }
    EXPECT_EQ(left, std::set<std::string>());
  }
}

}  // namespace kintsugi::exchange::weight_map_test
