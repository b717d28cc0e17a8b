#include "kintsugi/lower/fuse/join_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kintsugi/graph/differentiate.h"
#include "kintsugi/graph/print.h"
#include "kintsugi/lower/order/split_backward.h"
#include "kintsugi/models/step.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::lower::join_head_test {
namespace {

config::Settings settings() {
  config::Settings s;
  s.model.layers = 1;
  s.model.embed = 8;
  s.model.heads = s.model.kv_heads = 2;
  s.model.ffn = 16;
  s.model.vocab = 11;
  s.model.context = 4;
  s.train.sequence = 4;
  s.train.micro_batch = s.train.global_batch = 2;
  return s;
}

// "forward head", ... for instructions that use or produce vocabulary statistics, and additions to statistics.
std::string text(const graph::Graph& g) {
  std::string t;
  for (const graph::Op& op : g.ops()) {
    const bool adds = op.kind() == "accumulate" && g.states()[op.state].kind == graph::StateKind::statistic;
    if (!adds && !op.kind().starts_with("head") && !op.kind().starts_with("cross_entropy")) continue;
    t += std::string(name_of(op.phase)) + " " + std::string(op.kind());
    if (adds) t += " " + g.states()[op.state].name;
    t += "\n";
  }
  return t;
}

const graph::Op& only(const graph::Graph& g, std::string_view kind) {
  const auto is = [&](const graph::Op& op) { return op.kind() == kind; };
  EXPECT_EQ(std::count_if(g.ops().begin(), g.ops().end(), is), 1) << kind;
  return *std::find_if(g.ops().begin(), g.ops().end(), is);
}

plan::Plan plan_with(std::vector<std::string> rules) {
  config::Settings s = settings();
  s.parallel.data = 2;
  s.parallel.rules = std::move(rules);
  return plan::plan_from(s.parallel);
}

}  // namespace

TEST(JoinHead, TheLossIsMadeWithItsGradient) {
  const models::Graphs graphs = models::build_training(settings());
  const graph::Graph joined = join_head(*graphs.micro, plan_with({}));
  EXPECT_EQ(text(joined),
            "backward cross_entropy_grad\n"
            "backward head_with_grad\n"
            "backward cross_entropy\n"
            "backward accumulate " +
                std::string(models::kLossParts) +
                "\n"
                "backward accumulate " +
                std::string(models::kCountParts) + "\n");
  EXPECT_EQ(joined.ops().size() + 1, graphs.micro->ops().size());
  for (const graph::Op& op : joined.ops())
    for (graph::ValueId v : op.ins) EXPECT_NE(v, graph::kNone) << op.kind();
}

TEST(JoinHead, AVocabularyThatIsSplitKeepsItsLogits) {
  const models::Graphs graphs = models::build_training(settings());
  plan::Plan plan = plan_with({"vocab -> data, padded"});
  const graph::Graph kept = join_head(*graphs.micro, plan);
  const std::string two =
      "backward cross_entropy_grad\n"
      "backward head\n"
      "backward head_grad\n"
      "backward cross_entropy\n"
      "backward accumulate loss.sum\n"
      "backward accumulate loss.count\n";
  EXPECT_EQ(text(kept), two);
  const graph::Op &head = only(kept, "head"), &gradient = only(kept, "head_grad");
  EXPECT_EQ(to_string(kept.shape(head.outs.at(2))), "[batch:2 seq:4 vocab:11]");
  EXPECT_EQ(gradient.ins.at(6), head.outs.at(2));
  plan.keep_logits = false;
  const graph::Graph twice = join_head(*graphs.micro, plan);
  EXPECT_EQ(text(twice), two);
  EXPECT_EQ(only(twice, "head").outs.size(), 2u);
  EXPECT_EQ(only(twice, "head_grad").ins.size(), 6u);
}

// The head of a small graph, with a bias, fused whole or per split.
TEST(JoinHead, ABiasStaysWithIt) {
  graph::StateTable states;
  const auto weight = [&](const std::string& name, tensor::Shape shape) {
    return states.add({.name = name, .type = {std::move(shape), tensor::DType::f32}});
  };
  const graph::StateId x = weight("x", {{"batch", 2}, {"seq", 3}, {"embed", 4}}),
                       table = weight("table", {{"vocab", 11}, {"embed", 4}}), bias = weight("bias", {{"vocab", 11}});
  graph::Graph g("micro-batch", ops::operations(), states);
  const graph::ValueId labels = g.input("labels", {{{"batch", 2}, {"seq", 3}}, tensor::DType::i32});
  const std::vector<graph::ValueId> statistics = g.apply("head", {g.read(x), g.read(table), labels, g.read(bias)});
  const std::vector<graph::ValueId> loss = g.apply("cross_entropy", {statistics[0], statistics[1], labels});
  std::vector<std::string> found;
  graph::differentiate(g, loss[0], g.fill(1.0, ops::scalar()), [&](const graph::StateGradient& d) {
    found.push_back(states[d.state].name + to_string(g.shape(d.gradient)));
  });
  EXPECT_NE(std::find(found.begin(), found.end(), "bias[vocab:11]"), found.end());
  const graph::Graph whole = join_head(g, plan_with({}));
  const graph::Op& both = only(whole, "head_with_grad");
  EXPECT_EQ(to_string(whole.shape(both.in("bias"))), "[vocab:11]");
  EXPECT_EQ(to_string(whole.shape(both.out("dbias"))), "[vocab:11]");
  const graph::Graph split = join_head(g, plan_with({"vocab -> data, padded"}));
  const graph::Op &head = only(split, "head"), &gradient = only(split, "head_grad");
  EXPECT_EQ(gradient.in("logits"), head.out("logits"));
  EXPECT_EQ(to_string(split.shape(gradient.in("bias"))), "[vocab:11]");
  EXPECT_EQ(to_string(split.shape(gradient.out("dbias"))), "[vocab:11]");
}

// With separate weight gradients, the loss is not fused with them: nothing that it needs waits for them.
TEST(JoinHead, TheLossIsNoGradientOfAWeight) {
  const models::Graphs graphs = models::build_training(settings());
  for (const char* rule : {"vocab -> data, padded", "vocab -> data"})
    EXPECT_EQ(text(split_backward(join_head(*graphs.micro, plan_with({rule})))).find("weight"), std::string::npos);
}

// A rule about another dim, or one that the size of the vocabulary does not fit.
TEST(JoinHead, OnlyARuleThatSplitsTheHeadKeepsThemApart) {
  const models::Graphs graphs = models::build_training(settings());
  const auto joined = [&](const std::string& rule) {
    return text(join_head(*graphs.micro, plan_with({rule}))).find("head_with_grad") != std::string::npos;
  };
  EXPECT_FALSE(joined("vocab -> data, padded"));
  EXPECT_FALSE(joined("vocab in head -> data, padded"));
  EXPECT_TRUE(joined("vocab -> data"));  // 11 in 2 parts
  EXPECT_TRUE(joined("vocab in optimizer -> data"));
  EXPECT_TRUE(joined("vocab in embedding -> data, padded"));
}

TEST(JoinHead, WhereNothingIsTrainedNothingChanges) {
  const models::Graphs graphs = models::build_training(settings());
  EXPECT_EQ(graph::print(join_head(*graphs.evaluate, plan_with({}))), graph::print(*graphs.evaluate));
}

}  // namespace kintsugi::lower::join_head_test
