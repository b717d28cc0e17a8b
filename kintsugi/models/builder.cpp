#include "kintsugi/models/builder.h"

#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/models/lora.h"
#include "kintsugi/models/rope.h"
#include "kintsugi/models/step.h"

namespace kintsugi::models {

using graph::StateKind;
using tensor::Attributes;
using tensor::Type;

namespace {

// [expert rows columns]: a matrix for each expert. Other matrices are those of linear().
graph::Matrix experts_matrix(const Shape& shape) {
  if (shape.rank() == 3 && shape[0].name == "expert") return {.batch = 1, .rows = 1};
  return {};
}

// A weight of another dtype than the model's.
graph::State stored_weight(const std::string& name, const tensor::Type& type, int layer, Init init) {
  graph::State state;
  state.name = name;
  state.type = type;
  state.layer = layer;
  state.decay = true;
  state.init = init;
  state.matrix = experts_matrix(type.shape);
  return state;
}

}  // namespace

ValueId Builder::weight(const std::string& name, const Shape& shape, Init init, bool decay) {
  graph::StateId id = states_.find(name);
  if (id == graph::kNone)
    id = states_.add({.name = name,
                      .type = {shape, dtype_},
                      .kind = StateKind::weight,
                      .layer = graph_.layer,
                      .decay = decay,
                      .init = init,
                      .matrix = experts_matrix(shape)});
  return graph_.read(id);
}

ValueId Builder::input(std::string_view name) {
  return graph_.input(name, {Shape{{"batch", pass_.batch}, {"seq", pass_.sequence}}, DType::i32});
}

ValueId Builder::linear(ValueId x, const std::string& name, const Shape& shape, std::string_view out, double deviation,
                        bool bias) {
  const bool in_block = graph_.layer >= 0 && graph_.layer < model_.layers;
  const Init init = {Init::Kind::normal, deviation};
  int inputs = 0;
  for (const tensor::Dim& d : shape) inputs += graph_.shape(x).has(d.name) ? 1 : 0;
  const std::vector<tensor::Dim> columns(shape.begin() + inputs, shape.end());
  const Stored w = in_block ? matrix(name, shape, Shape(columns), init)
                            : Stored{.weight = weight(name + std::string(kWeight), shape, init, true)};
  if (in_block) states_.set_matrix(states_.find(name + std::string(kWeight)), {.batch = 0, .rows = inputs});
  ValueId y = w.scale == graph::kNone
                  ? graph_.contract(x, w.weight, out, dtype_)
                  : graph_.op("contract", {x, w.weight, graph::kNone, graph::kNone, graph::kNone, w.scale},
                              {{"dims", std::string(out)}, {"dtype", std::string(tensor::name_of(dtype_))}});
  if (bias) {
    std::vector<tensor::Dim> dims;
    for (const std::string& d : tensor::words(out))
      if (shape.has(d) && !graph_.shape(x).has(d)) dims.push_back({d, shape.size(d)});
    y = graph_.add({y, weight(name + ".bias", Shape(dims), {}, false)});
  }
  if (!pass_.lora || !in_block || !has_adapter(*pass_.lora, name)) return y;
  return graph_.add({y, adapted(x, name, shape, out)});
}

Builder::Stored Builder::matrix(const std::string& name, const Shape& shape, const Shape& columns, Init init) {
  const std::string of_weight = name + std::string(kWeight), of_scale = name + std::string(kScale);
  const std::optional<DType> dtype = pass_.lora ? frozen_dtype(*pass_.lora) : std::nullopt;
  const bool codes = dtype == DType::i8;
  const Init start = codes ? Init{Init::Kind::normal, kCodeDeviation} : init;
  if (dtype && states_.find(of_weight) == graph::kNone)
    states_.add(stored_weight(of_weight, {shape, *dtype}, graph_.layer, start));
  const ValueId w = weight(of_weight, shape, start, true);
  if (!codes) return {.weight = w};
  base::require(init.kind == Init::Kind::normal, "models", "the initial codes of {} are of normal numbers", name);
  if (states_.find(of_scale) == graph::kNone)
    states_.add(stored_weight(of_scale, {columns, graph::wide(dtype_)}, graph_.layer,
                              {Init::Kind::constant, init.value / kCodeDeviation}));
  return {.weight = w, .scale = graph_.read(states_.find(of_scale))};
}

ValueId Builder::adapted(ValueId x, const std::string& name, const Shape& shape, std::string_view out) {
  const config::Lora& lora = *pass_.lora;
  const tensor::Dim rank = {"lora", lora.rank};
  const tensor::Shape given = graph_.shape(x);
  std::vector<tensor::Dim> a, b = {rank}, inner;
  int64_t width = 1;  // of the input
  for (const tensor::Dim& d : shape) (given.has(d.name) ? a : b).push_back(d);
  for (const tensor::Dim& d : a) width *= d.size;
  a.push_back(rank);
  for (const tensor::Dim& d : given)
    if (!shape.has(d.name)) inner.push_back(d);
  inner.push_back(rank);
  // The variance of uniform initialization elsewhere: 1 / (3 width).
  const double deviation = 1.0 / std::sqrt(3.0 * static_cast<double>(width));
  const ValueId down = weight(name + std::string(kLoraA), Shape(a), {Init::Kind::normal, deviation}, true);
  const ValueId up = weight(name + std::string(kLoraB), Shape(b), {}, true);
  if (lora.dropout > 0.0 && pass_.purpose == Purpose::train)
    x = graph_.op("dropout", {x}, {{"p", lora.dropout}, {"key", name + ".lora"}});
  const ValueId h = graph_.contract(x, down, tensor::names(Shape(inner)), dtype_);
  return graph_.contract(graph_.scale(h, lora_scale(lora)), up, out, dtype_);
}

ValueId Builder::rms_norm(ValueId x, const std::string& name, const Shape& over) {
  const bool plus_one = norm_ == config::Norm::rms_plus_one;
  const Init start = plus_one ? Init{} : Init{Init::Kind::constant, 1.0};
  Attributes attributes = {{"epsilon", model_.norm_epsilon}, {"whole", tensor::names(over)}};
  if (plus_one) attributes.set("gamma_offset", 1.0);
  return graph_.op("rms_norm", {x, weight(name + ".gamma", over, start, false)}, attributes);
}

ValueId Builder::norm(ValueId x, const std::string& name) {
  const Shape over = {embed()};
  if (norm_ != config::Norm::layer) return rms_norm(x, name, over);
  const ValueId gamma = weight(name + ".gamma", over, {Init::Kind::constant, 1.0}, false);
  const ValueId beta = model_.bias_norm ? weight(name + ".beta", over, {}, false) : graph::kNone;
  return graph_.op("layer_norm", {x, gamma, beta}, {{"epsilon", model_.norm_epsilon}, {"whole", "embed"}});
}

ValueId Builder::batch_norm(ValueId x, const std::string& name) {
  constexpr double kEpsilon = 1e-5;
  const Shape shape = graph_.shape(x);  // copied, since adding weights changes the graph
  const Shape channels = {shape[shape.rank() - 1]};
  const ValueId gamma = weight(name + ".gamma", channels, {Init::Kind::constant, 1.0}, false),
                beta = weight(name + ".beta", channels, {}, false);
  const auto tracked = [&](std::string_view which, double start) {
    const std::string state = name + std::string(which);
    const graph::StateId found = states_.find(state);
    if (found != graph::kNone) return found;
    return states_.add({.name = state,
                        .type = {channels, graph::wide(dtype_)},
                        .kind = StateKind::statistic,
                        .layer = graph_.layer,
                        .init = {Init::Kind::constant, start}});
  };
  const graph::StateId mean = tracked(kRunningMean, 0.0), variance = tracked(kRunningVariance, 1.0);
  Attributes attributes = {
      {"epsilon", kEpsilon}, {"momentum", kNormMomentum}, {"count", shape.elements() / channels.elements()}};
  if (pass_.purpose != Purpose::train)
    return graph_.apply("batch_norm", {x, gamma, beta, graph::kNone, graph_.read(mean), graph_.read(variance)},
                        attributes)[0];
  if (pass_.norm_group > 0) return grouped_batch_norm(x, name, gamma, beta, attributes);
  if (attributes.integer("count") == 1)  // the norm of a single value is beta
    throw base::UserError("model",
                          "{}: with one sample per pass, its statistics are of one value per channel; raise "
                          "train.micro_batch, or use larger images",
                          name);
  const ValueId statistics = graph_.op("batch_statistics", {x}),
                y = graph_.apply("batch_norm", {x, gamma, beta, statistics}, attributes)[0];
  const std::vector<ValueId> now =
      graph_.apply("running_statistics", {graph_.read(mean), graph_.read(variance), statistics}, attributes);
  graph_.assign(now[0], mean);
  graph_.assign(now[1], variance);
  return y;
}

ValueId Builder::grouped_batch_norm(ValueId x, const std::string& name, ValueId gamma, ValueId beta,
                                    Attributes attributes) {
  const int64_t samples = pass_.norm_group;
  if (pass_.batch % samples != 0)
    throw base::UserError("model", "{} samples of a pass are not divisible by model.batch_norm_samples = {}",
                          pass_.batch, samples);
  const int64_t count = attributes.integer("count") / (pass_.batch / samples);
  if (count == 1)
    throw base::UserError("model",
                          "{}: with model.batch_norm = \"replica\" and one sample per group, its statistics are of one "
                          "value per channel; "
                          "raise train.micro_batch or model.batch_norm_samples, or use larger images",
                          name);
  attributes.set("count", count);
  const ValueId statistics = graph_.op("batch_statistics", {x}, {{"samples", samples}}),
                y = graph_.apply("batch_norm", {x, gamma, beta, statistics}, attributes)[0],
                moments = graph_.op("batch_moments", {statistics}, {{"count", count}});
  const tensor::Type type = graph_.type(moments);
  graph_.accumulate(moments, states_.add({.name = name + std::string(kGroupMoments),
                                          .type = type,
                                          .kind = StateKind::statistic,
                                          .layer = graph_.layer,
                                          .saved = false,
                                          .parts = true}));
  return y;
}

ValueId Builder::dropout(ValueId x, const std::string& key) {
  if (model_.dropout == 0.0 || pass_.purpose != Purpose::train) return x;
  return graph_.op("dropout", {x}, {{"p", model_.dropout}, {"key", key}});
}

ValueId Builder::drop_path(ValueId x, const std::string& key, double share) {
  if (share == 0.0 || pass_.purpose != Purpose::train) return x;
  return graph_.op("drop_path", {x}, {{"p", share}, {"key", key + ".path"}});
}

double Builder::drop_path_share() const {
  return model_.layers < 2 ? model_.drop_path
                           : model_.drop_path * graph_.layer / static_cast<double>(model_.layers - 1);
}

ValueId Builder::activation(ValueId x) {
  if (model_.activation == "gelu") return graph_.op("gelu", {x}, {{"form", "erf"}});
  if (model_.activation == "gelu_tanh") return graph_.op("gelu", {x}, {{"form", "tanh"}});
  return graph_.op(model_.activation, {x});
}

double Builder::residual_deviation() const {
  return deviation() / std::sqrt(2.0 * static_cast<double>(model_.layers));
}

ValueId Builder::cached(ValueId x, const std::string& name) {
  graph::StateId id = states_.find(name);
  if (id == graph::kNone) {
    const tensor::Dim texts = has_positions() ? tensor::Dim{"text", pass_.texts} : batch();
    const Shape shape = {texts, {"key_seq", pass_.cache}, kv_heads(), head_dim()};
    id = states_.add(
        {.name = name, .type = {shape, dtype_}, .kind = StateKind::cache, .layer = graph_.layer, .saved = false});
  }
  const ValueId whole = has_positions() ? graph_.op("cache_write_at", {graph_.read(id), x, row_text(), row_position()})
                                        : graph_.op("cache_write", {graph_.read(id), x});
  graph_.assign(whole, id);
  return whole;
}

namespace {

// Of the scores, with YaRN's factor.
double attention_scale(const config::Model& m) {
  const int64_t width = config::has_latent_attention(m) ? m.head_dim + m.rotary_head_dim : config::width_of_head(m);
  const double plain = m.attention_scale > 0.0 ? m.attention_scale : 1.0 / std::sqrt(static_cast<double>(width));
  if (m.rope_score_magnitude == 0.0 || config::rope_scaling(m) != config::RopeScaling::yarn) return plain;
  const double magnitude = yarn_magnitude(m.rope_factor, m.rope_score_magnitude);
  return plain * magnitude * magnitude;
}

}  // namespace

ValueId Builder::attention(ValueId q, ValueId k, ValueId v, const std::string& name) {
  k = generates() ? cached(k, name + ".keys") : graph_.rename(k, "seq", "key_seq");
  v = generates() ? cached(v, name + ".values") : graph_.rename(v, "seq", "key_seq");
  const ValueId starts = pass_.documents ? input("starts") : graph::kNone;
  const bool both_ways = pass_.documents && !model_.causal;
  const ValueId key_starts = both_ways ? graph_.rename(starts, "seq", "key_seq") : graph::kNone;
  const ValueId sinks = model_.attention_sinks
                            ? weight(name + ".sinks", {kv_heads(), group()}, {Init::Kind::normal, deviation()}, false)
                            : graph::kNone;
  Attributes attributes = {{"causal", int64_t{model_.causal}},
                           {"scale", attention_scale(model_)},
                           {"dropout", pass_.purpose == Purpose::train ? model_.dropout : 0.0},
                           {"key", name}};
  if (config::has_window(model_, graph_.layer)) attributes.set("window", model_.window);
  if (model_.attention_softcap > 0.0) attributes.set("softcap", model_.attention_softcap);
  if (has_positions()) {
    std::vector<ValueId> ins = {q, k, v, row_text(), row_position()};
    if (sinks != graph::kNone) ins.push_back(sinks);
    return graph_.apply("attention_at", ins, attributes)[0];
  }
  std::vector<ValueId> ins = {q, k, v, starts, key_starts};
  if (sinks != graph::kNone) ins.push_back(sinks);
  return graph_.apply("attention", ins, attributes, "attention")[0];
}

ValueId Builder::norm_of_heads(ValueId x, const std::string& name, const Shape& heads) {
  switch (config::query_key_norm(model_)) {
    case config::QueryKeyNorm::none:
      return x;
    case config::QueryKeyNorm::head:
      return rms_norm(x, name, {head_dim()});
    case config::QueryKeyNorm::all:
      return rms_norm(x, name, heads);
  }
  throw base::InternalError("models", "an unknown norm of queries and keys");
}

ValueId Builder::rotated(ValueId x) {
  if (!config::has_rotary(model_, graph_.layer)) return x;
  const bool unscaled = model_.rope_theta_window > 0.0 && config::has_window(model_, graph_.layer);
  const int64_t positions = generates() ? pass_.cache : pass_.sequence;
  const Attributes attributes = unscaled ? unscaled_rotary(model_) : rotary(model_, positions);
  return has_positions() ? graph_.op("rotary_at", {x, row_position()}, attributes)
                         : graph_.op("rotary", {x}, attributes);
}

ValueId Builder::self_attention(ValueId h, const std::string& name) {
  if (config::has_latent_attention(model_)) return latent_attention(h, name);
  const Shape query = {kv_heads(), group(), head_dim()}, key = {kv_heads(), head_dim()};
  const auto from_embed = [&](std::string_view which, const Shape& heads) {
    std::vector<tensor::Dim> dims = {embed()};
    dims.insert(dims.end(), heads.dims().begin(), heads.dims().end());
    return linear(h, name + std::string(which), Shape(dims), "batch seq " + tensor::names(heads), deviation(),
                  model_.bias_query_key_value);
  };
  const ValueId q = from_embed(".query", query);
  const ValueId k = from_embed(".key", key);
  const ValueId v = from_embed(".value", key);
  const ValueId placed_q =
      rotated(norm_of_heads(q, name + ".query_norm", query));  // fixes the order, independent of the compiler
  const ValueId placed_k = rotated(norm_of_heads(k, name + ".key_norm", key));
  const ValueId o = attention(placed_q, placed_k, v, name);
  const Shape back = {kv_heads(), group(), head_dim(), embed()};
  return linear(o, name + ".output", back, "batch seq embed", residual_deviation(), model_.bias_output);
}

ValueId Builder::feed_forward(ValueId h, const std::string& name) {
  if (config::has_experts(model_, graph_.layer)) return experts(h, name);
  return dense(h, name, config::dense_width(model_));
}

ValueId Builder::dense(ValueId h, const std::string& name, int64_t width) {
  const tensor::Dim ffn = {"ffn", width};
  const auto inner = [&](std::string_view which) {
    return linear(h, name + std::string(which), {embed(), ffn}, "batch seq ffn", deviation(), model_.bias_ffn);
  };
  if (model_.gated) {
    const ValueId gate = inner(".gate");
    h = graph_.op("gated", {gate, inner(".up")}, {{"activation", model_.activation}});
  } else {
    h = activation(inner(".up"));
  }
  return linear(h, name + ".down", {ffn, embed()}, "batch seq embed", residual_deviation(), model_.bias_ffn);
}

}  // namespace kintsugi::models
