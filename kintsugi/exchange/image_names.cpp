#include "kintsugi/exchange/image_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "kintsugi/models/image_family.h"

namespace kintsugi::exchange {
namespace {

using models::HuggingFace;
using models::ImageFamily;
using models::WeightRow;

// Replaces the beginning of a name; returns false if the name begins otherwise.
bool replace_begin(std::string& name, std::string_view begin, std::string_view other) {
  if (!name.starts_with(begin)) return false;
  name.replace(0, begin.size(), other);
  return true;
}

// "layer2.0.conv3.norm.gamma" is "resnet.encoder.stages.1.layers.0.layer.2.normalization.weight".
std::string transformers_resnet(std::string_view ours) {
  std::string name = ImageFamily::torch_name(ours);
  if (replace_begin(name, "fc.", "classifier.1.")) return name;
  const auto part_of = [](const std::string& layer) {
    const size_t norm = layer.find(".norm.");
    return norm == layer.npos ? ".convolution" + layer.substr(layer.find('.'))
                              : ".normalization" + layer.substr(norm + 5);
  };
  if (!name.starts_with("layer")) return "resnet.embedder.embedder" + part_of(name);
  const int64_t group = name[5] - '1';
  const size_t dot = name.find('.', 7);
  const std::string block = name.substr(7, dot - 7), layer = name.substr(dot + 1),
                    place = layer.starts_with("conv") ? fmt::format("layer.{}", layer[4] - '1') : "shortcut";
  return fmt::format("resnet.encoder.stages.{}.layers.{}.{}{}", group, block, place, part_of(layer));
}

// A program's names of the parts of a ConvNeXt. `*` in `down` is the group, 1 to 3; in `block` group and block.
struct NextNames {
  std::string_view stem, stem_norm, norm, head, down, block;
  std::array<std::pair<std::string_view, std::string_view>, 5> parts;  // of a block: {ours, theirs}
};

std::string with_number(std::string_view name, std::string_view number) {
  std::string filled(name);
  filled.replace(filled.find('*'), 1, number);
  return filled;
}

std::string next_name(std::string_view ours, const NextNames& names) {
  std::string name = ImageFamily::torch_name(ours);
  if (replace_begin(name, "stem.norm.", names.stem_norm) || replace_begin(name, "stem.", names.stem) ||
      replace_begin(name, "norm.", names.norm) || replace_begin(name, "head.", names.head))
    return name;
  if (replace_begin(name, "downsample", "")) {
    const std::string at = with_number(names.down, name.substr(0, 1));
    name = name.substr(2);
    const bool norm = replace_begin(name, "norm.", "");
    return at + (norm ? "0." : "1.") + name;
  }
  const size_t dot = name.find('.', 7);
  const std::string at = with_number(with_number(names.block, name.substr(5, 1)), name.substr(7, dot - 7));
  name = name.substr(dot + 1);
  for (const auto& [part, theirs] : names.parts)
    if (replace_begin(name, part, theirs)) break;
  return at + name;
}

std::string transformers_convnext(std::string_view ours) {
  return next_name(ours, {.stem = "convnext.embeddings.patch_embeddings.",
                          .stem_norm = "convnext.embeddings.layernorm.",
                          .norm = "convnext.layernorm.",
                          .head = "classifier.",
                          .down = "convnext.encoder.stages.*.downsampling_layer.",
                          .block = "convnext.encoder.stages.*.layers.*.",
                          .parts = {{{"norm.", "layernorm."}, {"layer_scale", "layer_scale_parameter"}}}});
}

std::string timm_convnext(std::string_view ours) {
  return next_name(
      ours,
      {.stem = "stem.0.",
       .stem_norm = "stem.1.",
       .norm = "head.norm.",
       .head = "head.fc.",
       .down = "stages.*.downsample.",
       .block = "stages.*.blocks.*.",
       .parts = {
           {{"dwconv.", "conv_dw."}, {"pwconv1.", "mlp.fc1."}, {"pwconv2.", "mlp.fc2."}, {"layer_scale", "gamma"}}}});
}

HuggingFace by_name(std::string_view prefix, std::string (*their_name)(std::string_view)) {
  HuggingFace names;
  names.prefix = prefix;
  names.computed = {"*.num_batches_tracked"};
  names.their_name = their_name;
  return names;
}

HuggingFace by_rows(std::vector<WeightRow> rows) {
  HuggingFace names;
  names.weights = std::move(rows);
  return names;
}

HuggingFace timm_vit() {
  return by_rows(
      {{"cls_token", ", , embed", {"embedding.class"}},
       {"pos_embed", ", position , embed", {"embedding.positions"}},
       {"patch_embed.proj.weight", "embed , channel , kernel_height , kernel_width", {"embedding.patches.weight"}},
       {"patch_embed.proj.bias", "embed", {"embedding.patches.bias"}},
       {"blocks.*.norm1.weight", "embed", {"layer*.attention_norm.gamma"}},
       {"blocks.*.norm1.bias", "embed", {"layer*.attention_norm.beta"}},
       {"blocks.*.attn.qkv.weight",
        "| kv_heads group head_dim , embed",
        {"layer*.attention.query.weight", "layer*.attention.key.weight", "layer*.attention.value.weight"}},
       {"blocks.*.attn.qkv.bias",
        "| kv_heads group head_dim",
        {"layer*.attention.query.bias", "layer*.attention.key.bias", "layer*.attention.value.bias"}},
       {"blocks.*.attn.proj.weight", "embed , kv_heads group head_dim", {"layer*.attention.output.weight"}},
       {"blocks.*.attn.proj.bias", "embed", {"layer*.attention.output.bias"}},
       {"blocks.*.norm2.weight", "embed", {"layer*.ffn_norm.gamma"}},
       {"blocks.*.norm2.bias", "embed", {"layer*.ffn_norm.beta"}},
       {"blocks.*.mlp.fc1.weight", "ffn , embed", {"layer*.ffn.up.weight"}},
       {"blocks.*.mlp.fc1.bias", "ffn", {"layer*.ffn.up.bias"}},
       {"blocks.*.mlp.fc2.weight", "embed , ffn", {"layer*.ffn.down.weight"}},
       {"blocks.*.mlp.fc2.bias", "embed", {"layer*.ffn.down.bias"}},
       {"norm.weight", "embed", {"final_norm.gamma"}},
       {"norm.bias", "embed", {"final_norm.beta"}},
       {"head.weight", "class , embed", {"head.classes.weight"}},
       {"head.bias", "class", {"head.classes.bias"}},
       {"head.weight", "target , embed", {"head.numbers.weight"}},
       {"head.bias", "target", {"head.numbers.bias"}}});
}

HuggingFace torchvision_vit() {
  HuggingFace names = by_rows(
      {{"class_token", ", , embed", {"embedding.class"}},
       {"encoder.pos_embedding", ", position , embed", {"embedding.positions"}},
       {"conv_proj.weight", "embed , channel , kernel_height , kernel_width", {"embedding.patches.weight"}},
       {"conv_proj.bias", "embed", {"embedding.patches.bias"}},
       {"encoder.layers.encoder_layer_*.ln_1.weight", "embed", {"layer*.attention_norm.gamma"}},
       {"encoder.layers.encoder_layer_*.ln_1.bias", "embed", {"layer*.attention_norm.beta"}},
       {"encoder.layers.encoder_layer_*.self_attention.in_proj_weight",
        "| kv_heads group head_dim , embed",
        {"layer*.attention.query.weight", "layer*.attention.key.weight", "layer*.attention.value.weight"}},
       {"encoder.layers.encoder_layer_*.self_attention.in_proj_bias",
        "| kv_heads group head_dim",
        {"layer*.attention.query.bias", "layer*.attention.key.bias", "layer*.attention.value.bias"}},
       {"encoder.layers.encoder_layer_*.self_attention.out_proj.weight",
        "embed , kv_heads group head_dim",
        {"layer*.attention.output.weight"}},
       {"encoder.layers.encoder_layer_*.self_attention.out_proj.bias", "embed", {"layer*.attention.output.bias"}},
       {"encoder.layers.encoder_layer_*.ln_2.weight", "embed", {"layer*.ffn_norm.gamma"}},
       {"encoder.layers.encoder_layer_*.ln_2.bias", "embed", {"layer*.ffn_norm.beta"}},
       {"encoder.layers.encoder_layer_*.mlp.0.weight", "ffn , embed", {"layer*.ffn.up.weight"}},
       {"encoder.layers.encoder_layer_*.mlp.0.bias", "ffn", {"layer*.ffn.up.bias"}},
       {"encoder.layers.encoder_layer_*.mlp.3.weight", "embed , ffn", {"layer*.ffn.down.weight"}},
       {"encoder.layers.encoder_layer_*.mlp.3.bias", "embed", {"layer*.ffn.down.bias"}},
       {"encoder.ln.weight", "embed", {"final_norm.gamma"}},
       {"encoder.ln.bias", "embed", {"final_norm.beta"}},
       {"heads.head.weight", "class , embed", {"head.classes.weight"}},
       {"heads.head.bias", "class", {"head.classes.bias"}},
       {"heads.head.weight", "target , embed", {"head.numbers.weight"}},
       {"heads.head.bias", "target", {"head.numbers.bias"}}});
  // Published files.
  names.older = {{"mlp.0.weight", "mlp.linear_1.weight"},
                 {"mlp.0.bias", "mlp.linear_1.bias"},
                 {"mlp.3.weight", "mlp.linear_2.weight"},
                 {"mlp.3.bias", "mlp.linear_2.bias"}};
  return names;
}

}  // namespace

std::span<const ImageNames> image_names() {
  static const std::vector<ImageNames> list = {
      {Program::transformers, "resnet", "resnet.embedder.embedder.convolution.weight",
       by_name("resnet.", transformers_resnet)},
      {Program::transformers, "convnext", "convnext.embeddings.patch_embeddings.weight",
       by_name("convnext.", transformers_convnext)},
      {Program::timm, "convnext", "stem.0.weight", by_name("", timm_convnext)},
      {Program::timm, "vit", "patch_embed.proj.weight", timm_vit()},
      {Program::torchvision, "vit", "conv_proj.weight", torchvision_vit()}};
  return list;
}

const ImageNames* image_names(std::string_view family, Program program) {
  for (const ImageNames& names : image_names())
    if (family.starts_with(names.family) && names.program == program) return &names;
  return nullptr;
}

}  // namespace kintsugi::exchange
