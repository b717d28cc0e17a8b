// One trial of every operation in every arrangement of dims that small models have, in training, evaluation and
// generation; and of operations that no model uses now.
#pragma once

#include "kintsugi/lower/fuse/join_head.h"
#include "kintsugi/models/step.h"
#include "kintsugi/ops/rows.h"
#include "kintsugi/tensor/window.h"
#include "tests/row_trial.h"
#include "tests/small_model.h"

namespace kintsugi::tests {

class RowTrials {
 public:
  RowTrials() {
    for (const auto& [family, activation] : std::vector<std::pair<std::string, std::string>>{
             {"gpt", "gelu_tanh"}, {"gpt", "gelu"}, {"gpt", "relu"}, {"gpt", "silu"}, {"llama", "silu"}}) {
      config::Settings s = small_model(family, "fp64");
      s.model.layers = 1;
      s.model.activation = activation;
      s.train.optimizer = activation == "relu" ? "sgd" : activation == "gelu" ? "lion" : "adamw";
      s.data.reset_at_document = activation == "gelu";
      const models::Graphs training = models::build_training(s), generation = models::build_generation(s, 2, 5, 8);
      for (const auto* g :
           {&training.micro, &training.update, &training.evaluate, &generation.prefill, &generation.decode})
        add(**g);
      add(lower::join_head(*training.micro, plan::plan_from(s.parallel)));
      s.parallel.ranks = s.parallel.tensor = 2;  // the vocabulary is split
      add(lower::join_head(*training.micro, plan::plan_from(s.parallel)));
    }
    for (const char* name : {"bert", "bert:classes", "bert:numbers", "mlp"}) {
      config::Settings s = small_model(name, "fp64");
      s.model.layers = 1;
      add(*models::build_training(s).micro);
    }
    for (const char* scores : {"softmax", "sigmoid"}) {
      config::Settings s = small_model("mixtral", "fp64");
      s.model.layers = 1;
      s.model.experts = 4;
      s.model.router_scores = scores;
      s.model.router_bias = s.model.router_scores == "sigmoid";
      s.model.router_normalize = s.model.router_scores == "softmax";
      s.train.balance = s.model.router_bias ? "bias" : "loss";
      const models::Graphs training = models::build_training(s), generation = models::build_generation(s, 2, 5, 8);
      for (const auto* g : {&training.micro, &training.update, &generation.prefill, &generation.decode}) add(**g);
    }
    for (const char* optimizer : {"adadelta", "lamb", "lars", "muon", "adafactor"}) {
      config::Settings s = small_model("llama", "fp64");
      s.model.layers = 1;
      s.train.optimizer = optimizer;
      s.train.ema_decay = 0.9;
      add(*models::build_training(s).update);
    }
    for (const char* family : {"gpt_oss", "deepseek_v3"}) {
      config::Settings s = small_model(family, "fp64");
      config::Model& m = s.model;
      m.layers = 1, m.dense_layers = 0;
      m.experts = 4, m.experts_per_token = 2;
      if (m.kv_rank > 0) {
        m.kv_heads = m.heads;
        m.kv_rank = 7, m.query_rank = 9, m.rotary_head_dim = 4, m.head_dim = 6, m.value_head_dim = 5;
        m.expert_groups = m.groups_per_token = 2;
      }
      s.train.balance = m.router_bias ? "both" : "loss";
      s.train.z_loss = 0.1;
      const models::Graphs training = models::build_training(s), generation = models::build_generation(s, 2, 5, 8);
      for (const auto* g : {&training.micro, &training.update, &generation.prefill, &generation.decode}) add(**g);
    }
    add_others();
  }

  const std::vector<RowTrial>& list() const { return list_; }
  static constexpr int64_t kVocab = 65;  // of small_model

 private:
  // Attributes that distinguish trials with the same shapes.
  inline static const std::set<std::string> kTold = {"form",   "activation", "inverse", "dims",
                                                     "causal", "window",     "scores",  "mode"};

