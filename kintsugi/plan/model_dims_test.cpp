#include "kintsugi/plan/model_dims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"
#include "kintsugi/plan/check_plan.h"

namespace kintsugi::plan::model_dims_test {
namespace {

using graph::ValueId;
using tensor::DType;

// An image model: each pixel is multiplied by a weight, followed by a function and a narrow sum over rows.
struct Pictures {
  graph::StateTable states;
  graph::Graph g{"forward", ops::operations(), states};

  Pictures() {
    const auto weight = [&](const std::string& name, tensor::Shape shape, graph::StateKind kind) {
      return states.add({.name = name, .type = {std::move(shape), DType::f32}, .kind = kind});
    };
    const tensor::Shape filter = {{"channel", 3}, {"feature", 16}};
    const ValueId w = g.read(weight("filter", filter, graph::StateKind::weight));
    const ValueId bias = g.read(weight("bias", {{"feature", 16}}, graph::StateKind::weight));
    weight("filter.gradient", filter, graph::StateKind::gradient);
    weight("rate", {}, graph::StateKind::statistic);
    const ValueId x = g.input("picture", {{{"batch", 8}, {"height", 4}, {"width", 6}, {"channel", 3}}, DType::f32});
    const ValueId y = g.op("gelu", {g.add({g.contract(x, w, "batch height width feature", DType::f32), bias})});
    g.op("gelu", {g.sum_to(y, {{{"batch", 8}, {"width", 6}, {"feature", 16}}, DType::f32})});
  }

  ModelDims dims() const {
    const graph::Graph* const list[] = {&g};
    return dims_of(list);
  }
};

std::string text(const ModelDims& model) {
  std::string text = "dims";
  for (const tensor::Dim& d : model.dims) text += fmt::format(" {}:{}", d.name, d.size);
  for (const Place& p : model.places) {
    text += fmt::format("\n{}", p.family);
    for (const tensor::Dim& d : p.dims) text += fmt::format(" {}:{}", d.name, d.size);
  }
  return text + "\n";
}

std::string error_of(int64_t ranks, const std::string& rule) {
  const Pictures model;
  const Plan plan = {.mesh = mesh::Mesh({{.name = "space", .size = ranks}}), .rules = {parse_rule(rule)}};
  try {
    check_plan(plan, model.dims());
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(ModelDims, OfAGraph) {
  ModelDims model = Pictures().dims();
  EXPECT_EQ(text(model),
            "dims channel:3 feature:16 batch:8 height:4 width:6\n"
            "contract batch:8 height:4 width:6 channel:3 feature:16\n"
            "add batch:8 height:4 width:6 feature:16\n"
            "gelu batch:8 height:4 width:6 feature:16\n"
            "sum batch:8 height:4 width:6 feature:16\n"
            "weight channel:3 feature:16\n"
            "gradient channel:3 feature:16\n");
  EXPECT_EQ(fmt::format("{}", fmt::join(families(model), " ")),
            "contract add gelu sum weight gradient optimizer cache statistic");
  forget_size(model, "batch");
  EXPECT_EQ(model.dims[2], (tensor::Dim{"batch", 0}));
  EXPECT_EQ(model.places[0].dims[0], (tensor::Dim{"batch", 0}));
}

TEST(ModelDims, ARuleNamesAnyDimOfTheGraph) {
  EXPECT_EQ(error_of(4, "height -> space"), "no error");
  EXPECT_EQ(error_of(5, "height -> space, padded"),
            "[plan] dim \"height\" of size 4 is smaller than mesh axis \"space\" of size 5; nearest space: 4");
  EXPECT_EQ(error_of(2, "depth -> space"),
            "[plan] rule \"depth -> space\": there is no dim \"depth\"; there are channel, feature, batch, height, "
            "width, flat");
  EXPECT_EQ(error_of(2, "height in attention -> space"),
            "[plan] rule \"height in attention -> space\": there is no family \"attention\"; there are contract, add, "
            "gelu, sum, weight, gradient, optimizer, cache, statistic");
  EXPECT_EQ(error_of(2, "height -> space, in steps"),
            "[plan] rule \"height -> space, in steps\": no operation can take \"height\" in steps; no operation of the "
            "model takes a dim so");
}

// Heads over `tensor` are rules of the axis, for any model.
TEST(ModelDims, RulesOfAxesMayNameDimsThatTheModelLacks) {
  config::Parallel parallel = {.tensor = 2, .context = 2, .context_method = "ring"};
  EXPECT_NO_THROW(check_plan(plan_from(parallel), Pictures().dims()));
  parallel.rules = {"ffn -> tensor"};
  EXPECT_THROW(check_plan(plan_from(parallel), Pictures().dims()), base::UserError);
}

}  // namespace kintsugi::plan::model_dims_test
