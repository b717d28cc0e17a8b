// GPT-2 (Radford et al. 2019): learned positions, norm before each block, one embedding table for input and head.
// Dims: batch seq embed kv_heads group head_dim ffn vocab position.
#include <cmath>

#include "kintsugi/models/models.h"

namespace kintsugi::models {

Trunk gpt(Builder& b) {
  const config::Model& m = b.model();
  Graph& g = b.graph();
  const double deviation = 0.02;
  const double residual =
      deviation / std::sqrt(2.0 * static_cast<double>(m.layers));  // Radford et al. 2019, section 2.3
  const tensor::Dim embed = {"embed", m.embed}, kv_heads = {"kv_heads", m.kv_heads}, group = {"group", b.group()},
                    head_dim = {"head_dim", b.head_dim()}, ffn = {"ffn", m.ffn}, vocab = {"vocab", m.vocab};

  g.layer = -1;
  const ValueId table = b.weight("embedding.table", {vocab, embed}, {Init::Kind::normal, deviation, {}}, true);
  const ValueId positions =
      b.weight("embedding.positions", {{"position", m.context}, embed}, {Init::Kind::normal, deviation, {}}, true);
  ValueId x = g.add(
      {g.op("embedding", {b.input("tokens"), table}), g.op("position", {positions}, {{"length", b.pass().sequence}})});
  x = b.dropout(x, "embedding");

  for (int64_t i = 0; i < m.layers; ++i) {
    g.layer = static_cast<int>(i);
    const std::string at = "layer" + std::to_string(i) + ".";
    ValueId h = b.layer_norm(x, at + "attention_norm");
    const ValueId q = b.linear(h, at + "attention.query", {embed, kv_heads, group, head_dim},
                               "batch seq kv_heads group head_dim", deviation);
    const ValueId k =
        b.linear(h, at + "attention.key", {embed, kv_heads, head_dim}, "batch seq kv_heads head_dim", deviation);
    const ValueId v =
        b.linear(h, at + "attention.value", {embed, kv_heads, head_dim}, "batch seq kv_heads head_dim", deviation);
    h = b.attention(q, k, v, at + "attention");
    h = b.linear(h, at + "attention.output", {kv_heads, group, head_dim, embed}, "batch seq embed", residual);
    x = g.add({x, b.dropout(h, at + "attention")});

    h = b.layer_norm(x, at + "ffn_norm");
    h = b.activation(b.linear(h, at + "ffn.up", {embed, ffn}, "batch seq ffn", deviation));
    h = b.linear(h, at + "ffn.down", {ffn, embed}, "batch seq embed", residual);
    x = g.add({x, b.dropout(h, at + "ffn")});
  }

  g.layer = static_cast<int>(m.layers);
  const std::string head = m.tied ? "embedding.table" : "head.table";
  return {b.layer_norm(x, "final_norm"), b.weight(head, {vocab, embed}, {Init::Kind::normal, deviation, {}}, true)};
}

}  // namespace kintsugi::models
