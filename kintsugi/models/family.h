// A family of models as a row: defaults of its switches, the builder of its graph, and its names of settings and
// weights in Hugging Face folders.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "kintsugi/config/catalog.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/models/builder.h"

namespace kintsugi::models {

// A key of config.json.
struct ConfigRow {
  enum class Use {
    is,                   // the value of the key `ours` of [model]
    inverse_square_root,  // the value of its inverse square root
    only,                 // must be `absent`: no other value is supported
    ignored,              // does not affect what is computed here
  };
  std::string_view theirs;
  Use use = Use::is;
  std::string_view ours = {};    // "embed"
  std::string_view absent = {};  // JSON of the default for an absent key. null: derived
  // Where the vocabularies differ, "theirs:ours theirs:ours", JSON without quotes; writes the first of each.
  std::string_view words = {};
  std::string_view other = {};  // an alternative name of the key, also read
  // What a folder has for 0 of an integer key: nothing, since 0 means "derived"; the number 0; or null.
  enum class Zero : uint8_t { derived, number, null } zero = Zero::derived;
};

constexpr ConfigRow is(std::string_view theirs, std::string_view ours, std::string_view absent,
                       std::string_view other = "") {
  return {theirs, ConfigRow::Use::is, ours, absent, "", other};
}
constexpr ConfigRow only(std::string_view theirs, std::string_view value) {
  return {theirs, ConfigRow::Use::only, "", value};
}
constexpr ConfigRow ignored(std::string_view theirs) {
  return {theirs, ConfigRow::Use::ignored};
}
constexpr ConfigRow activation_is(std::string_view theirs, std::string_view absent) {
  return {theirs, ConfigRow::Use::is, "activation", absent,
          "gelu_new:gelu_tanh gelu_pytorch_tanh:gelu_tanh gelu_fast:gelu_tanh gelu:gelu gelu_python:gelu relu:relu "
          "relu2:relu2 silu:silu swish:silu"};
}

// A tensor of the folder and the weights it contains. `*` in a name is the layer. Where the folder has one tensor per
// index of a dim of the weights, which is their first, `each` names that dim, and the second `*` of `theirs` is the
// index; `dims` omits it.
//
// `dims` are the tensor's dims in order, row-major, in our names, separated by `,` since one of theirs may be several
// of ours. Where a tensor contains several weights, `|` marks the dim of concatenation: what follows applies to each
// weight in turn, and a weight uses the dims that it has.
//
//   "embed , | kv_heads group head_dim" of query, key, value: [embed, 3 embed], GPT-2's c_attn
//   "kv_heads group | head_dim , embed": [heads x 3 x head_dim, embed], GPT-NeoX's query_key_value
struct WeightRow {
  std::string_view theirs;
  std::string_view dims;
  std::vector<std::string_view> ours;
  std::string_view each = {};
};

// Rotary positions: rope_parameters, or rope_theta and rope_scaling.
struct RopeKeys {
  double theta = 10000.0;  // default
  std::string_view theta_key = "rope_theta";
  std::string_view partial_key = {};       // rotated fraction of head_dim; empty: the family rotates whole heads
  double partial = 1.0;                    // default
  std::string_view window_theta_key = {};  // of layers with a window
  double window_theta = 0.0;               // default
  bool scaled_windows = true;              // scaling also applies to layers with a window
  // The default of original_max_position_embeddings, for families that store it next to the object; 0: other families.
  int64_t original_outside = 0;
  // Kinds of scaling that transformers accepts for the family, "linear yarn"; empty: all.
  std::string_view scalings = {};
  bool scales_scores = false;  // yarn's mscale_all_dim also scales attention scores
  bool required = false;       // the object must be present: transformers' default for its absence is not supported
};

// Windows: sliding_window and layer_types.
struct WindowKeys {
  std::string_view absent = "null";  // default of sliding_window
  bool switched = false;             // has use_sliding_window, default false
  // Without layer_types: layers from max_window_layers on have the window, or those without rotary positions.
  bool after_max_window_layers = false;
  bool without_rotary = false;
  int64_t full_every = 0;  // without layer_types, every n-th layer has no window; 0: all have it
};

struct HuggingFace {
  std::vector<std::string_view> model_types;  // of config.json; writes the first
  // Architectures of the model with its head, by purpose; the default is the first.
  struct Architecture {
    std::string_view name;
    config::Objective objective = config::Objective::next;
  };
  std::vector<Architecture> architectures;
  std::string_view prefix;  // prefix of weight names; folders may omit it
  std::vector<ConfigRow> config;
  std::vector<WeightRow> weights;               // skips those that a model does not have
  std::vector<std::string_view> computed = {};  // tensors that are not weights: `*` matches any text
  // Former suffixes of names: {current, former}.
  std::vector<std::pair<std::string_view, std::string_view>> older = {};
  std::optional<RopeKeys> rope = {};
  std::optional<WindowKeys> windows = {};
  std::string_view no_rope_layers = {};  // the key of a list of 0 (no rotary positions) and 1
  // transformers derives sizes of the family's weights from embed / heads: head_dim must be that.
  bool derived_head_dim = false;
  // Instead of `weights`: the external name of a weight or a running statistic. Tensors have PyTorch's order of dims:
  // our last dim first, then other non-spatial dims, then spatial ones.
  std::string (*their_name)(std::string_view ours) = nullptr;
};

struct Family {
  config::Family config;
  Trunk (*build)(Builder&);
  HuggingFace hugging_face;
};

// One file each, in families/.
Family gpt();
Family llama();
Family mistral();
Family qwen2();
Family qwen3();
Family olmo2();
Family olmo3();
Family smollm3();
Family phi3();
Family gemma3();
Family gptneox();
Family gptj();
Family bert();
Family mixtral();
Family qwen3_moe();
Family olmoe();
Family gpt_oss();
Family deepseek_v3();
Family mlp();
Family lenet();
Family resnet18();
Family resnet34();
Family resnet50();
Family resnet101();
Family resnet152();
Family alexnet();
Family vgg11();
Family vgg13();
Family vgg16();
Family vgg19();
Family vgg11_bn();
Family vgg13_bn();
Family vgg16_bn();
Family vgg19_bn();
Family convnext_tiny();
Family convnext_small();
Family convnext_base();
Family unet();
Family cosmoflow();
Family vit();

// Shared by several families.
config::Model llama_defaults();
// Defaults for the family's absent keys.
struct LlamaSizes {
  std::string_view vocab, embed, ffn, layers, heads, kv_heads, context, epsilon = "1e-06", tied = "false";
};
std::vector<ConfigRow> llama_config(const LlamaSizes& sizes);
std::vector<WeightRow> llama_weights();

}  // namespace kintsugi::models
