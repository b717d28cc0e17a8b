// Multi-head latent attention (DeepSeek-V2 2024, section 2.1): keys and values are projections of a normalized latent
// vector, likewise queries if model.query_rank is set. A head's queries and keys have dims without positions,
// `content`, and rotated ones, `turned`; those of the keys are the same for all heads. Attention needs one width for
// queries, keys and values, so that the narrower ones end in zeros.
//
// latent: [batch seq latent], k_turned: [batch seq turned], q, k, v, o: [batch seq kv_heads (group) head_dim]
#include "kintsugi/models/builder.h"

namespace kintsugi::models {
namespace {

constexpr double kLatentEpsilon = 1e-6;  // of the norms of the latents, in the published code

}  // namespace

ValueId Builder::latent_attention(ValueId h, const std::string& name) {
  const tensor::Dim content = {"content", model_.head_dim}, turned = {"turned", model_.rotary_head_dim},
                    value = {"value", config::width_of_value(model_)};
  const auto reduced = [&](std::string_view which, const tensor::Dim& latent) {
    const std::string at = name + std::string(which);
    const ValueId x = linear(h, at + "_down", {embed(), latent}, "batch seq " + latent.name, deviation(),
                             model_.bias_query_key_value);
    const ValueId gamma = weight(at + "_norm.gamma", {latent}, {Init::Kind::constant, 1.0}, false);
    return graph_.op("rms_norm", {x, gamma}, {{"epsilon", kLatentEpsilon}, {"whole", latent.name}});
  };
  const auto projected = [&](ValueId x, std::string_view which, const Shape& shape, bool bias) {
    std::string out = "batch seq";
    for (size_t i = 1; i < shape.rank(); ++i) out += " " + shape[i].name;
    return linear(x, name + std::string(which), shape, out, deviation(), bias);
  };
  const auto rotated_dims = [&](ValueId x) {
    return graph_.rename(rotated(graph_.rename(x, turned.name, "head_dim")), "head_dim", turned.name);
  };
  const auto joined = [&](std::vector<ValueId> parts, const std::string& names) {
    return graph_.op("join_head_dims", std::move(parts), {{"width", head_dim().size}, {"whole", names + " head_dim"}});
  };

  const bool latent_queries = model_.query_rank > 0;
  const std::string query = latent_queries ? ".query_latent" : ".query";
  const tensor::Dim from = latent_queries ? tensor::Dim{"query_latent", model_.query_rank} : embed();
  const ValueId of_query = latent_queries ? reduced(".query", from) : h;
  const ValueId q_content = projected(of_query, query + "_content", {from, kv_heads(), group(), content}, false);
  const ValueId q_turned =
      rotated_dims(projected(of_query, query + "_turned", {from, kv_heads(), group(), turned}, false));

  const tensor::Dim latent = {"latent", model_.kv_rank};
  const ValueId of_key = reduced(".key_value", latent);
  const ValueId k_turned = rotated_dims(projected(h, ".key_turned", {embed(), turned}, model_.bias_query_key_value));
  const ValueId k_content = projected(of_key, ".key", {latent, kv_heads(), content}, false);
  const ValueId v = projected(of_key, ".value", {latent, kv_heads(), value}, false);

  const bool wide = value.size == head_dim().size;
  const std::string both = content.name + " " + turned.name;
  const ValueId o = attention(joined({q_content, q_turned}, both), joined({k_content, k_turned}, both),
                              wide ? graph_.rename(v, value.name, "head_dim") : joined({v}, value.name), name);
  const ValueId read =
      wide ? graph_.rename(o, "head_dim", value.name)
           : graph_.make("join_head_dims_grad", {o},
                         {{Shape{batch(), {"seq", pass_.sequence}, kv_heads(), group(), value}, dtype_}},
                         {{"width", head_dim().size}, {"whole", value.name + " head_dim"}})[0];
  return linear(read, name + ".output", {kv_heads(), group(), value, embed()}, "batch seq embed", residual_deviation(),
                model_.bias_output);
}

}  // namespace kintsugi::models
