// GPT-2 (Radford et al. 2019): learned positions, norm before each block, one embedding table for input and head.
// Dims: batch seq embed kv_heads group head_dim ffn vocab position.
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Trunk gpt(Builder& b) {
  const config::Model& m = b.model();
  Graph& g = b.graph();

  g.layer = -1;
  const Init normal = {Init::Kind::normal, b.deviation()};
  const ValueId table = b.table("embedding.table");
  const ValueId positions = b.weight("embedding.positions", {{"position", m.context}, b.embed()}, normal, true);
  ValueId x = g.add(
      {g.op("embedding", {b.input("tokens"), table}), g.op("position", {positions}, {{"length", b.pass().sequence}})});
  x = b.dropout(x, "embedding");

  for (int64_t i = 0; i < m.layers; ++i) {
    g.layer = static_cast<int>(i);
    const std::string at = "layer" + std::to_string(i) + ".";
    ValueId h = b.layer_norm(x, at + "attention_norm");
    h = b.self_attention(h, at + "attention", Builder::Positions::learned);
    x = g.add({x, b.dropout(h, at + "attention.output")});

    h = b.layer_norm(x, at + "ffn_norm");
    h = b.activation(b.linear(h, at + "ffn.up", {b.embed(), b.ffn()}, "batch seq ffn", b.deviation()));
    h = b.linear(h, at + "ffn.down", {b.ffn(), b.embed()}, "batch seq embed", b.residual_deviation());
    x = g.add({x, b.dropout(h, at + "ffn.down")});
  }

  g.layer = static_cast<int>(m.layers);
  return {b.layer_norm(x, "final_norm"), b.table(m.tied ? "embedding.table" : "head.table")};
}

}  // namespace kintsugi::models