  void add(const graph::Graph& g) {
    for (const graph::Op& op : g.ops()) {
      const std::string_view kind = op.kind();
      // Operations without a kernel: memory, and aliases of it.
      if (kind == "state" || kind == "input" || kind == "output" || kind == "rename") continue;
      RowTrial t = {.row = *op.row,
                    .kernel = std::string(kind == "assign" ? "accumulate" : kind),
                    .attributes = op.attributes,
                    .ins = {},
                    .outs = {},
                    .names = {},
                    .absent = op.absent};
      std::string key(kind);
      for (graph::ValueId v : op.ins) {
        t.ins.push_back(g.type(v));
        t.names.push_back(g.value(v).name);
      }
      for (graph::ValueId v : op.outs) t.outs.push_back(g.type(v));
      if (t.outs.empty()) t.outs.push_back(t.ins[0]);
      for (const auto* list : {&t.ins, &t.outs})
        for (const Type& type : *list) key += to_string(type.shape);
      for (const auto& [name, value] : t.attributes.list())
        if (kTold.contains(name)) key += to_string(tensor::Attributes{{name, value}});
      if (seen_.insert(key).second) list_.push_back(std::move(t));
    }
  }

  void add_others() {
    graph::StateTable states;
    graph::Graph g("others", ops::operations(), states);
    const Type x_type = {{{"batch", 2}, {"seq", 7}, {"embed", 6}}, tensor::DType::f64},
               row_type = {{{"embed", 6}}, tensor::DType::f64};
    const graph::ValueId x = g.input("x", x_type), y = g.input("y", x_type), row = g.input("row", row_type),
                         one = g.input("one", ops::scalar());
    g.add({x, y, row});
    g.scale(x, -0.7);
    g.sum_to(x, row_type);
    g.sum_to(x, ops::scalar());
    g.op("cast", {x}, {{"dtype", "fp64"}});
    g.make("broadcast", {row}, {x_type});
    g.fill(0.3, x_type);
    for (const char* activation : {"gelu", "gelu_tanh", "relu", "relu2"}) {
      g.op("gated", {x, y}, {{"activation", activation}});
      g.make("gated_grad", {x, y, x}, {x_type, x_type}, {{"activation", activation}});
    }
    for (const char* kind : {"relu2", "tanh"}) {
      g.op(kind, {x});
      g.op(std::string(kind) + "_grad", {x, y});
    }
    // A head with a bias: statistics, gradient, and both fused.
    const Type table = {{{"vocab", kVocab}, {"embed", 6}}, tensor::DType::f64},
               bias = {{{"vocab", kVocab}}, tensor::DType::f64},
               labels = {{{"batch", 2}, {"seq", 7}}, tensor::DType::i32},
               statistic = {labels.shape, tensor::DType::f64};
    const std::vector<graph::ValueId> head = {x, g.input("table", table), g.input("labels", labels),
                                              g.input("bias", bias)};
    const auto with = [&](std::vector<graph::ValueId> ins, size_t statistics) {
      for (size_t i = 0; i < statistics; ++i) ins.push_back(g.input("statistic", statistic));
      return ins;
    };
    g.apply("head", head);
    g.make("head", head, {statistic, statistic, graph::kAbsent, statistic});  // with the largest logit
    g.apply("sample_scores",
            {g.input("lse", statistic), g.input("target", statistic), head[2], g.input("top", statistic)});
    const Type per_sample = {{{"batch", 2}}, tensor::DType::f64};
    const graph::ValueId lse_of_label = g.input("lse", statistic), target_of_label = g.input("target", statistic),
                         weights_of_label = g.input("weights", statistic),
                         sampled_of_label = g.input("sampled", statistic);
    g.apply("weighted_scores", {lse_of_label, target_of_label, head[2], weights_of_label});
    g.make("weighted_scores_grad", {head[2], weights_of_label, g.input("dscore", per_sample)}, {statistic, statistic});
    g.apply("policy_loss", {lse_of_label, target_of_label, head[2], weights_of_label, sampled_of_label});
    g.make("policy_loss_grad", {lse_of_label, target_of_label, head[2], weights_of_label, sampled_of_label, one},
           {statistic, statistic});
    g.make("head_grad", with(head, 3), {x_type, table, bias});
    g.make("head_with_grad", with(head, 2), {statistic, statistic, x_type, table, bias});
    g.apply("loss_scale", {one, one, one}, {{"growth_interval", int64_t{2000}}});
    const Type q = {{{"batch", 2}, {"seq", 5}, {"kv_heads", 3}, {"group", 2}, {"head_dim", 4}}, tensor::DType::f64};
    const Type k = {{{"batch", 2}, {"key_seq", 6}, {"kv_heads", 3}, {"head_dim", 4}}, tensor::DType::f64};
    // A norm per head, and over all heads.
    for (const char* whole : {"head_dim", "kv_heads group head_dim"}) {
      const std::vector<std::string> names = tensor::words(whole);
      std::vector<tensor::Dim> dims;
      for (const tensor::Dim& d : q.shape)
        if (std::count(names.begin(), names.end(), d.name)) dims.push_back(d);
      const Type gamma = {Shape(dims), tensor::DType::f64};
      const tensor::Attributes attributes = {{"epsilon", 1e-5}, {"whole", whole}, {"gamma_offset", 1.0}};
      g.op("rms_norm", {g.input("q", q), g.input("gamma", gamma)}, attributes);
      g.make("rms_norm_grad", {g.input("q", q), g.input("gamma", gamma), g.input("q", q)}, {q, gamma}, attributes);
    }
    for (int64_t interleaved : {0, 1})
      g.op("rotary", {g.input("q", q)}, {{"theta", 100.0}, {"inverse", interleaved}, {"interleaved", interleaved}});
    g.op("rotary", {g.input("q", q)},
         {{"theta", 100.0},
          {"inverse", int64_t{0}},
          {"interleaved", int64_t{0}},
          {"dims", int64_t{2}},
          {"scaling", "linear"},
          {"factor", 2.0},
          {"magnitude", 1.5}});
    // Attention where every query sees every key.
    g.apply("attention", {g.input("q", q), g.input("k", k), g.input("v", k)},
            {{"causal", int64_t{0}}, {"scale", 0.5}, {"dropout", 0.3}, {"key", "a"}});
    const Type lse = {{{"batch", 2}, {"seq", 5}, {"kv_heads", 3}, {"group", 2}}, tensor::DType::f64},
               sinks = {{{"kv_heads", 3}, {"group", 2}}, tensor::DType::f64},
               starts = {{{"batch", 2}, {"seq", 5}}, tensor::DType::i32},
               key_starts = {{{"batch", 2}, {"key_seq", 6}}, tensor::DType::i32};
    for (int64_t causal : {0, 1}) {
      const tensor::Attributes attributes = {{"causal", causal}, {"scale", 0.5},         {"dropout", 0.3},
                                             {"key", "a"},       {"window", int64_t{2}}, {"softcap", 0.7}};
      std::vector<graph::ValueId> ins = {g.input("q", q),
                                         g.input("k", k),
                                         g.input("v", k),
                                         g.input("starts", starts),
                                         g.input("key_starts", key_starts),
                                         g.input("sinks", sinks)};
      g.apply("attention", ins, attributes);
      ins.insert(ins.end(), {g.input("o", q), g.input("lse", lse), g.input("do", q)});
      g.make("attention_grad", ins, {q, k, k, sinks}, attributes);
    }
    // Rows of several texts.
    const Type cache = {{{"text", 3}, {"key_seq", 6}, {"kv_heads", 3}, {"head_dim", 4}}, tensor::DType::f64},
               keys = {{{"batch", 2}, {"seq", 5}, {"kv_heads", 3}, {"head_dim", 4}}, tensor::DType::f64},
               of_row = {{{"batch", 2}}, tensor::DType::i32};
    const graph::ValueId text = g.input("text", of_row), at = g.input("at", of_row);
    g.op("cache_write_at", {g.input("cache", cache), g.input("keys", keys), text, at});
    for (const int64_t window : {0, 2})
      g.op("attention_at", {g.input("q", q), g.input("k", cache), g.input("v", cache), text, at},
           {{"causal", int64_t{1}}, {"scale", 0.5}, {"window", window}, {"softcap", 0.7}});
    g.op("attention_at", {g.input("q", q), g.input("k", cache), g.input("v", cache), text, at, g.input("sinks", sinks)},
         {{"causal", int64_t{1}}, {"scale", 0.5}});
    for (const int64_t interleaved : {0, 1})
      g.op("rotary_at", {g.input("q", q), at},
           {{"theta", 100.0}, {"inverse", interleaved}, {"interleaved", interleaved}});
    g.op("position_at", {g.input("table", {{{"position", 9}, {"embed", 6}}, tensor::DType::f64}), at},
         {{"length", int64_t{5}}});
    g.op("take_rows", {x, g.input("rows", {{{"row", 3}}, tensor::DType::i32})});
    // Operations inserted by the partitioner. The call determines how `stack` cuts, which is tested with its kernels.
    g.apply("attention_join", {g.input("q", q), g.input("lse", lse), g.input("q", q), g.input("lse", lse)});
    g.op("mask", {x});
    g.op("logsumexp", {g.input("parts", {{{"part", 4}, {"batch", 2}, {"seq", 7}}, tensor::DType::f64})});
    const Type bucket = {{{"shard", 2}, {"flat", 3072}}, tensor::DType::f64};
    const graph::ValueId blocks = g.op("sum_squares", {g.input("bucket", bucket)});
    g.op("sum_blocks", {one, blocks, blocks});
    g.apply("update_scale", {one, one, blocks, blocks}, {{"clip", 1.0}});
    add(g);
    add_images();
  }

