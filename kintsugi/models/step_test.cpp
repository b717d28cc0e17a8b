// The graphs of small models as text, as a reader would check by eye.
#include "kintsugi/models/step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kintsugi/graph/print.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models::step_test {
namespace {

config::Settings small(const std::string& family) {
  config::Settings s;
  s.model = defaults_of(family);
  s.model.layers = 1;
  s.model.embed = 8;
  s.model.heads = 4;
  s.model.kv_heads = 2;
  s.model.ffn = 12;
  s.model.vocab = 11;
  s.model.context = 6;
  s.train.sequence = 4;
  s.train.global_batch = s.train.micro_batch = 2;
  s.train.dtype = "bf16";
  return s;
}

// The operations of a graph that write states, by kind and state.
std::vector<std::string> writes(const graph::Graph& g) {
  std::vector<std::string> list;
  for (const graph::Op& op : g.ops())
    if (op.row->effect && op.state != graph::kNone)
      list.push_back(std::string(op.kind()) + " " + g.states()[op.state].name);
  return list;
}

std::set<std::string> kinds(const graph::Graph& g) {
  std::set<std::string> set;
  for (const graph::Op& op : g.ops()) set.insert(std::string(op.kind()));
  return set;
}

size_t count(const graph::Graph& g, std::string_view kind) {
  size_t n = 0;
  for (const graph::Op& op : g.ops()) n += op.kind() == kind;
  return n;
}

}  // namespace

TEST(Llama, OneLayerByItsText) {
  graph::StateTable states;
  EXPECT_EQ(graph::print(build_forward(small("llama"), states)), R"(graph micro-batch
 forward layer -1
  %0 embedding.table[vocab:11 embed:8] bf16 = state()  embedding.table
  %1 tokens[batch:2 seq:4] int32 = input()  name=tokens
  %2 embedding[batch:2 seq:4 embed:8] bf16 = embedding(%1, %0)
 forward layer 0
  %3 layer0.attention_norm.gamma[embed:8] bf16 = state()  layer0.attention_norm.gamma
  %4 rms_norm[batch:2 seq:4 embed:8] bf16 = rms_norm(%2, %3)  epsilon=1e-05 whole=embed
  %5 layer0.attention.query.weight[embed:8 kv_heads:2 group:2 head_dim:2] bf16 = state()  layer0.attention.query.weight
  %6 contract[batch:2 seq:4 kv_heads:2 group:2 head_dim:2] bf16 = contract(%4, %5)  dims="batch seq kv_heads group head_dim" dtype=bf16
  %7 layer0.attention.key.weight[embed:8 kv_heads:2 head_dim:2] bf16 = state()  layer0.attention.key.weight
  %8 contract[batch:2 seq:4 kv_heads:2 head_dim:2] bf16 = contract(%4, %7)  dims="batch seq kv_heads head_dim" dtype=bf16
  %9 layer0.attention.value.weight[embed:8 kv_heads:2 head_dim:2] bf16 = state()  layer0.attention.value.weight
  %10 contract[batch:2 seq:4 kv_heads:2 head_dim:2] bf16 = contract(%4, %9)  dims="batch seq kv_heads head_dim" dtype=bf16
  %11 rotary[batch:2 seq:4 kv_heads:2 group:2 head_dim:2] bf16 = rotary(%6)  theta=10000 inverse=0 interleaved=0
  %12 rotary[batch:2 seq:4 kv_heads:2 head_dim:2] bf16 = rotary(%8)  theta=10000 inverse=0 interleaved=0
  %13 rotary[batch:2 key_seq:4 kv_heads:2 head_dim:2] bf16 = rename(%12)  from=seq to=key_seq
  %14 contract[batch:2 key_seq:4 kv_heads:2 head_dim:2] bf16 = rename(%10)  from=seq to=key_seq
  %15 attention.0[batch:2 seq:4 kv_heads:2 group:2 head_dim:2] bf16, %16 attention.1[batch:2 seq:4 kv_heads:2 group:2] fp32 = attention(%11, %13, %14)  causal=1 scale=0.7071067811865475 dropout=0 key=layer0.attention
  %17 layer0.attention.output.weight[kv_heads:2 group:2 head_dim:2 embed:8] bf16 = state()  layer0.attention.output.weight
  %18 contract[batch:2 seq:4 embed:8] bf16 = contract(%15, %17)  dims="batch seq embed" dtype=bf16
  %19 add[batch:2 seq:4 embed:8] bf16 = add(%2, %18)
  %20 layer0.ffn_norm.gamma[embed:8] bf16 = state()  layer0.ffn_norm.gamma
  %21 rms_norm[batch:2 seq:4 embed:8] bf16 = rms_norm(%19, %20)  epsilon=1e-05 whole=embed
  %22 layer0.ffn.gate.weight[embed:8 ffn:12] bf16 = state()  layer0.ffn.gate.weight
  %23 contract[batch:2 seq:4 ffn:12] bf16 = contract(%21, %22)  dims="batch seq ffn" dtype=bf16
  %24 layer0.ffn.up.weight[embed:8 ffn:12] bf16 = state()  layer0.ffn.up.weight
  %25 contract[batch:2 seq:4 ffn:12] bf16 = contract(%21, %24)  dims="batch seq ffn" dtype=bf16
  %26 gated[batch:2 seq:4 ffn:12] bf16 = gated(%23, %25)  activation=silu
  %27 layer0.ffn.down.weight[ffn:12 embed:8] bf16 = state()  layer0.ffn.down.weight
  %28 contract[batch:2 seq:4 embed:8] bf16 = contract(%26, %27)  dims="batch seq embed" dtype=bf16
  %29 add[batch:2 seq:4 embed:8] bf16 = add(%19, %28)
 forward layer 1
  %30 final_norm.gamma[embed:8] bf16 = state()  final_norm.gamma
  %31 rms_norm[batch:2 seq:4 embed:8] bf16 = rms_norm(%29, %30)  epsilon=1e-05 whole=embed
  %32 head.table[vocab:11 embed:8] bf16 = state()  head.table
  %33 labels[batch:2 seq:4] int32 = input()  name=labels
  %34 head.0[batch:2 seq:4] fp32, %35 head.1[batch:2 seq:4] fp32 = head(%31, %32, %33)
  %36 loss.0[] fp64, %37 loss.1[] fp64 = cross_entropy(%34, %35, %33)
  accumulate(%36)  loss.sum
  accumulate(%37)  loss.count
)");
}

