// Names, shapes and places of weights in folders of other programs.
#include "kintsugi/exchange/image_names.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kintsugi/exchange/weight_map.h"
#include "kintsugi/models/models.h"

namespace kintsugi::exchange::image_names_test {
namespace {

using Sizes = std::vector<int64_t>;

config::Model model_of(std::string_view family) {
  config::Model m = models::defaults_of(family);
  m.layers = models::family(family).config.layers;
  m.outputs = 10;
  m.image_channels = 3;
  m.image_height = m.image_width = 224;
  return m;
}

std::map<std::string, MappedTensor> map_of(const config::Model& m, Program program) {
  std::map<std::string, MappedTensor> map;
  for (const MappedTensor& t : weight_map(models::family(m.family), m, image_names(m.family, program)->folder))
    EXPECT_TRUE(map.emplace(t.name, t).second) << t.name;
  return map;
}

config::Model small_vit() {
  config::Model m = models::defaults_of("vit");
  m.layers = 2;
  m.embed = 4;
  m.heads = m.kv_heads = 2;
  m.head_dim = 2;
  m.ffn = 5;
  m.patch = 8;
  m.outputs = 3;
  m.image_channels = 3;
  m.image_height = m.image_width = 16;
  return m;
}

void expect_attention(const MappedTensor& tensor) {
  EXPECT_EQ(tensor.shape, (Sizes{12, 4}));
  ASSERT_EQ(tensor.weights.size(), 3u);
  const char* parts[] = {"query", "key", "value"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tensor.weights[i].name, std::string("layer1.attention.") + parts[i] + ".weight");
    EXPECT_EQ(tensor.weights[i].first, static_cast<int64_t>(16 * i));
  }
}

}  // namespace

TEST(ImageNames, ResNetOfTransformers) {
  const auto map = map_of(model_of("resnet50"), Program::transformers);
  EXPECT_EQ(map.at("resnet.embedder.embedder.convolution.weight").shape, (Sizes{64, 3, 7, 7}));
  EXPECT_EQ(map.at("resnet.embedder.embedder.normalization.running_mean").weights[0].name, "conv1.norm.mean");
  const MappedTensor& third = map.at("resnet.encoder.stages.2.layers.5.layer.2.convolution.weight");
  EXPECT_EQ(third.weights[0].name, "layer3.5.conv3.weight");
  EXPECT_EQ(third.shape, (Sizes{1024, 256, 1, 1}));
  EXPECT_EQ(map.at("resnet.encoder.stages.1.layers.0.shortcut.convolution.weight").weights[0].name,
            "layer2.0.downsample.weight");
  EXPECT_EQ(map.at("resnet.encoder.stages.1.layers.0.shortcut.normalization.running_var").shape, (Sizes{512}));
  EXPECT_EQ(map.at("resnet.encoder.stages.0.layers.1.layer.0.normalization.bias").weights[0].name,
            "layer1.1.conv1.norm.beta");
  EXPECT_EQ(map.at("classifier.1.weight").shape, (Sizes{10, 2048}));
  EXPECT_EQ(map.size(), 5u * 53 + 2);
}

TEST(ImageNames, ConvNextOfTransformersAndTimm) {
  const config::Model m = model_of("convnext_tiny");
  const auto hugging = map_of(m, Program::transformers), timm = map_of(m, Program::timm);
  for (const auto& [theirs, other, ours, shape] : std::vector<std::tuple<const char*, const char*, const char*, Sizes>>{
           {"convnext.embeddings.patch_embeddings.weight", "stem.0.weight", "stem.weight", {96, 3, 4, 4}},
           {"convnext.embeddings.layernorm.bias", "stem.1.bias", "stem.norm.beta", {96}},
           {"convnext.encoder.stages.2.layers.7.dwconv.weight",
            "stages.2.blocks.7.conv_dw.weight",
            "stage2.7.dwconv.weight",
            {384, 1, 7, 7}},
           {"convnext.encoder.stages.0.layers.1.layernorm.weight",
            "stages.0.blocks.1.norm.weight",
            "stage0.1.norm.gamma",
            {96}},
           {"convnext.encoder.stages.1.layers.0.pwconv1.weight",
            "stages.1.blocks.0.mlp.fc1.weight",
            "stage1.0.pwconv1.weight",
            {768, 192}},
           {"convnext.encoder.stages.1.layers.0.pwconv2.bias",
            "stages.1.blocks.0.mlp.fc2.bias",
            "stage1.0.pwconv2.bias",
            {192}},
           {"convnext.encoder.stages.3.layers.2.layer_scale_parameter",
            "stages.3.blocks.2.gamma",
            "stage3.2.layer_scale",
            {768}},
           {"convnext.encoder.stages.3.downsampling_layer.0.weight",
            "stages.3.downsample.0.weight",
            "downsample3.norm.gamma",
            {384}},
           {"convnext.encoder.stages.3.downsampling_layer.1.weight",
            "stages.3.downsample.1.weight",
            "downsample3.weight",
            {768, 384, 2, 2}},
           {"convnext.layernorm.weight", "head.norm.weight", "norm.gamma", {768}},
           {"classifier.weight", "head.fc.weight", "head.weight", {10, 768}}}) {
    for (const MappedTensor& tensor : {hugging.at(theirs), timm.at(other)}) {
      EXPECT_EQ(tensor.weights[0].name, ours);
      EXPECT_EQ(tensor.shape, shape) << ours;
    }
  }
  EXPECT_EQ(hugging.size(), 182u);
  EXPECT_EQ(timm.size(), 182u);
}

TEST(ImageNames, VitsOfTimmAndTorchvision) {
  const config::Model m = small_vit();
  const auto timm = map_of(m, Program::timm), torch = map_of(m, Program::torchvision);
  expect_attention(timm.at("blocks.1.attn.qkv.weight"));
  expect_attention(torch.at("encoder.layers.encoder_layer_1.self_attention.in_proj_weight"));
  EXPECT_EQ(timm.at("cls_token").shape, (Sizes{1, 1, 4}));
  EXPECT_EQ(timm.at("pos_embed").shape, (Sizes{1, 5, 4}));
  EXPECT_EQ(timm.at("patch_embed.proj.weight").shape, (Sizes{4, 3, 8, 8}));
  EXPECT_EQ(timm.at("blocks.0.mlp.fc2.weight").weights[0].name, "layer0.ffn.down.weight");
  EXPECT_EQ(timm.at("norm.bias").weights[0].name, "final_norm.beta");
  EXPECT_EQ(timm.at("head.weight").shape, (Sizes{3, 4}));
  EXPECT_EQ(torch.at("class_token").shape, (Sizes{1, 1, 4}));
  EXPECT_EQ(torch.at("encoder.pos_embedding").shape, (Sizes{1, 5, 4}));
  EXPECT_EQ(torch.at("encoder.layers.encoder_layer_0.mlp.3.weight").shape, (Sizes{4, 5}));
  EXPECT_EQ(torch.at("encoder.layers.encoder_layer_0.ln_2.weight").weights[0].name, "layer0.ffn_norm.gamma");
  EXPECT_EQ(torch.at("heads.head.bias").shape, (Sizes{3}));
  EXPECT_EQ(timm.size(), torch.size());
}

}  // namespace kintsugi::exchange::image_names_test
