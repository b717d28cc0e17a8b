#include "kintsugi/lower/partition/stages.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::lower::stages_test {
namespace {

using graph::Graph;

// An embedding, layers that multiply by a square of their width, and a head, each with one matmul: 2 FLOPs per element
// of the square.
Graph model(const graph::StateTable& states, const std::vector<int64_t>& widths) {
  Graph g("micro-batch", ops::operations(), states);
  for (size_t i = 0; i < widths.size(); ++i) {
    g.layer = static_cast<int>(i) - 1;
    const tensor::Type square = {{{"rows", widths[i]}, {"columns", widths[i]}}, tensor::DType::f32};
    const tensor::Type row = {{{"batch", 1}, {"rows", widths[i]}}, tensor::DType::f32};
    g.contract(g.input("a", row), g.input("b", square), "batch columns", tensor::DType::f32);
  }
  return g;
}

plan::Plan plan_of(int64_t stages, int chunks = 1, std::vector<int64_t> layers = {}) {
  plan::Plan plan = {.mesh = mesh::Mesh({{.name = "pipe", .size = stages, .cuts_layers = true}})};
  plan.chunks = chunks;
  plan.layers = std::move(layers);
  return plan;
}

struct Cut {
  graph::StateTable states;
  Graph g;

  explicit Cut(const std::vector<int64_t>& widths) : g(model(states, widths)) {}
  Stages by(const plan::Plan& plan) const {
    const Graph* graphs[] = {&g};
    return cut_layers(plan, graphs);
  }
  std::string error(const plan::Plan& plan) const {
    try {
      by(plan);
    } catch (const base::UserError& e) {
      return e.what();
    }
    return "no error";
  }
};

const std::vector<int64_t> kEqual = {1, 10, 10, 10, 10, 10, 10, 1};  // embedding, 6 layers, head

}  // namespace

TEST(Stages, OneHasEverything) {
  const Stages s = Cut(kEqual).by(plan_of(1));
  EXPECT_EQ(s.chunks(), 1);
  for (int layer = -1; layer <= 6; ++layer) EXPECT_EQ(s.stage(layer), 0);
}

TEST(Stages, TheMostExpensiveCostsAsLittleAsCanBe) {
  EXPECT_EQ(Cut(kEqual).by(plan_of(2)).last, (std::vector<int>{2, 5}));
  EXPECT_EQ(Cut(kEqual).by(plan_of(3)).last, (std::vector<int>{1, 3, 5}));
  // The embedding and the head count: a head worth four layers leaves one layer for the last stage.
  EXPECT_EQ(Cut({1, 10, 10, 10, 10, 10, 10, 20}).by(plan_of(2)).last, (std::vector<int>{4, 5}));
  EXPECT_EQ(Cut({20, 10, 10, 10, 10, 10, 10, 1}).by(plan_of(2)).last, (std::vector<int>{0, 5}));
  EXPECT_EQ(Cut({1, 10, 10, 30, 10, 10, 10, 1}).by(plan_of(3)).last, (std::vector<int>{1, 2, 5}));
}

TEST(Stages, EndsGoWithTheirLayersAndChunksRoundTheStages) {
  const Stages s = Cut(kEqual).by(plan_of(2, 3));
  EXPECT_EQ(s.last, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(s.chunk(-1), 0);
  EXPECT_EQ(s.chunk(6), 5);
  for (int layer = 0; layer < 6; ++layer) {
    EXPECT_EQ(s.chunk(layer), layer);
    EXPECT_EQ(s.stage(layer), layer % 2);
  }
}

TEST(Stages, AsTheyAreListed) {
  const Cut cut(kEqual);
  EXPECT_EQ(cut.by(plan_of(2, 1, {1, 5})).last, (std::vector<int>{0, 5}));
  EXPECT_EQ(cut.error(plan_of(2, 1, {1, 4})), "[stages] stages = \"1 4\" holds 5 of 6 layers: layer 5 would be lost");
  EXPECT_EQ(cut.error(plan_of(2, 1, {1, 2})),
            "[stages] stages = \"1 2\" holds 3 of 6 layers: layers 3 to 5 would be lost");
  EXPECT_EQ(cut.error(plan_of(2, 1, {3, 4})),
            "[stages] stages = \"3 4\" holds 7 layers; the model has 6, and none may be held twice");
  EXPECT_EQ(cut.error(plan_of(2, 1, {0, 6})), "[stages] stages = \"0 6\" has a part of 0 layers; each needs 1");
  EXPECT_EQ(cut.error(plan_of(2, 2, {3, 3})),
            "[stages] stages = \"3 3\" lists 2 parts; mesh axis \"pipe\" and chunks make 4");
}

TEST(Stages, MoreThanLayers) {
  EXPECT_EQ(Cut(kEqual).error(plan_of(7)),
            "[stages] mesh axis \"pipe\" of size 7 asks for 7 parts of 6 layers; at most pipe = 6");
  EXPECT_EQ(Cut(kEqual).error(plan_of(4, 2)),
            "[stages] mesh axis \"pipe\" of size 4 with chunks = 2 asks for 8 parts of 6 layers; at most pipe = 3");
}

}  // namespace kintsugi::lower::stages_test
