// Which parameters share a bucket, their offsets, padding, and the update on buckets.
#include "kintsugi/lower/partition/buckets.h"

#include <gtest/gtest.h>

#include "kintsugi/graph/print.h"
#include "kintsugi/lower/pass_test.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::lower::buckets_test {
namespace {

using graph::StateId;
using graph::StateKind;

struct Model {
  graph::StateTable states;

  StateId weight(const std::string& name, Shape shape, int layer, bool decay = true, DType dtype = DType::f32) {
    const StateId id = states.add({.name = name, .type = {shape, dtype}, .layer = layer, .decay = decay});
    states.add({.name = name + ".gradient",
                .type = {shape, DType::f32},
                .kind = StateKind::gradient,
                .weight = id,
                .layer = layer,
                .saved = false});
    return id;
  }
};

plan::Plan plan_of(std::vector<mesh::Axis> axes, const std::vector<const char*>& rules) {
  plan::Plan plan = {.mesh = mesh::Mesh(std::move(axes))};
  for (const char* rule : rules) plan.rules.push_back(plan::parse_rule(rule));
  return plan;
}

// "up.weight+1 of layer 0 [shard:1 flat:4096] whole: up.weight 0+96, down.weight 1024+2400; gradient whole"
std::string text(const Buckets& b, const mesh::Mesh& mesh) {
  std::string t;
  for (const Bucket& bucket : b.list) {
    t += fmt::format("{} of layer {} {} {}:", bucket.name, bucket.layer, to_string(bucket.shape),
                     to_string(mesh, bucket.layout));
    for (const Member& m : bucket.members)
      t +=
          fmt::format("{} {} {}+{}", &m == &bucket.members[0] ? "" : ",", b.states[m.weight].name, m.first, m.elements);
    t += fmt::format("; gradient {}\n", to_string(mesh, bucket.gradient));
  }
  return t;
}

}  // namespace

TEST(Buckets, OfOneLayerDtypeAndDecay) {
  Model m;
  m.weight("table", {{"vocab", 10}, {"embed", 8}}, -1);
  m.weight("up.weight", {{"embed", 8}, {"ffn", 12}}, 0);
  m.weight("up.bias", {{"ffn", 12}}, 0, false);
  m.weight("down.weight", {{"ffn", 300}, {"embed", 8}}, 0);
  m.weight("narrow", {{"embed", 1024}}, 0, true, DType::bf16);
  m.weight("down.bias", {{"embed", 8}}, 0, false);
  m.weight("next.weight", {{"embed", 8}, {"ffn", 12}}, 1);
  const plan::Plan plan = plan_of({{.name = "data", .size = 2}}, {});
  const Buckets b = make_buckets(m.states, {}, plan);
  EXPECT_EQ(text(b, plan.mesh),
            "table of layer -1 [shard:1 flat:1024] whole: table 0+80; gradient whole\n"
            "up.weight+1 of layer 0 [shard:1 flat:4096] whole: up.weight 0+96, down.weight 1024+2400; gradient whole\n"
            "up.bias+1 of layer 0 [shard:1 flat:2048] whole: up.bias 0+12, down.bias 1024+8; gradient whole\n"
            "narrow of layer 0 [shard:1 flat:1024] whole: narrow 0+1024; gradient whole\n"
            "next.weight of layer 1 [shard:1 flat:1024] whole: next.weight 0+96; gradient whole\n");
  // The model's states keep their ids; those of buckets follow.
  const auto place = [&](const char* name) { return b.places.at(m.states.find(name)); };
  EXPECT_EQ(place("down.weight").bucket, 1);
  EXPECT_EQ(place("down.weight").member, 1u);
  EXPECT_EQ(place("down.weight").state, place("up.weight").state);
  EXPECT_EQ(b.states[place("up.weight").state].name, "bucket up.weight+1");
  EXPECT_EQ(b.states[place("down.weight.gradient").state].name, "bucket up.weight+1.gradient");
  EXPECT_EQ(b.states[place("narrow").state].type, (Type{{{"shard", 1}, {"flat", 1024}}, DType::bf16}));
  EXPECT_EQ(b.states[place("narrow.gradient").state].type, (Type{{{"shard", 1}, {"flat", 1024}}, DType::f32}));
  EXPECT_FALSE(b.states[place("narrow.gradient").state].saved);
}

TEST(Buckets, AWeightThatLayersShareIsAlone) {
  Model m;
  const StateId table = m.weight("table", {{"vocab", 10}, {"embed", 8}}, -1);
  m.weight("positions", {{"position", 7}, {"embed", 8}}, -1);
  const plan::Plan plan = plan_of({{.name = "data", .size = 2}}, {});
  EXPECT_EQ(text(make_buckets(m.states, {.arrivals = {}, .layers = {{table, {0, 1}}}}, plan), plan.mesh),
            "table of layer -1 [shard:1 flat:1024] whole: table 0+80; gradient whole\n"
            "positions of layer -1 [shard:1 flat:1024] whole: positions 0+56; gradient whole\n");
  EXPECT_EQ(text(make_buckets(m.states, {}, plan), plan.mesh),
            "table+1 of layer -1 [shard:1 flat:2048] whole: table 0+80, positions 1024+56; gradient whole\n");
}

