// Llama (Touvron et al. 2023a, section 2.2; grouped heads: 2023b): RMS norm, rotary positions, gated products, no
// biases. Dims: batch seq embed kv_heads group head_dim ffn vocab.
#include <cmath>

#include "kintsugi/models/models.h"

namespace kintsugi::models {

Trunk llama(Builder& b) {
  const config::Model& m = b.model();
  Graph& g = b.graph();
  const double deviation = 0.02, residual = deviation / std::sqrt(2.0 * static_cast<double>(m.layers));
  const tensor::Dim embed = {"embed", m.embed}, kv_heads = {"kv_heads", m.kv_heads}, group = {"group", b.group()},
                    head_dim = {"head_dim", b.head_dim()}, ffn = {"ffn", m.ffn}, vocab = {"vocab", m.vocab};
  const auto rotary = [&](ValueId x) {
    return g.op("rotary", {x}, {{"theta", m.rope_theta}, {"inverse", int64_t{0}}, {"interleaved", int64_t{0}}});
  };

  g.layer = -1;
  const ValueId table = b.weight("embedding.table", {vocab, embed}, {Init::Kind::normal, deviation, {}}, true);
  ValueId x = b.dropout(g.op("embedding", {b.input("tokens"), table}), "embedding");

  for (int64_t i = 0; i < m.layers; ++i) {
    g.layer = static_cast<int>(i);
    const std::string at = "layer" + std::to_string(i) + ".";
    ValueId h = b.rms_norm(x, at + "attention_norm");
    const ValueId q = b.linear(h, at + "attention.query", {embed, kv_heads, group, head_dim},
                               "batch seq kv_heads group head_dim", deviation);
    const ValueId k =
        b.linear(h, at + "attention.key", {embed, kv_heads, head_dim}, "batch seq kv_heads head_dim", deviation);
    const ValueId v =
        b.linear(h, at + "attention.value", {embed, kv_heads, head_dim}, "batch seq kv_heads head_dim", deviation);
    h = b.attention(rotary(q), rotary(k), v, at + "attention");
    h = b.linear(h, at + "attention.output", {kv_heads, group, head_dim, embed}, "batch seq embed", residual);
    x = g.add({x, b.dropout(h, at + "attention")});

    h = b.rms_norm(x, at + "ffn_norm");
    const ValueId gate = b.linear(h, at + "ffn.gate", {embed, ffn}, "batch seq ffn", deviation);
    const ValueId up = b.linear(h, at + "ffn.up", {embed, ffn}, "batch seq ffn", deviation);
    h = g.op("gated", {gate, up}, {{"activation", m.activation}});
    h = b.linear(h, at + "ffn.down", {ffn, embed}, "batch seq embed", residual);
    x = g.add({x, b.dropout(h, at + "ffn")});
  }

  g.layer = static_cast<int>(m.layers);
  const std::string head = m.tied ? "embedding.table" : "head.table";
  return {b.rms_norm(x, "final_norm"), b.weight(head, {vocab, embed}, {Init::Kind::normal, deviation, {}}, true)};
}

}  // namespace kintsugi::models
