// The feed-forward layer as a mixture of experts: a router assigns each token to some experts, whose outputs are summed
// with its weights. Each sample has slots per expert; docs/experts.md explains why. h: [batch seq embed], logits:
// [batch seq candidate], weights, slots: [batch seq choice], counts: [batch expert], x: [batch expert slot embed]
#include <cmath>

#include "kintsugi/models/builder.h"
#include "kintsugi/models/lora.h"
#include "kintsugi/models/step.h"

namespace kintsugi::models {

using graph::StateKind;

// Found or created; not a weight, since it has no gradient.
ValueId Builder::router_bias(const std::string& name, const Shape& shape) {
  graph::StateId id = states_.find(name);
  if (id == graph::kNone)
    id = states_.add({.name = name,
                      .type = {shape, graph::wide(dtype_)},
                      .kind = StateKind::statistic,
                      .layer = graph_.layer,
                      .parts = true});
  return graph_.read(id);
}

ValueId Builder::experts(ValueId h, const std::string& name) {
  const tensor::Dim expert = {"expert", model_.experts}, candidate = {"candidate", model_.experts};
  const bool trains = pass_.purpose == Purpose::train;
  const ValueId router = weight(name + ".router.weight", {embed(), candidate}, {Init::Kind::normal, deviation()}, true);
  const DType wide = graph::wide(dtype_);
  ValueId logits = graph_.contract(h, router, "batch seq candidate", wide);
  if (model_.router_linear_bias) {
    const ValueId offset = weight(name + ".router.linear.bias", {candidate}, {}, false);
    logits = graph_.add(
        {logits, dtype_ == wide ? offset : graph_.op("cast", {offset}, {{"dtype", std::string(name_of(wide))}})});
  }
  const ValueId bias = model_.router_bias ? router_bias(name + std::string(kRouterBias), {candidate}) : graph::kNone;
  tensor::Attributes routing = {{"top_k", model_.experts_per_token},
                                {"scores", model_.router_scores},
                                {"normalize", int64_t{model_.router_normalize}},
                                {"scale", model_.router_scale}};
  if (model_.expert_groups > 1) {
    routing.set("groups", model_.expert_groups);
    routing.set("groups_per_token", model_.groups_per_token);
  }
  const std::vector<ValueId> routed = graph_.apply("route", {logits, bias}, routing, name + ".route");

  const int64_t capacity = config::expert_capacity(model_, pass_.sequence, trains ? pass_.expert_bound : 0.0);
  const tensor::Attributes places = {{"experts", model_.experts},
                                     {"capacity", capacity},
                                     {"drop", int64_t{trains && pass_.drops}},
                                     {"layer", int64_t{graph_.layer}}};
  const std::vector<ValueId> assigned = graph_.apply("assign_slots", {routed[1]}, places, name + ".slots");
  const ValueId slots = assigned[0], counts = assigned[1];
  if (trains) {
    const graph::StateId load = states_.add({.name = name + std::string(kExpertLoad),
                                             .type = {{candidate}, DType::f64},
                                             .kind = StateKind::statistic,
                                             .layer = graph_.layer,
                                             .saved = false,
                                             .parts = true});
    graph_.accumulate(graph_.op("expert_load", {counts}), load);
    const bool has_loss = pass_.balance_weight > 0.0 || pass_.z_loss > 0.0;
    // Whole samples, also where the tokens of logits are split.
    const ValueId labels = pass_.counts_labels && has_loss
                               ? input("labels", {batch(), {"label_seq", pass_.sequence}}, DType::i32)
                               : graph::kNone;
    const auto add_loss = [&](std::string_view which, ValueId sum, double weight) {
      // An objective of samples counts each once, so the loss is the mean over its tokens.
      if (!pass_.counts_labels) sum = graph_.scale(sum, 1.0 / static_cast<double>(pass_.sequence));
      losses_.push_back({std::string(which), sum, weight});
    };
    if (pass_.balance_weight > 0.0) {
      ValueId previous = graph::kNone;
      if (pass_.balances_steps)
        previous = graph_.read(states_.add({.name = name + std::string(kPreviousLoad),
                                            .type = {{candidate}, DType::f64},
                                            .kind = StateKind::statistic,
                                            .part = graph::OptimizerPart::other,
                                            .layer = graph_.layer}));
      add_loss("balance", graph_.apply("balance_loss", {logits, counts, previous, labels}, routing)[0],
               pass_.balance_weight);
    }
    if (pass_.z_loss > 0.0) add_loss("router_z", graph_.op("router_z_loss", {logits, labels}), pass_.z_loss);
  }

  const double filled =
      static_cast<double>(pass_.sequence * model_.experts_per_token) / static_cast<double>(capacity * model_.experts);
  const Slots filled_slots = {.counts = counts, .filled = std::min(1.0, filled)};
  const auto product = [&](ValueId x, std::string_view which, const Shape& shape, double deviation) {
    return expert_linear(x, name + std::string(which), shape, filled_slots, deviation);
  };
  ValueId x = graph_.op("dispatch", {h, slots}, places);
  const Shape inner = {expert, embed(), ffn()};
  if (model_.gated) {
    const ValueId gate = product(x, ".gate", inner, deviation());
    x = gate_and_up(gate, product(x, ".up", inner, deviation()), filled_slots);
  } else {
    x = activation(product(x, ".up", inner, deviation()));
  }
  x = product(x, ".down", {expert, ffn(), embed()}, residual_deviation());
  const ValueId y = graph_.op("combine", {x, slots, routed[0]}, places);
  if (model_.shared_experts == 0) return y;
  return graph_.add({y, dense(h, name + ".shared", model_.shared_experts * model_.ffn)});
}

ValueId Builder::expert_linear(ValueId x, const std::string& name, const Shape& shape, const Slots& slots,
                               double deviation) {
  const tensor::Dim expert = shape[0], in = shape[1], out = shape[2];
  const auto product = [&](ValueId of, const Stored& by, const tensor::Dim& columns) {
    return graph_.op("grouped", {of, by.weight, slots.counts, by.scale},
                     {{"dims", "batch expert slot " + columns.name},
                      {"dtype", std::string(tensor::name_of(dtype_))},
                      {"filled", slots.filled}});
  };
  ValueId y = product(x, matrix(name, shape, {expert, out}, {Init::Kind::normal, deviation}), out);
  if (model_.bias_ffn)
    y = graph_.op("expert_bias", {y, weight(name + ".bias", {expert, out}, {}, false), slots.counts});
  if (!pass_.lora || !has_expert_adapters(*pass_.lora, name)) return y;
  const config::Lora& lora = *pass_.lora;
  const tensor::Dim rank = {"lora", lora.rank};
  const Init start = {Init::Kind::normal, 1.0 / std::sqrt(3.0 * static_cast<double>(in.size))};  // as of linear layers
  const ValueId down = weight(name + std::string(kLoraA), {expert, in, rank}, start, true);
  const ValueId up = weight(name + std::string(kLoraB), {expert, rank, out}, {}, true);
  if (lora.dropout > 0.0 && pass_.purpose == Purpose::train)
    x = graph_.op("dropout", {x}, {{"p", lora.dropout}, {"key", name + ".lora"}});
  const ValueId narrow = graph_.scale(product(x, {.weight = down}, rank), lora_scale(lora));
  return graph_.add({y, product(narrow, {.weight = up}, out)});
}

ValueId Builder::gate_and_up(ValueId gate, ValueId up, const Slots& slots) {
  const std::vector<ValueId> ins = {gate, up, slots.counts};
  if (model_.gate_clamp > 0.0)
    return graph_.op("clamped_gated", ins,
                     {{"clamp", model_.gate_clamp}, {"slope", model_.gate_slope}, {"filled", slots.filled}});
  return graph_.op("gated", ins, {{"activation", model_.activation}, {"filled", slots.filled}});
}

}  // namespace kintsugi::models