// A tied table is one state, read twice; both uses add to one accumulator.
TEST(Gpt, ATiedTableIsOneState) {
  config::Settings s = small("gpt");
  const Graphs tied = build_training(s);
  const std::vector<std::string> to = writes(*tied.micro);
  EXPECT_EQ(std::count(to.begin(), to.end(), "accumulate embedding.table.gradient"), 2);
  EXPECT_EQ(tied.states->find("head.table"), graph::kNone);
  s.model.tied = false;
  const Graphs untied = build_training(s);
  const std::vector<std::string> apart = writes(*untied.micro);
  EXPECT_EQ(std::count(apart.begin(), apart.end(), "accumulate embedding.table.gradient"), 1);
  EXPECT_EQ(std::count(apart.begin(), apart.end(), "accumulate head.table.gradient"), 1);
}

// Weights with two or more dims decay: not norms, not biases.
TEST(Gpt, WhatDecays) {
  const Graphs graphs = build_training(small("gpt"));
  size_t weights = 0;
  for (const graph::State& state : *graphs.states) {
    if (state.kind != graph::StateKind::weight) continue;
    const bool norm_or_bias =
        state.name.ends_with(".gamma") || state.name.ends_with(".beta") || state.name.ends_with(".bias");
    EXPECT_EQ(state.decay, !norm_or_bias) << state.name;
    ++weights;
  }
  EXPECT_EQ(weights, 2u + 2 * 2 + 6 * 2 + 2);  // tables, norms of the layer, products, the last norm
  for (const graph::Op& op : graphs.update->ops()) {
    if (op.kind() != "adamw") continue;
    const graph::State& master =
        graphs.states->operator[](graphs.update->op_at(static_cast<size_t>(graphs.update->value(op.ins[0]).op)).state);
    EXPECT_EQ(op.attributes.number("weight_decay"), master.decay ? 0.1 : 0.0) << master.name;
  }
}

