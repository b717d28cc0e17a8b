#include "kintsugi/models/builder.h"

#include <cmath>

namespace kintsugi::models {

using graph::StateKind;
using tensor::Attributes;
using tensor::Type;

ValueId Builder::weight(const std::string& name, const Shape& shape, Init init, bool decay) {
  graph::StateId id = states_.find(name);
  if (id == graph::kNone)
    id = states_.add({.name = name,
                      .type = {shape, dtype_},
                      .kind = StateKind::weight,
                      .layer = graph_.layer,
                      .decay = decay,
                      .init = init});
  return graph_.read(id);
}

ValueId Builder::input(std::string_view name) {
  return graph_.input(name, {Shape{{"batch", pass_.batch}, {"seq", pass_.sequence}}, DType::i32});
}

ValueId Builder::linear(ValueId x, const std::string& name, const Shape& shape, std::string_view out,
                        double deviation) {
  const ValueId w = weight(name + ".weight", shape, {Init::Kind::normal, deviation}, true);
  const ValueId y = graph_.contract(x, w, out, dtype_);
  if (!model_.bias) return y;
  std::vector<tensor::Dim> dims;
  for (const std::string& d : tensor::words(out))
    if (shape.has(d) && !graph_.shape(x).has(d)) dims.push_back({d, shape.size(d)});
  return graph_.add({y, weight(name + ".bias", Shape(dims), {}, false)});
}

ValueId Builder::layer_norm(ValueId x, const std::string& name) {
  const Shape embed = {{"embed", model_.embed}};
  const ValueId gamma = weight(name + ".gamma", embed, {Init::Kind::constant, 1.0}, false);
  const ValueId beta = model_.bias ? weight(name + ".beta", embed, {}, false) : graph::kNone;
  return graph_.op("layer_norm", {x, gamma, beta}, {{"epsilon", model_.norm_epsilon}, {"whole", "embed"}});
}

ValueId Builder::rms_norm(ValueId x, const std::string& name) {
  const ValueId gamma = weight(name + ".gamma", {{"embed", model_.embed}}, {Init::Kind::constant, 1.0}, false);
  return graph_.op("rms_norm", {x, gamma}, {{"epsilon", model_.norm_epsilon}, {"whole", "embed"}});
}

ValueId Builder::dropout(ValueId x, const std::string& key) {
  if (model_.dropout == 0.0 || pass_.purpose != Purpose::train) return x;
  return graph_.op("dropout", {x}, {{"p", model_.dropout}, {"key", key}});
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
    const Shape shape = {{"batch", pass_.batch}, {"key_seq", pass_.cache}, kv_heads(), head_dim()};
    id = states_.add(
        {.name = name, .type = {shape, dtype_}, .kind = StateKind::cache, .layer = graph_.layer, .saved = false});
  }
  const ValueId whole = graph_.op("cache_write", {graph_.read(id), x});
  graph_.assign(whole, id);
  return whole;
}

ValueId Builder::attention(ValueId q, ValueId k, ValueId v, const std::string& name) {
  k = generates() ? cached(k, name + ".keys") : graph_.rename(k, "seq", "key_seq");
  v = generates() ? cached(v, name + ".values") : graph_.rename(v, "seq", "key_seq");
  const ValueId starts = pass_.documents ? input("starts") : graph::kNone;
  const double p = pass_.purpose == Purpose::train ? model_.dropout : 0.0;
  return graph_.apply("attention", {q, k, v, starts},
                      {{"causal", int64_t{1}},
                       {"scale", 1.0 / std::sqrt(static_cast<double>(head_dim().size))},
                       {"dropout", p},
                       {"key", name}},
                      "attention")[0];
}

ValueId Builder::self_attention(ValueId h, const std::string& name, Positions positions) {
  const auto place = [&](ValueId x) {
    if (positions == Positions::learned) return x;
    return graph_.op("rotary", {x},
                     {{"theta", model_.rope_theta}, {"inverse", int64_t{0}}, {"interleaved", int64_t{0}}});
  };
  const Shape to_query = {embed(), kv_heads(), group(), head_dim()}, to_key = {embed(), kv_heads(), head_dim()};
  const ValueId q = linear(h, name + ".query", to_query, "batch seq kv_heads group head_dim", deviation());
  const ValueId k = linear(h, name + ".key", to_key, "batch seq kv_heads head_dim", deviation());
  const ValueId v = linear(h, name + ".value", to_key, "batch seq kv_heads head_dim", deviation());
  const ValueId placed_q = place(q), placed_k = place(k);  // in this order with every compiler
  const ValueId o = attention(placed_q, placed_k, v, name);
  const Shape back = {kv_heads(), group(), head_dim(), embed()};
  return linear(o, name + ".output", back, "batch seq embed", residual_deviation());
}

}  // namespace kintsugi::models
