// Shared by the model families: named weights, linear layers, norms, attention with and without a cache.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/choices.h"
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
  int64_t batch = 1;     // samples
  int64_t sequence = 1;  // tokens per sample
  int64_t cache = 0;     // generation: capacity of the caches in positions
  // Generation of many texts: the number of texts with caches. A row of the batch belongs to any of them, at a position
  // of its own, given by the inputs "text" and "at" [batch]. 0: one row per text, all at the run's position.
  int64_t texts = 0;
  bool documents = false;              // restrict attention to a document, by the input "starts"
  const config::Lora* lora = nullptr;  // adapters of linear layers; null: none
  // Training: slots per expert, [train] expert_bound; 0: as many as a sample has tokens. Tokens without a slot are
  // dropped.
  double expert_bound = 0.0;
  bool drops = false;
  double balance_weight = 0.0;  // of the load-balancing loss; 0: none
  bool balances_steps = false;  // that loss weighs experts by their tokens in the previous step, not in the sample
  // Training: the objective is a mean over labelled tokens, so further losses weigh each sample by its share of them.
  bool counts_labels = false;
  // Hidden states: the number of blocks after which the trunk ends, without the final norm and the head; -1: the whole
  // trunk.
  int64_t blocks = -1;
  double z_loss = 0.0;  // weight of the router's z-loss; 0: none
  // Training: the number of consecutive samples that share the statistics of a batch norm; 0: all of the pass.
  int64_t norm_group = 0;
};

// A loss in addition to the objective's: adds weight * sum, in training only.
struct FurtherLoss {
  std::string name;            // of its metric, the mean of sum over counted tokens; losses with equal names are summed
  ValueId sum = graph::kNone;  // [] fp64, over the samples of the pass
  double weight = 1.0;
};

class Builder {
 public:
  Builder(Graph& graph, graph::StateTable& states, const config::Model& model, const Pass& pass, DType dtype)
      : graph_(graph), states_(states), model_(model), norm_(config::norm(model)), pass_(pass), dtype_(dtype) {}

  Graph& graph() { return graph_; }
  const config::Model& model() const { return model_; }
  const Pass& pass() const { return pass_; }

  // Reads a weight, creating it on first use. Each use reads it anew, so that each has its own gradient.
  ValueId weight(const std::string& name, const Shape& shape, Init init, bool decay);
  // int32 [batch seq]
  ValueId input(std::string_view name);
  // Of another shape; numbers are fp32.
  ValueId input(std::string_view name, const Shape& shape, DType dtype) { return graph_.input(name, {shape, dtype}); }
  // x times NAME.weight of the given shape, to dims `out`, plus NAME.bias if `bias`: [the weight's dims in out]. Adds
  // the layer's adapter if it has one: x NAME.lora_a NAME.lora_b alpha / rank (models/lora.h).
  ValueId linear(ValueId x, const std::string& name, const Shape& shape, std::string_view out, double deviation,
                 bool bias);
  // The model's norm, over embed.
  ValueId norm(ValueId x, const std::string& name);
  // Normalizes over all dims of x but the last: in training by batch statistics, which update running statistics; in
  // evaluation by the running statistics. With Pass::norm_group each group of samples has statistics of its own, whose
  // means over the step update the running statistics once.
  ValueId batch_norm(ValueId x, const std::string& name);
  ValueId dropout(ValueId x, const std::string& key);
  // In training, zeroes each sample of x with the given probability; 0: never.
  ValueId drop_path(ValueId x, const std::string& key, double share);
  // The rate of the graph's layer, of model.layers: grows from 0 to model.drop_path.
  double drop_path_share() const;
  ValueId activation(ValueId x);
  // q [batch seq kv_heads group head_dim], k, v [batch seq kv_heads head_dim] -> as q. In generation, reads and writes
  // the caches NAME.keys and NAME.values.
  ValueId attention(ValueId q, ValueId k, ValueId v, const std::string& name);

  // Query, key and value projections, their norms and rotation if the model has them, attention, and the output
  // projection: h [batch seq embed] -> as h. `name` prefixes its weights, dropout and caches. For the graph's layer.
  ValueId self_attention(ValueId h, const std::string& name);
  // The feed-forward layer, plain or gated, dense or mixture of experts: h [batch seq embed] -> as h.
  ValueId feed_forward(ValueId h, const std::string& name);

