// Phi-3 (Abdin et al. 2024): Llama with fused projections in the file and a window.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family phi3() {
  config::Model m = llama_defaults();
  std::vector<ConfigRow> config = llama_config({.vocab = "32064",
                                                .embed = "3072",
                                                .ffn = "8192",
                                                .layers = "32",
                                                .heads = "32",
                                                .kv_heads = "null",
                                                .context = "4096",
                                                .epsilon = "1e-05"});
  config.insert(config.end(), {ignored("resid_pdrop"), ignored("embd_pdrop"), only("full_attn_mod", "1"),
                               only("interpolate_factor", "1")});
  std::vector<WeightRow> weights;
  for (const WeightRow& row : llama_weights())
    if (row.theirs.find("mlp.gate_") == row.theirs.npos && row.theirs.find("mlp.up_") == row.theirs.npos &&
        row.theirs.find("self_attn") == row.theirs.npos)
      weights.push_back(row);
  weights.push_back(
      {"layers.*.self_attn.qkv_proj.weight",
       "| kv_heads group head_dim , embed",
       {"layer*.attention.query.weight", "layer*.attention.key.weight", "layer*.attention.value.weight"}});
  weights.push_back(
      {"layers.*.self_attn.o_proj.weight", "embed , kv_heads group head_dim", {"layer*.attention.output.weight"}});
  weights.push_back(
      {"layers.*.mlp.gate_up_proj.weight", "| ffn , embed", {"layer*.ffn.gate.weight", "layer*.ffn.up.weight"}});
  return {
      .config = {.name = "phi3",
                 .about = "Phi-3: Llama with other names, a window, LongRoPE",
                 .defaults = m,
                 .ffn = {.times = 8, .per = 3, .multiple = 32}},
      .build = transformer,
      .hugging_face = {
          .model_types = {"phi3"},
          .architectures = {{"Phi3ForCausalLM"}},
          .prefix = "model.",
          .config = config,
          .weights = weights,
          .rope = RopeKeys{.partial_key = "partial_rotary_factor", .original_outside = 4096, .scalings = "longrope"},
          .windows = WindowKeys{}}};
}

}  // namespace kintsugi::models