TEST(Gpt, WithoutBiases) {
  config::Settings s = small("gpt");
  config::set_biases(s.model, false);
  const Graphs graphs = build_training(s);
  for (const graph::State& state : *graphs.states)
    EXPECT_TRUE(state.name.find(".bias") == std::string::npos && state.name.find(".beta") == std::string::npos)
        << state.name;
  EXPECT_EQ(count(*graphs.micro, "layer_norm"), 3u);
}

// Dropout applies only in training: after the embedding, on both residuals, and in attention by its attribute.
TEST(Models, DropoutIsOfTrainingAlone) {
  for (const char* family : {"gpt", "llama"}) {
    config::Settings s = small(family);
    s.model.dropout = 0.25;
    const Graphs graphs = build_training(s);
    EXPECT_EQ(count(*graphs.micro, "dropout"), 6u);  // with their gradients
    EXPECT_EQ(count(*graphs.evaluate, "dropout"), 0u);
    for (const auto* g : {&*graphs.micro, &*graphs.evaluate})
      for (const graph::Op& op : g->ops())
        if (op.kind() == "attention") {
          EXPECT_EQ(op.attributes.number("dropout"), g == &*graphs.micro ? 0.25 : 0.0);
        }
    std::set<std::string> keys;
    for (const graph::Op& op : graphs.micro->ops())
      if (op.phase == graph::Phase::forward && op.attributes.has("key")) keys.insert(op.attributes.text("key"));
    EXPECT_EQ(keys,
              (std::set<std::string>{"embedding", "layer0.attention", "layer0.attention.output", "layer0.ffn.down"}));
  }
}

// Every weight has one accumulator and one update, which writes every state that it reads.
TEST(Models, EveryWeightIsUpdatedOnce) {
  for (const char* family : {"gpt", "llama"})
    for (const char* dtype : {"fp32", "bf16", "fp16"})
      for (const char* optimizer : {"adamw", "sgd"}) {
        config::Settings s = small(family);
        s.train.dtype = dtype;
        s.train.optimizer = optimizer;
        const Graphs graphs = build_training(s);
        const std::vector<std::string> accumulated = writes(*graphs.micro), assigned = writes(*graphs.update);
        const bool narrow = std::string_view(dtype) != "fp32";
        size_t weights = 0;
        for (const graph::State& state : *graphs.states) {
          const auto times = [&](const std::vector<std::string>& list, const std::string& what) {
            return std::count(list.begin(), list.end(), what);
          };
          if (state.kind == graph::StateKind::weight) {
            ++weights;
            EXPECT_GE(times(accumulated, "accumulate " + state.name + ".gradient"), 1) << state.name;
            EXPECT_EQ(times(assigned, "assign " + state.name), 1) << state.name;
            EXPECT_EQ(graphs.states->find(state.name + ".master") != graph::kNone, narrow) << state.name;
            EXPECT_EQ(graphs.states->find(state.name + ".v") != graph::kNone, std::string_view(optimizer) == "adamw")
                << state.name;
          }
          if (state.kind == graph::StateKind::optimizer) {
            EXPECT_EQ(times(assigned, "assign " + state.name), 1) << state.name;
            EXPECT_EQ(state.type.dtype, tensor::DType::f32) << state.name;
          }
          if (state.kind == graph::StateKind::gradient) {
            EXPECT_EQ(state.type.dtype, tensor::DType::f32) << state.name;
            EXPECT_FALSE(state.saved);
          }
        }
        EXPECT_EQ(count(*graphs.update, optimizer), weights);
        EXPECT_EQ(count(*graphs.update, "loss_scale"), std::string_view(dtype) == "fp16" ? 1u : 0u);
      }
}

TEST(Models, DocumentsReachAttentionByTheirStarts) {
  for (const char* family : {"gpt", "llama"}) {
    config::Settings s = small(family);
    s.data.reset_at_document = true;
    const Graphs graphs = build_training(s);
    for (const auto* g : {&*graphs.micro, &*graphs.evaluate})
      for (const graph::Op& op : g->ops())
        if (op.kind() == "attention") {
          ASSERT_EQ(op.ins.size(), 4u);
          EXPECT_EQ(g->value(op.ins[3]).name, "starts");
        }
  }
}