  // Convolutions, pools and batch norms.
  void add_images() {
    graph::StateTable states;
    graph::Graph g("images", ops::operations(), states);
    const auto input = [&](const Shape& shape) { return g.input("x", {shape, tensor::DType::f64}); };
    const Shape x = {{"batch", 4}, {"height", 5}, {"width", 4}, {"channel", 6}}, channel = {{"channel", 6}};
    const auto differentiated = [&](graph::ValueId y) {
      const graph::Op op = g.op_at(static_cast<size_t>(g.value(y).op));
      op.row->grad(g, op, std::vector<graph::ValueId>{input(g.shape(y))});
    };
    const Shape wide = {{"batch", 2}, {"height", 13}, {"width", 12}, {"channel", 3}};
    for (const auto& [height, width] : std::vector<std::pair<tensor::Window, tensor::Window>>{
             {{.kernel = 3, .low = 1, .high = 1}, {.kernel = 2, .stride = 2}},
             {{.kernel = 1, .stride = 2}, {.kernel = 5}},
             {{.kernel = 4, .stride = 3, .low = 2, .high = 1}, {.kernel = 2, .dilation = 3}},
             {{.kernel = 7, .stride = 2, .low = 3, .high = 3}, {.kernel = 3, .dilation = 2, .low = 2, .high = 2}}}) {
      tensor::Attributes attributes;
      tensor::set_windows(attributes, {{"height", height}, {"width", width}});
      const Shape w = {{"kernel_height", height.kernel}, {"kernel_width", width.kernel}, {"channel", 3}, {"filter", 4}};
      differentiated(g.op("convolution", {input(wide), input(w)}, attributes));
      for (const char* pool : {"max_pool", "average_pool"}) differentiated(g.op(pool, {input(wide)}, attributes));
    }
    const tensor::Attributes norm = {{"epsilon", 1e-5}, {"count", int64_t{80}}, {"momentum", 0.1}};
    g.op("pixels", {input({{"batch", 4}, {"channel", 3}, {"height", 5}, {"width", 4}})},
         {{"dtype", "fp64"}, {"mean", "0.1 0.2 0.3"}, {"deviation", "0.5"}});
    g.apply("class_hits",
            {input({{"batch", 4}, {"class", 7}}), g.input("classes", {Shape{{"batch", 4}}, tensor::DType::i32})});
    const Type field = {{{"batch", 4}, {"height", 5}, {"width", 4}, {"target", 3}}, tensor::DType::f64},
               per_target = {{{"target", 3}}, tensor::DType::f64};
    const graph::ValueId targets = g.input("targets", {field.shape, tensor::DType::f32});
    const std::vector<graph::ValueId> sums = g.apply("field_errors", {input(field.shape), targets});
    differentiated(sums[0]);
    differentiated(g.apply("relative_error", sums)[0]);
    g.make("field_errors", {input(field.shape), targets}, {per_target, per_target});
    const graph::ValueId image = input(x), statistics = g.op("batch_statistics", {image});
    differentiated(g.op("batch_norm", {image, input(channel), input(channel), statistics}, norm));
    g.op("batch_norm", {image, input(channel), input(channel), graph::kNone, input(channel), input(channel)}, norm);
    g.apply("running_statistics", {input(channel), input(channel), statistics}, norm);
    const graph::ValueId of_groups = g.op("batch_statistics", {image}, {{"samples", int64_t{2}}});
    tensor::Attributes grouped = norm;
    grouped.set("count", int64_t{40});
    differentiated(g.op("batch_norm", {image, input(channel), input(channel), of_groups}, grouped));
    const graph::ValueId moments = g.op("batch_moments", {of_groups}, {{"count", int64_t{40}}});
    g.apply("running_moments", {input(channel), input(channel), moments}, norm);
    add(g);
    add_further_images();
  }

