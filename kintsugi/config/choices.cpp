#include "kintsugi/config/choices.h"

#include <algorithm>
#include <cmath>

#include "kintsugi/base/error.h"

namespace kintsugi::config {
namespace {

// The value whose word is `text`, which was validated when it was read.
template <typename Choice, size_t Count>
Choice choice(const std::array<std::string_view, Count>& words, std::string_view text) {
  const auto found = std::ranges::find(words, text);
  base::require(found != words.end(), "config", "the word \"{}\" was not checked", text);
  return static_cast<Choice>(found - words.begin());
}

bool of_layer(const std::vector<std::string>& words, std::string_view yes, int64_t layer) {
  return words.empty() || words[static_cast<size_t>(layer) % words.size()] == yes;
}

}  // namespace

std::string_view name_of(Recomputed what) {
  switch (what) {
    case Recomputed::nothing:
      return "none";
    case Recomputed::light:
      return "light";
    case Recomputed::attention:
      return "selective";
    case Recomputed::layers:
      return "full";
  }
  throw base::InternalError("config", "nothing is recomputed so: {}", static_cast<int>(what));
}

Recomputed recomputed(const Parallel& p) {
  for (Recomputed what : {Recomputed::nothing, Recomputed::light, Recomputed::attention, Recomputed::layers})
    if (p.recompute == name_of(what)) return what;
  throw base::InternalError("config", "recompute \"{}\" was not checked", p.recompute);
}

Device device(const Parallel& p) {
  return choice<Device>(kDevices, p.device);
}

std::string_view name_of(Device device) {
  return kDevices[static_cast<size_t>(device)];
}

std::string_view name_of(Offloaded what) {
  if (what.optimizer) return what.activations ? "all" : "optimizer";
  return what.activations ? "activations" : "none";
}

Offloaded offloaded(const Parallel& p) {
  for (bool optimizer : {false, true})
    for (bool activations : {false, true}) {
      const Offloaded what = {.optimizer = optimizer, .activations = activations};
      if (p.offload == name_of(what)) return what;
    }
  throw base::InternalError("config", "offload \"{}\" was not checked", p.offload);
}

Norm norm(const Model& m) {
  return choice<Norm>(kNorms, m.norm);
}

NormPlace norm_place(const Model& m) {
  return choice<NormPlace>(kNormPlaces, m.norm_place);
}

QueryKeyNorm query_key_norm(const Model& m) {
  return choice<QueryKeyNorm>(kQueryKeyNorms, m.query_key_norm);
}

BatchNorm batch_norm(const Model& m) {
  return choice<BatchNorm>(kBatchNorms, m.batch_norm);
}

int64_t batch_norm_group(const Settings& s) {
  if (batch_norm(s.model) == BatchNorm::all) return 0;
  return s.model.batch_norm_samples > 0 ? s.model.batch_norm_samples : s.train.micro_batch;
}

Residual residual(const Model& m) {
  return choice<Residual>(kResiduals, m.residual);
}

Balance balance(const Train& train) {
  return choice<Balance>(kExpertBalances, train.balance);
}

bool has_balance_loss(Balance balance) {
  return balance == Balance::loss || balance == Balance::both || balance == Balance::global;
}

bool has_balance_bias(Balance balance) {
  return balance == Balance::bias || balance == Balance::both;
}

bool has_experts(const Model& m, int64_t layer) {
  return m.experts > 0 && layer >= m.dense_layers;
}

int64_t dense_width(const Model& m) {
  return m.experts > 0 && m.dense_ffn > 0 ? m.dense_ffn : m.ffn;
}

int64_t expert_capacity(const Model& model, int64_t sequence, double bound) {
  if (bound <= 0.0) return sequence;
  const double mean = static_cast<double>(sequence * model.experts_per_token) / static_cast<double>(model.experts);
  const double slots = std::ceil(bound * mean - 1e-9);  // a bound of 1.1 and a mean of 10 give 11 slots
  return std::clamp<int64_t>(static_cast<int64_t>(std::min(slots, static_cast<double>(sequence))), 1, sequence);
}

Positions positions(const Model& m) {
  return choice<Positions>(kPositions, m.positions);
}

Stem stem(const Model& m) {
  return choice<Stem>(kStems, m.stem);
}

RopeScaling rope_scaling(const Model& m) {
  return choice<RopeScaling>(kRopeScalings, m.rope_scaling);
}

Objective objective(const Model& m) {
  return choice<Objective>(kObjectives, m.objective);
}

FieldLoss field_loss(const Train& t) {
  return choice<FieldLoss>(kFieldLosses, t.loss);
}

Method method(const Train& t) {
  return choice<Method>(kMethods, t.method);
}

Reward reward(const Grpo& g) {
  return choice<Reward>(kRewards, g.reward);
}

bool of_tokens(Objective o) {
  return o == Objective::next || o == Objective::masked || o == Objective::masked_next;
}

bool of_samples(Objective o) {
  return o == Objective::masked_next || o == Objective::classes || o == Objective::numbers || o == Objective::pixels ||
         o == Objective::fields;
}

bool separates_documents(const Settings& s) {
  return s.data.reset_at_document || !s.model.causal;
}

bool begins_samples(const Settings& s) {
  const bool chats = std::ranges::any_of(s.data.train, [](const DataSource& d) { return d.path.ends_with(".jsonl"); });
  return s.data.begin_samples && objective(s.model) == Objective::next && !chats;
}

bool has_latent_attention(const Model& m) {
  return m.kv_rank > 0;
}

int64_t width_of_value(const Model& m) {
  return has_latent_attention(m) && m.value_head_dim > 0 ? m.value_head_dim : width_of_head(m);
}

int64_t width_of_head(const Model& m) {
  const int64_t width = m.head_dim > 0 ? m.head_dim : m.embed / m.heads;
  return has_latent_attention(m) ? std::max(width + m.rotary_head_dim, m.value_head_dim) : width;
}

void set_biases(Model& m, bool biases) {
  m.bias = m.bias_query_key_value = m.bias_output = m.bias_ffn = m.bias_norm = biases;
}

bool has_window(const Model& m, int64_t layer) {
  return m.window > 0 && of_layer(m.window_layers, kWindowLayers[1], layer);
}

bool has_rotary(const Model& m, int64_t layer) {
  return positions(m) == Positions::rotary && of_layer(m.rotary_layers, kRotaryLayers[1], layer);
}

}  // namespace kintsugi::config