// Prefill and decode: the weights of training, separate caches, and the logits of one position.
TEST(Models, Generation) {
  for (const char* family : {"gpt", "llama"}) {
    const config::Settings s = small(family);
    const Graphs training = build_training(s), generation = build_generation(s, 1, 4, 6);
    for (const graph::State& state : *generation.states) {
      if (state.kind == graph::StateKind::cache) {
        EXPECT_EQ(to_string(state.type.shape), "[batch:1 key_seq:6 kv_heads:2 head_dim:2]");
        EXPECT_FALSE(state.saved);
        continue;
      }
      ASSERT_EQ(state.kind, graph::StateKind::weight) << state.name;
      const graph::StateId same = training.states->find(state.name);
      ASSERT_NE(same, graph::kNone) << state.name;
      EXPECT_EQ((*training.states)[same].type, state.type) << state.name;
    }
    for (const auto* g : {&*generation.prefill, &*generation.decode}) {
      EXPECT_EQ(writes(*g),
                (std::vector<std::string>{"assign layer0.attention.keys", "assign layer0.attention.values"}));
      const graph::Op& out = g->ops().back();
      EXPECT_EQ(out.kind(), "output");
      EXPECT_EQ(to_string(g->shape(out.ins[0])), "[batch:1 vocab:11]");
      EXPECT_EQ(g->type(out.ins[0]).dtype, tensor::DType::f32);
      EXPECT_EQ(kinds(*g).count("head"), 0u);
    }
  }
}

TEST(Models, AFamilyThatIsNone) {
  EXPECT_GE(families().size(), 12u);
  try {
    family("resnet");
    FAIL();
  } catch (const std::exception& e) {
    EXPECT_TRUE(std::string(e.what()).starts_with("[model] no family \"resnet\"; there are gpt, llama, ")) << e.what();
  }
}

// Numbers per channel, or one for all; the default depends on the dtype of the data.
TEST(Models, ImagesAreNormalizedByChannel) {
  const auto normalization = [](const config::Model& m) {
    config::Settings s;
    s.model = m;
    s.train.global_batch = s.train.micro_batch = 2;
    const Graphs graphs = build_evaluation(s, 2, 1);
    std::string text;
    for (const graph::Op& op : graphs.evaluate->ops())
      if (op.kind() == "pixels") text += op.attributes.text("mean") + "; " + op.attributes.text("deviation");
    return text;
  };
  for (const char* name : {"lenet", "vit"}) {
    config::Model m = defaults_of(name);
    m.layers = std::max<int64_t>(family(name).config.layers, 1);
    m.embed = m.ffn = 8;
    m.heads = m.kv_heads = 2;
    m.outputs = 3;
    m.image_channels = 3;
    m.image_height = m.image_width = 32;
    EXPECT_EQ(normalization(m), "0.5; 0.5");
    m.image_mean = {0.485, 0.456, 0.406};
    m.image_deviation = {0.25};
    EXPECT_EQ(normalization(m), "0.485 0.456 0.406; 0.25");
    m.image_dtype = "fp32";
    m.image_mean = {};
    m.image_deviation = {1, 2, 1e-5};
    EXPECT_EQ(normalization(m), "0; 1 2 1e-05");
  }
}

// Differentiation reaches all weights.
TEST(Step, EveryWeightOfAnImageFamilyHasAGradient) {
  for (const char* name : {"lenet", "resnet18", "convnext_tiny", "vit", "unet", "cosmoflow"}) {
    config::Settings s;
    s.model = defaults_of(name);
    const int64_t fixed = family(name).config.layers;
    s.model.layers = fixed > 0 ? fixed : 2;
    s.model.embed = s.model.ffn = 8;
    s.model.heads = s.model.kv_heads = 2;
    s.model.outputs = 3;
    s.model.image_channels = 1;
    s.model.image_height = s.model.image_width = 32;
    s.train.global_batch = s.train.micro_batch = 2;
    s.train.optimizer = "sgd";
    const Graphs graphs = build_training(s);
    for (size_t i = 0; i < graphs.states->size(); ++i) {
      const auto id = static_cast<graph::StateId>(i);
      const graph::State& state = (*graphs.states)[id];
      if (state.kind != graph::StateKind::weight) continue;
      EXPECT_NE(graphs.states->gradient_of(id), graph::kNone) << name << ": " << state.name;
    }
  }
}

}  // namespace kintsugi::models::step_test
