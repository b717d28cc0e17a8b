// A transformer: token embeddings, blocks of attention and feed-forward layer, a norm, and a head for tokens or whole
// samples. Families differ by the switches of [model]. Dims: batch seq embed kv_heads group head_dim ffn vocab
// position.
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {
namespace {

using config::NormPlace;
using config::Residual;

// Applies attention or the feed-forward layer, with its norms, to the residual stream.
template <typename Layer>
ValueId add_layer(Builder& b, ValueId x, const std::string& norm, const std::string& output, Layer layer) {
  Graph& g = b.graph();
  const NormPlace place = config::norm_place(b.model());
  const bool before = place == NormPlace::before || place == NormPlace::both;
  ValueId h = layer(before ? b.norm(x, norm) : x);
  if (place == NormPlace::output) h = b.norm(h, norm);
  if (place == NormPlace::both) h = b.norm(h, output + "_norm");
  const ValueId sum = g.add({x, b.drop_path(b.dropout(h, output), output, b.drop_path_share())});
  return place == NormPlace::after ? b.norm(sum, norm) : sum;
}

ValueId sequential_block(Builder& b, ValueId x, const std::string& at) {
  x = add_layer(b, x, at + "attention_norm", at + "attention.output",
                [&](ValueId h) { return b.self_attention(h, at + "attention"); });
  return add_layer(b, x, at + "ffn_norm", at + "ffn.down", [&](ValueId h) { return b.feed_forward(h, at + "ffn"); });
}

ValueId parallel_block(Builder& b, ValueId x, const std::string& at, bool one_norm) {
  const ValueId h = b.norm(x, at + "attention_norm");
  const ValueId attended = b.dropout(b.self_attention(h, at + "attention"), at + "attention.output");
  const ValueId fed = b.feed_forward(one_norm ? h : b.norm(x, at + "ffn_norm"), at + "ffn");
  return b.graph().add({x, attended, b.dropout(fed, at + "ffn.down")});
}

ValueId block(Builder& b, ValueId x, const std::string& at) {
  switch (config::residual(b.model())) {
    case Residual::sequential:
      return sequential_block(b, x, at);
    case Residual::parallel:
      return parallel_block(b, x, at, false);
    case Residual::parallel_one_norm:
      return parallel_block(b, x, at, true);
  }
  throw base::InternalError("models", "an unknown kind of residual");
}

}  // namespace

ValueId transformer_block(Builder& b, ValueId x, const std::string& at) {
  return block(b, x, at);
}

namespace {

ValueId embedded(Builder& b) {
  Graph& g = b.graph();
  const config::Model& m = b.model();
  const bool learned = config::positions(m) == config::Positions::learned;
  const ValueId table = b.table("embedding.table");
  const ValueId positions = learned ? b.weight("embedding.positions", {{"position", m.context}, b.embed()},
                                               {Init::Kind::normal, b.deviation()}, true)
                                    : graph::kNone;
  ValueId x = g.op("embedding", {b.input("tokens"), table});
  const double scale = m.embed_scale > 0.0 ? m.embed_scale : std::sqrt(static_cast<double>(m.embed));
  if (scale != 1.0) x = g.op("scale", {x}, {{"by", scale}});
  const tensor::Attributes length = {{"length", b.pass().sequence}};
  if (learned)
    x = g.add({x, b.has_positions() ? g.op("position_at", {positions, b.row_position()}, length)
                                    : g.op("position", {positions}, length)});
  if (m.token_types > 0) {
    const ValueId types =
        b.weight("embedding.types", {{"type", m.token_types}, b.embed()}, {Init::Kind::normal, b.deviation()}, true);
    x = g.add({x, g.op("embedding", {b.input("types"), types})});
  }
  if (m.embed_norm) x = b.norm(x, "embedding.norm");
  return b.dropout(x, "embedding");
}

// x times NAME.weight [embed wide], plus a bias: a square matrix, so the dims of its output have other names until they
// are renamed back. x: [batch embed] or [batch seq embed] -> as x
ValueId square(Builder& b, ValueId x, const std::string& name, const std::string& dims) {
  const tensor::Dim wide = {"pooled", b.embed().size};
  const ValueId y = b.linear(x, name, {b.embed(), wide}, dims + " pooled", b.deviation(), true);
  return b.graph().rename(y, "pooled", "embed");
}

// Devlin et al. 2019, section 3.1: a separate layer predicts masked tokens.
ValueId masked_head(Builder& b, ValueId x) {
  return b.norm(b.activation(square(b, x, "head.transform", "batch seq")), "head.norm");
}

// Of the first position of each sample: [batch embed], then logits or numbers.
void add_sample_head(Builder& b, ValueId x, Trunk& trunk) {
  Graph& g = b.graph();
  const config::Model& m = b.model();
  const config::Objective objective = config::objective(m);
  const bool classes = objective != config::Objective::numbers;
  const int64_t outputs = objective == config::Objective::masked_next ? 2 : m.outputs;
  const tensor::Dim out = {classes ? "class" : "target", outputs};
  ValueId pooled = g.op("tanh", {square(b, g.op("first", {x}), "pooler", "batch")});
  if (objective != config::Objective::masked_next) pooled = b.dropout(pooled, "pooler");
  const std::string name = objective == config::Objective::masked_next ? "head.next"
                           : classes                                   ? "head.classes"
                                                                       : "head.numbers";
  const ValueId y = b.linear(pooled, name, {b.embed(), out}, "batch " + out.name, b.deviation(), true);
  (classes ? trunk.classes : trunk.numbers) = y;
}

}  // namespace

Trunk transformer(Builder& b) {
  const config::Model& m = b.model();
  Graph& g = b.graph();
  g.layer = -1;
  ValueId x = embedded(b);
  const int64_t blocks = b.pass().blocks;
  for (int64_t i = 0; i < (blocks < 0 ? m.layers : blocks); ++i) {
    g.layer = static_cast<int>(i);
    x = block(b, x, "layer" + std::to_string(i) + ".");
  }
  if (blocks >= 0) {
    g.layer = static_cast<int>(blocks);  // as the head's, so that stages count the blocks
    return {.x = x};
  }
  g.layer = static_cast<int>(m.layers);
  if (config::norm_place(m) != NormPlace::after) x = b.norm(x, "final_norm");
  const config::Objective objective = config::objective(m);
  Trunk trunk = {.losses = b.losses()};
  if (config::of_samples(objective)) add_sample_head(b, x, trunk);
  if (!config::of_tokens(objective)) return trunk;
  trunk.x = objective == config::Objective::next ? x : masked_head(b, x);
  trunk.head = b.table(m.tied ? "embedding.table" : "head.table");
  if (m.bias_head) trunk.bias = b.weight("head.bias", {b.vocab()}, {}, false);
  return trunk;
}

}  // namespace kintsugi::models