  // Resampling, transposed convolutions, group norms, and operations that join or scale image values.
  void add_further_images() {
    graph::StateTable states;
    graph::Graph g("further images", ops::operations(), states);
    const auto input = [&](const Shape& shape) { return g.input("x", {shape, tensor::DType::f64}); };
    const auto differentiated = [&](graph::ValueId y) {
      const graph::Op op = g.op_at(static_cast<size_t>(g.value(y).op));
      op.row->grad(g, op, std::vector<graph::ValueId>{input(g.shape(y))});
    };
    const Shape x = {{"batch", 4}, {"height", 5}, {"width", 4}, {"channel", 6}}, channel = {{"channel", 6}};
    differentiated(g.op("leaky_relu", {input(x)}, {{"slope", 0.3}}));
    for (const auto& [height, width] : std::vector<std::pair<tensor::Window, tensor::Window>>{
             {{.kernel = 2, .stride = 2}, {.kernel = 3, .stride = 1, .low = 1, .high = 1}},
             {{.kernel = 4, .stride = 2, .low = 1, .high = 1}, {.kernel = 2, .stride = 3}},
             {{.kernel = 3, .stride = 2, .low = 1}, {.kernel = 2, .dilation = 2}}}) {
      tensor::Attributes attributes;
      tensor::set_windows(attributes, {{"height", height}, {"width", width}});
      const Shape w = {{"kernel_height", height.kernel}, {"kernel_width", width.kernel}, {"filter", 3}, {"channel", 6}};
      differentiated(g.op("transposed_convolution", {input(x), input(w)}, attributes));
    }
    for (const char* mode : {"nearest", "linear"})
      for (const auto& [high, wide] : {std::pair{2, 3}, std::pair{1, 4}}) {
        tensor::Attributes attributes;
        ops::set_upsample(attributes, mode, x, {{"height", high}, {"width", wide}});
        differentiated(g.op("upsample", {input(x)}, attributes));
      }
    differentiated(g.make("adaptive_pool", {input({x[0], {"from_height", 5}, {"from_width", 4}, x[3]})},
                          {{Shape{x[0], {"height", 3}, {"width", 6}, x[3]}, tensor::DType::f64}},
                          {{"whole", "height width from_height from_width"}})[0]);
    differentiated(g.op("concatenate", {input({x[0], x[1], x[2], {"of_a", 6}}), input({x[0], x[1], x[2], {"of_b", 3}})},
                        {{"whole", "of_a of_b channel"}}));
    differentiated(g.op("concatenate", {input({x[0], {"of_a", 1}, x[3]}), input({x[0], {"of_b", 4}, x[3]})},
                        {{"whole", "of_a of_b seq"}}));
    differentiated(g.op("drop_path", {input(x)}, {{"p", 0.4}, {"key", "a"}}));
    differentiated(g.op("channel_scale", {input(x), input(channel)}));
    for (const int64_t groups : {1, 3}) {
      const tensor::Attributes norm = {
          {"epsilon", 1e-5}, {"groups", groups}, {"channels", int64_t{6}}, {"count", int64_t{20 * 6} / groups}};
      const graph::ValueId image = input(x), sums = g.op("group_statistics", {image}, norm);
      const graph::ValueId y = g.op("group_norm", {image, input(channel), input(channel), sums}, norm);
      differentiated(y);
    }
    add(g);
  }

  std::vector<RowTrial> list_;
  std::set<std::string> seen_;
};

}  // namespace kintsugi::tests