// Blocks are those of a rank after the tensor split, and flat is a multiple of 1,024 per rank that shares it.
TEST(Buckets, SplitWeights) {
  Model m;
  m.weight("up.weight", {{"embed", 8}, {"ffn", 300}}, 0);
  m.weight("norm", {{"embed", 8}}, 0);
  m.weight("odd.weight", {{"embed", 8}, {"ffn", 301}}, 0);
  const plan::Plan plan = plan_of({{.name = "data", .size = 3}, {.name = "tensor", .size = 2}},
                                  {"ffn -> tensor, padded", "flat in optimizer -> data", "flat in gradient -> data"});
  EXPECT_EQ(text(make_buckets(m.states, {}, plan), plan.mesh),
            "up.weight+1 of layer 0 [shard:2 flat:6144] ffn/tensor: up.weight 0+1200, odd.weight 2048+1208; gradient "
            "flat/data, shard/tensor\n"
            "norm of layer 0 [shard:1 flat:3072] whole: norm 0+8; gradient flat/data\n");
}

// Parameters whose gradients are partial over other factors are reduced separately.
TEST(Buckets, GradientsThatArriveAlike) {
  Model m;
  const StateId a = m.weight("a", {{"embed", 8}}, 0), b = m.weight("b", {{"embed", 8}}, 0),
                c = m.weight("c", {{"embed", 8}}, 0);
  const plan::Plan plan = plan_of({{.name = "data", .size = 2}, {.name = "tensor", .size = 2}},
                                  {"flat in optimizer -> data", "flat in gradient -> data"});
  const Layout data = layout_of(plan.mesh, "sum over data"), both = layout_of(plan.mesh, "sum over data tensor");
  const Buckets buckets = make_buckets(m.states, {.arrivals = {{a, data}, {b, both}, {c, data}}, .layers = {}}, plan);
  EXPECT_EQ(text(buckets, plan.mesh),
            "a+1 of layer 0 [shard:1 flat:2048] whole: a 0+8, c 1024+8; gradient flat/data\n"
            "b of layer 0 [shard:1 flat:2048] whole: b 0+8; gradient flat/data, sum over tensor\n");
  EXPECT_EQ(to_string(plan.mesh, buckets.list[1].arriving), "sum over data, sum over tensor");
}

// Elementwise operations once per bucket, and the norm takes each bucket once.
TEST(Buckets, TheUpdate) {
  Model m;
  std::vector<StateId> weights = {m.weight("a", {{"embed", 8}}, 0), m.weight("b", {{"embed", 8}}, 0),
                                  m.weight("c", {{"embed", 8}}, 1)};
  for (StateId w : weights)
    m.states.add({.name = m.states[w].name + ".m",
                  .type = m.states[w].type,
                  .kind = StateKind::optimizer,
                  .weight = w,
                  .part = graph::OptimizerPart::first_moment});
  graph::Graph update("update", ops::operations(), m.states);
  update.phase = graph::Phase::update;
  const graph::ValueId one = update.fill(1.0, {{}, DType::f64});
  std::vector<graph::ValueId> operands = {one, one}, gradients;
  for (StateId w : weights) {
    gradients.push_back(update.read(m.states.find(m.states[w].name + ".gradient")));
    operands.push_back(update.op("sum_squares", {gradients.back()}));
  }
  const std::vector<graph::ValueId> scale = update.apply("update_scale", operands, {{"clip", 1.0}});
  for (size_t i = 0; i < weights.size(); ++i) {
    update.layer = m.states[weights[i]].layer;
    const StateId moment = m.states.find(m.states[weights[i]].name + ".m");
    const std::vector<graph::ValueId> next =
        update.apply("sgd", {update.read(weights[i]), gradients[i], update.read(moment), scale[1], scale[2]},
                     {{"momentum", 0.5}, {"weight_decay", 0.0}}, m.states[weights[i]].name);
    update.assign(next[0], weights[i]);
    update.assign(next[1], moment);
  }
  const plan::Plan plan = plan_of({{.name = "data", .size = 2}}, {});
  const Buckets buckets = make_buckets(m.states, {}, plan);
  EXPECT_EQ(print(update_of_buckets(update, buckets)),
            "graph update\n"
            " update layer 0\n"
            "  %0 fill[] fp64 = fill()  value=1\n"
            "  %1 bucket a+1.gradient[shard:1 flat:2048] fp32 = state()  bucket a+1.gradient\n"
            "  %2 sum_squares[shard:1 block:2] fp64 = sum_squares(%1)\n"
            "  %3 bucket c.gradient[shard:1 flat:1024] fp32 = state()  bucket c.gradient\n"
            "  %4 sum_squares[shard:1 block:1] fp64 = sum_squares(%3)\n"
            "  %5 update_scale.0[] fp64, %6 update_scale.1[] fp64, %7 update_scale.2[] fp64 = update_scale(%0, %0, %2, "
            "%4)  clip=1\n"
            "  %8 bucket a+1[shard:1 flat:2048] fp32 = state()  bucket a+1\n"
            "  %9 bucket a+1.m[shard:1 flat:2048] fp32 = state()  bucket a+1.m\n"
            "  %10 a.0.0[shard:1 flat:2048] fp32, %11 a.0.1[shard:1 flat:2048] fp32 = sgd(%8, %1, %9, %6, %7)  "
            "momentum=0.5 weight_decay=0\n"
            "  assign(%10)  bucket a+1\n"
            "  assign(%11)  bucket a+1.m\n"
            " update layer 1\n"
            "  %12 bucket c[shard:1 flat:1024] fp32 = state()  bucket c\n"
            "  %13 bucket c.m[shard:1 flat:1024] fp32 = state()  bucket c.m\n"
            "  %14 c.0.0[shard:1 flat:1024] fp32, %15 c.0.1[shard:1 flat:1024] fp32 = sgd(%12, %3, %13, %6, %7)  "
            "momentum=0.5 weight_decay=0\n"
            "  assign(%14)  bucket c\n"
            "  assign(%15)  bucket c.m\n");
}

}  // namespace kintsugi::lower::buckets_test
