// What the model families share: weights by name, linear layers, norms, attention with or without a cache.
#pragma once

#include <string>
#include <string_view>

#include "kintsugi/config/settings.h"
#include "kintsugi/graph/graph.h"

namespace kintsugi::models {

using graph::Graph;
using graph::Init;
using graph::ValueId;
using tensor::DType;
using tensor::Shape;

enum class Purpose { train, evaluate, prefill, decode };

// The sizes of one pass through a model.
struct Pass {
  Purpose purpose = Purpose::train;
  int64_t batch = 1;       // samples
  int64_t sequence = 1;    // tokens per sample
  int64_t cache = 0;       // generation: positions that the caches hold
  bool documents = false;  // attention stays within a document, by the input "starts"
};

class Builder {
 public:
  Builder(Graph& graph, graph::StateTable& states, const config::Model& model, const Pass& pass, DType dtype)
      : graph_(graph), states_(states), model_(model), pass_(pass), dtype_(dtype) {}

  Graph& graph() { return graph_; }
  const config::Model& model() const { return model_; }
  const Pass& pass() const { return pass_; }

  // Reads a weight, which is made where it stands not yet. Each use reads anew, so that it has a gradient of its own.
  ValueId weight(const std::string& name, const Shape& shape, Init init, bool decay);
  // int32 [batch seq]
  ValueId input(std::string_view name);
  // x times NAME.weight of the given shape, to dims `out`, plus NAME.bias if the model has biases: [the weight's dims
  // in out]
  ValueId linear(ValueId x, const std::string& name, const Shape& shape, std::string_view out, double deviation);
  // layer norm (gpt) or RMS norm (llama) over embed
  ValueId layer_norm(ValueId x, const std::string& name);
  ValueId rms_norm(ValueId x, const std::string& name);
  ValueId dropout(ValueId x, const std::string& key);
  ValueId activation(ValueId x);
  // q [batch seq kv_heads group head_dim], k, v [batch seq kv_heads head_dim] -> as q; causal. In generation, keys and
  // values go through caches NAME.keys and NAME.values.
  ValueId attention(ValueId q, ValueId k, ValueId v, const std::string& name);

  // Dims of the model.
  int64_t head_dim() const { return model_.embed / model_.heads; }
  int64_t group() const { return model_.heads / model_.kv_heads; }
  bool generates() const { return pass_.purpose == Purpose::prefill || pass_.purpose == Purpose::decode; }

 private:
  ValueId cached(ValueId x, const std::string& name);

  Graph& graph_;
  graph::StateTable& states_;
  const config::Model& model_;
  const Pass& pass_;
  DType dtype_;
};

// What a family gives: the last norm's output [batch seq embed] and the head's weight [vocab embed].
struct Trunk {
  ValueId x = graph::kNone;
  ValueId head = graph::kNone;
};

}  // namespace kintsugi::models