  // The model's dims, and the standard deviations of its weights; that of weights writing to the residual stream
  // decreases with the number of such writes (Radford et al. 2019, section 2.3).
  tensor::Dim embed() const { return {"embed", model_.embed}; }
  tensor::Dim ffn() const { return {"ffn", model_.ffn}; }
  tensor::Dim vocab() const { return {"vocab", model_.vocab}; }
  tensor::Dim batch() const { return {"batch", pass_.batch}; }
  DType dtype() const { return dtype_; }
  tensor::Dim kv_heads() const { return {"kv_heads", model_.kv_heads}; }
  tensor::Dim group() const { return {"group", model_.heads / model_.kv_heads}; }
  tensor::Dim head_dim() const { return {"head_dim", config::width_of_head(model_)}; }
  double deviation() const { return 0.02; }
  double residual_deviation() const;
  // The table [vocab embed] of that name.
  ValueId table(const std::string& name) {
    return weight(name, {vocab(), embed()}, {Init::Kind::normal, deviation()}, true);
  }

  // The losses of the layers built so far, to be taken by the family's trunk.
  std::vector<FurtherLoss>& losses() { return losses_; }

  // Whether rows have their own positions, and the corresponding inputs, int32 [batch].
  bool has_positions() const { return pass_.texts > 0; }
  ValueId row_text() { return input("text", {batch()}, DType::i32); }
  ValueId row_position() { return input("at", {batch()}, DType::i32); }

  bool generates() const { return pass_.purpose == Purpose::prefill || pass_.purpose == Purpose::decode; }

 private:
  // A matrix of a linear layer: NAME.weight, and the scales of its int8 codes if lora.frozen_dtype stores these.
  struct Stored {
    ValueId weight = graph::kNone;
    ValueId scale = graph::kNone;
  };
  // `columns`: the last dims of the shape, each index of which has a scale.
  Stored matrix(const std::string& name, const Shape& shape, const Shape& columns, Init init);
  ValueId adapted(ValueId x, const std::string& name, const Shape& shape, std::string_view out);
  ValueId cached(ValueId x, const std::string& name);
  // batch_norm with Pass::norm_group in training; `attributes`: as if all samples were one group.
  ValueId grouped_batch_norm(ValueId x, const std::string& name, ValueId gamma, ValueId beta,
                             tensor::Attributes attributes);
  // Fedus, Zoph, Shazeer 2022, "Switch transformers", section 2; docs/experts.md.
  ValueId experts(ValueId h, const std::string& name);
  ValueId router_bias(const std::string& name, const Shape& shape);
  // The filled slots of a layer's experts: counts [batch expert], and their expected share.
  struct Slots {
    ValueId counts = graph::kNone;
    double filled = 1.0;
  };
  // A linear layer per expert: x [batch expert slot in] times NAME.weight [expert in out], plus NAME.bias and the
  // adapters NAME.lora_a [expert in lora], NAME.lora_b [expert lora out] if there are any; only in filled slots.
  ValueId expert_linear(ValueId x, const std::string& name, const Shape& shape, const Slots& slots, double deviation);
  // A dense feed-forward layer of that inner width.
  ValueId dense(ValueId h, const std::string& name, int64_t width);
  // activation(gate) * up, or the clamped form of model.gate_clamp.
  ValueId gate_and_up(ValueId gate, ValueId up, const Slots& slots);
  // Multi-head latent attention, DeepSeek-V2 2024, section 2.1; h: [batch seq embed] -> as h.
  ValueId latent_attention(ValueId h, const std::string& name);
  // RMS norm over the dims of `over`, the last dims of x.
  ValueId rms_norm(ValueId x, const std::string& name, const Shape& over);
  ValueId norm_of_heads(ValueId x, const std::string& name, const Shape& heads);
  ValueId rotated(ValueId x);

  Graph& graph_;
  graph::StateTable& states_;
  const config::Model& model_;
  config::Norm norm_;
  const Pass& pass_;
  DType dtype_;
  std::vector<FurtherLoss> losses_;
};

// The output of a family; only the parts of its objective are set.
struct Trunk {
  ValueId x = graph::kNone;        // [batch seq embed]; the head predicts tokens from it
  ValueId head = graph::kNone;     // [vocab embed]
  ValueId bias = graph::kNone;     // of the head: [vocab], or none
  ValueId classes = graph::kNone;  // logits per sample or pixel: [batch spatial... class]
  ValueId numbers = graph::kNone;  // per sample or pixel: [batch spatial... target]
  std::vector<FurtherLoss> losses = {};
};

}  // namespace kintsugi::models
