// Llama (Touvron et al. 2023a, section 2.2; grouped heads: 2023b): RMS norm, rotary positions, gated products, no
// biases. Dims: batch seq embed kv_heads group head_dim ffn vocab.
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Trunk llama(Builder& b) {
  const config::Model& m = b.model();
  Graph& g = b.graph();

  g.layer = -1;
  ValueId x = b.dropout(g.op("embedding", {b.input("tokens"), b.table("embedding.table")}), "embedding");

  for (int64_t i = 0; i < m.layers; ++i) {
    g.layer = static_cast<int>(i);
    const std::string at = "layer" + std::to_string(i) + ".";
    ValueId h = b.rms_norm(x, at + "attention_norm");
    h = b.self_attention(h, at + "attention", Builder::Positions::rotary);
    x = g.add({x, b.dropout(h, at + "attention.output")});

    h = b.rms_norm(x, at + "ffn_norm");
    const ValueId gate = b.linear(h, at + "ffn.gate", {b.embed(), b.ffn()}, "batch seq ffn", b.deviation());
    const ValueId up = b.linear(h, at + "ffn.up", {b.embed(), b.ffn()}, "batch seq ffn", b.deviation());
    h = g.op("gated", {gate, up}, {{"activation", m.activation}});
    h = b.linear(h, at + "ffn.down", {b.ffn(), b.embed()}, "batch seq embed", b.residual_deviation());
    x = g.add({x, b.dropout(h, at + "ffn.down")});
  }

  g.layer = static_cast<int>(m.layers);
  return {b.rms_norm(x, "final_norm"), b.table(m.tied ? "embedding.table" : "head.table")};
}

}  // namespace kintsugi::models
