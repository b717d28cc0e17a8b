#include "kintsugi/models/freeze.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"

namespace kintsugi::models::freeze_test {
namespace {

config::Settings small(std::vector<std::string> freeze) {
  config::Settings s;
  s.model.layers = 2;
  s.model.embed = 8;
  s.model.heads = s.model.kv_heads = 2;
  s.model.ffn = 12;
  s.model.vocab = 11;
  s.model.context = 6;
  s.train.sequence = 4;
  s.train.global_batch = s.train.micro_batch = 2;
  s.train.freeze = std::move(freeze);
  return s;
}

std::string error_of(std::vector<std::string> freeze) {
  try {
    build_training(small(std::move(freeze)));
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(Freeze, PatternsMatchWholeNamesAndBeginnings) {
  for (const auto& [pattern, name] :
       std::vector<std::pair<std::string, std::string>>{{"embedding.table", "embedding.table"},
                                                        {"embedding", "embedding.table"},
                                                        {"layer1", "layer1.ffn.up.weight"},
                                                        {"layer*.ffn", "layer12.ffn.up.weight"},
                                                        {"*.bias", "layer1.ffn.up.bias"},
                                                        {"*", "final_norm.gamma"}})
    EXPECT_TRUE(matches_beginning(pattern, name)) << pattern;
  for (const auto& [pattern, name] :
       std::vector<std::pair<std::string, std::string>>{{"embed", "embedding.table"},
                                                        {"layer1", "layer12.ffn.up.weight"},
                                                        {"ffn", "layer1.ffn.up.weight"},
                                                        {"*.bias", "layer1.ffn.up.weight"},
                                                        {"", "head.table"}})
    EXPECT_FALSE(matches_beginning(pattern, name)) << pattern;
}

TEST(Freeze, FrozenWeightsHaveNoStates) {
  const Graphs graphs = build_training(small({"embedding", "layer0"}));
  size_t frozen = 0;
  for (const graph::State& s : *graphs.states) {
    const std::string& weight = s.weight == graph::kNone ? s.name : (*graphs.states)[s.weight].name;
    const bool of_these = weight.starts_with("embedding.") || weight.starts_with("layer0.");
    if (s.kind == graph::StateKind::weight) {
      EXPECT_EQ(s.frozen, of_these) << s.name;
      frozen += s.frozen;
    } else {
      EXPECT_FALSE(of_these) << s.name;
    }
  }
  EXPECT_EQ(frozen, 2u + 16u);
}

TEST(Freeze, RefusesWhatMatchesNothingAndAllOfIt) {
  EXPECT_EQ(error_of({"embedding", "layer0.atention.query"}),
            "[model] train.freeze: no weight matches \"layer0.atention.query\"; nearest: layer*.attention.query.bias, "
            "layer*.attention.query.weight, layer*.attention.key.bias");
  EXPECT_EQ(error_of({"finl_norm"}),
            "[model] train.freeze: no weight matches \"finl_norm\"; nearest: final_norm.gamma, final_norm.beta, "
            "layer*.ffn_norm.gamma");
  EXPECT_EQ(error_of({"*"}), "[model] train.freeze: all 36 weights are frozen; leave some to train");
}

}  // namespace kintsugi::models::freeze_test
