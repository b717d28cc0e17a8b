#include "kintsugi/config/resolve_experts.h"

#include "kintsugi/base/error.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/derive.h"

namespace kintsugi::config {
namespace {

void check_expert_groups(const Given& given) {
  const Model& m = given.settings.model;
  if (m.experts % m.expert_groups != 0)
    throw base::UserError("config", "{}{} is not divisible by {}; nearest expert_groups: {}",
                          place(given, {"model.expert_groups", "model.experts"}), given.say("model.experts"),
                          given.say("model.expert_groups"), divisors_around(m.experts, m.expert_groups));
  if (m.groups_per_token > m.expert_groups)
    throw base::UserError("config", "{}{} is more than {}",
                          place(given, {"model.groups_per_token", "model.expert_groups"}),
                          given.say("model.groups_per_token"), given.say("model.expert_groups"));
  const int64_t choice = m.experts / m.expert_groups * m.groups_per_token;
  if (m.experts_per_token > choice)
    throw base::UserError("config", "{}{} is more than the {} experts of {}",
                          place(given, {"model.experts_per_token", "model.groups_per_token", "model.expert_groups"}),
                          given.say("model.experts_per_token"), choice, given.say("model.groups_per_token"));
}

}  // namespace

void derive_expert_widths(Given& given) {
  Model& m = given.settings.model;
  if (m.dense_layers > 0) derive<int64_t>(given, "model.dense_ffn", m.dense_ffn, 0, m.ffn);
  if (m.kv_rank > 0) derive<int64_t>(given, "model.value_head_dim", m.value_head_dim, 0, m.head_dim);
}

void derive_experts(Given& given) {
  Model& m = given.settings.model;
  Train& t = given.settings.train;
  const bool by_bias = t.balance == "bias" || t.balance == "both";
  if (m.experts > 0 && by_bias && !given.origin("model.router_bias").given())
    store(given, "model.router_bias", m.router_bias, true, "balance");
  derive<std::string>(given, "train.balance", t.balance, "", m.experts == 0 ? "none" : m.router_bias ? "bias" : "loss");
  // An exported adapter has no place for a changed bias.
  if (given.settings.lora.rank > 0 && m.router_bias)
    derive_ungiven(given, "train.balance_rate", t.balance_rate, 0.0, "lora.rank");
  const double all = m.experts == 0 ? 1.0 : static_cast<double>(m.experts) / static_cast<double>(m.experts_per_token);
  derive(given, "train.expert_bound", t.expert_bound, -1.0, all);
}

void check_latent_attention(const Given& given) {
  const Model& m = given.settings.model;
  const auto need = [&](bool fine, std::string_view key, std::string_view what) {
    if (!fine)
      throw base::UserError("config", "{}{} is not possible with {}, latent attention: {}",
                            place(given, {key, "model.kv_rank"}), given.say(key), given.say("model.kv_rank"), what);
  };
  need(m.kv_heads == m.heads, "model.kv_heads", "each head has its own keys; set kv_heads = heads");
  need(positions(m) == Positions::rotary, "model.positions", "positions must be \"rotary\"");
  need(m.rotary_head_dim > 0 && m.rotary_head_dim % 2 == 0, "model.rotary_head_dim",
       "rotary embedding turns pairs of these dims; it must be even and at least 2");
  need(m.rotary_dims == 0, "model.rotary_dims", "rotary_head_dim says what is turned");
  need(query_key_norm(m) == QueryKeyNorm::none, "model.query_key_norm", "it must be \"none\"");
}

void check_experts(const Given& given) {
  const Model& m = given.settings.model;
  const Train& t = given.settings.train;
  if (m.experts == 0) return;
  if (!given.catalog->family(m.family)->reads_tokens)
    throw base::UserError("config", "{}{}: models of the family {} have no experts",
                          place(given, {"model.experts", "model.family"}), given.say("model.experts"), m.family);
  if (m.experts_per_token > m.experts)
    throw base::UserError("config", "{}{} is more than {}", place(given, {"model.experts_per_token", "model.experts"}),
                          given.say("model.experts_per_token"), given.say("model.experts"));
  check_expert_groups(given);
  if (m.dense_layers >= m.layers)
    throw base::UserError("config", "{}{} leaves no layer with experts of {}",
                          place(given, {"model.dense_layers", "model.layers"}), given.say("model.dense_layers"),
                          given.say("model.layers"));
  if (m.gate_clamp > 0.0 && !(m.gated && m.activation == "silu"))
    throw base::UserError("config", "{}{} needs model.gated = true and model.activation = \"silu\"",
                          place(given, {"model.gate_clamp", "model.gated", "model.activation"}),
                          given.say("model.gate_clamp"));
  if (m.router_bias != has_balance_bias(balance(t)))
    throw base::UserError("config", "{}{} and {} contradict each other: the bias is what balances",
                          place(given, {"train.balance", "model.router_bias"}), given.say("train.balance"),
                          given.say("model.router_bias"));
}

void warn_of_idle_expert_keys(Resolved& given) {
  const Settings& s = given.settings;
  warn_if_idle(
      given,
      {"model.experts_per_token", "model.router_scores", "model.router_normalize", "model.router_scale",
       "model.router_linear_bias", "model.shared_experts", "model.dense_layers", "model.expert_groups",
       "model.groups_per_token", "model.gate_clamp", "model.gate_slope", "model.dense_ffn", "model.router_bias",
       "train.balance_weight", "train.balance_rate", "train.z_loss", "train.expert_overflow"},
      s.model.experts > 0, "model.experts");
  if (s.model.experts > 0) {
    warn_if_idle(given, "model.dense_ffn", s.model.dense_layers > 0, "model.dense_layers");
    warn_if_idle(given, {"model.gate_slope"}, s.model.gate_clamp > 0.0, "model.gate_clamp");
  }
  warn_if_idle(given, {"model.query_rank", "model.rotary_head_dim", "model.value_head_dim"}, s.model.kv_rank > 0,
               "model.kv_rank");
  // 1 is what is derived without experts, and saved with a run.
  warn_if_idle(given, "train.expert_bound", s.model.experts > 0 || s.train.expert_bound == 1, "model.experts");
}

}  // namespace kintsugi::config
