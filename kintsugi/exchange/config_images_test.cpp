// config.json of image models as other programs write it.
#include "kintsugi/exchange/config_images.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/exchange/config_json.h"

namespace kintsugi::exchange::config_images_test {
namespace {

using Numbers = std::vector<double>;

std::string error_in(const std::string& text) {
  try {
    read_config("config.json", text);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

config::Model model_of(const std::string& text) {
  const FolderConfig read = read_config("config.json", text);
  EXPECT_EQ(read.notes, std::vector<std::string>());
  return read.model;
}

std::string resnet(const std::string& depths, const std::string& sizes, const std::string& more = "") {
  return R"({"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "depths": )" + depths +
         ", \"hidden_sizes\": " + sizes + R"(, "hidden_act": "relu", "num_channels": 3, "embedding_size": 64,
    "downsample_in_first_stage": false, "stage_names": ["stem", "stage1"], "out_features": ["stage4"],
    "torch_dtype": "float32", "id2label": {"0": "cat", "1": "dog", "2": "cow"})" +
         more + "}";
}

}  // namespace

TEST(ConfigImages, ResNetsOfTransformers) {
  const std::string plain = "[64, 128, 256, 512]", wide = "[256, 512, 1024, 2048]";
  for (const auto& [family, type, depths] :
       std::vector<std::tuple<std::string, std::string, std::string>>{{"resnet18", "basic", "[2, 2, 2, 2]"},
                                                                      {"resnet34", "basic", "[3, 4, 6, 3]"},
                                                                      {"resnet50", "bottleneck", "[3, 4, 6, 3]"},
                                                                      {"resnet101", "bottleneck", "[3, 4, 23, 3]"},
                                                                      {"resnet152", "bottleneck", "[3, 8, 36, 3]"}}) {
    const config::Model m =
        model_of(resnet(depths, type == "basic" ? plain : wide, R"(, "layer_type": ")" + type + "\""));
    EXPECT_EQ(m.family, family);
    EXPECT_EQ(m.outputs, 3);
    EXPECT_EQ(m.objective, "classes");
    EXPECT_EQ(m.stem, "large");
    EXPECT_EQ(m.image_channels, 3);
    EXPECT_EQ(m.image_height, 224);
    EXPECT_EQ(m.image_width, 224);
  }
  EXPECT_TRUE(read_config("config.json", R"({"model_type": "resnet"})").any_image_size);
  const config::Model other = model_of(R"({"model_type": "resnet", "image_size": [96, 64], "num_labels": 1})");
  EXPECT_EQ(other.family, "resnet50");
  EXPECT_EQ(other.image_height, 96);
  EXPECT_EQ(other.image_width, 64);
  EXPECT_EQ(other.objective, "numbers");
  EXPECT_EQ(error_in(resnet("[3, 4, 6, 3]", wide, R"(, "downsample_in_bottleneck": true)")),
            "[model] \"config.json\":3: \"downsample_in_bottleneck\" is true: the stride of a bottleneck is in its "
            "first convolution, as in ResNet v1; here there is only false");
  EXPECT_EQ(error_in(resnet("[3, 4, 6, 2]", wide)),
            "[model] \"config.json\":1: \"layer_type\" \"bottleneck\", \"depths\" [3, 4, 6, 2] and \"hidden_sizes\" "
            "[256, 512, 1024, 2048] are those of no family; there are resnet18 (basic, depths [2, 2, 2, 2], sizes from "
            "64), resnet34 (basic, depths [3, 4, 6, 3], sizes from 64), resnet50 (bottleneck, depths [3, 4, 6, 3], "
            "sizes from 256), resnet101 (bottleneck, depths [3, 4, 23, 3], sizes from 256), resnet152 (bottleneck, "
            "depths [3, 8, 36, 3], sizes from 256)");
  EXPECT_EQ(read_config("config.json", R"({"model_type": "resnet", "groups": 32})").notes,
            std::vector<std::string>{"config.json: \"groups\" is not used by this family and ignored"});
}

TEST(ConfigImages, ConvNextsOfTransformers) {
  const config::Model m = model_of(
      R"({"model_type": "convnext", "depths": [3, 3, 27, 3], "hidden_sizes": [128, 256, 512, 1024], "num_stages": 4,
    "hidden_act": "gelu", "layer_norm_eps": 1e-12, "layer_scale_init_value": 1e-6, "drop_path_rate": 0.25,
    "patch_size": 4, "initializer_range": 0.02, "image_size": 384, "num_labels": 7})");
  EXPECT_EQ(m.family, "convnext_base");
  EXPECT_EQ(m.final_norm_epsilon, 1e-12);
  EXPECT_EQ(m.drop_path, 0.25);
  EXPECT_EQ(m.image_height, 384);
  EXPECT_EQ(m.outputs, 7);
  EXPECT_EQ(model_of(R"({"model_type": "convnext"})").family, "convnext_tiny");
  EXPECT_EQ(model_of(R"({"model_type": "convnext"})").final_norm_epsilon, 1e-12);
  EXPECT_EQ(model_of(R"({"model_type": "convnext_tiny"})").final_norm_epsilon, 1e-6);
  EXPECT_EQ(error_in(R"({"model_type": "convnext", "layer_scale_init_value": 0})"),
            "[model] \"config.json\":1: \"layer_scale_init_value\" is 0, a model without layer scale; here there are "
            "only those with it");
  EXPECT_EQ(error_in(R"({"model_type": "convnext", "hidden_act": "relu"})"),
            "[model] \"config.json\":1: \"hidden_act\" is \"relu\"; here there is only \"gelu\"");
}

TEST(ConfigImages, NetworksOfTimm) {
  config::Model m = model_of(
      R"({"architecture": "resnet50", "num_classes": 1000, "num_features": 2048, "pretrained_cfg": {
    "tag": "a1_in1k", "input_size": [3, 224, 160], "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225],
    "num_classes": 1000, "pool_size": [7, 7], "first_conv": "conv1", "classifier": "fc"}})");
  EXPECT_EQ(m.family, "resnet50");
  EXPECT_EQ(m.stem, "large");
  EXPECT_EQ(m.outputs, 1000);
  EXPECT_EQ(m.image_height, 224);
  EXPECT_EQ(m.image_width, 160);
  EXPECT_EQ(m.image_mean, (Numbers{0.485, 0.456, 0.406}));
  EXPECT_EQ(m.image_deviation, (Numbers{0.229, 0.224, 0.225}));
  m = model_of(
      R"({"architecture": "convnext_tiny.fb_in1k", "num_classes": 5, "global_pool": "avg", "pretrained_cfg": {
    "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}})");
  EXPECT_EQ(m.family, "convnext_tiny");
  EXPECT_EQ(m.outputs, 5);
  EXPECT_EQ(m.final_norm_epsilon, 1e-6);
  EXPECT_TRUE(m.image_mean.empty());  // the default
  m = model_of(R"({"architecture": "vit_small_patch32_384", "num_classes": 9, "global_pool": "token"})");
  EXPECT_EQ(m.family, "vit");
  EXPECT_EQ((std::vector{m.layers, m.embed, m.heads, m.ffn, m.patch, m.image_height, m.outputs}),
            (std::vector<int64_t>{12, 384, 6, 1536, 32, 384, 9}));
  EXPECT_EQ(m.norm_epsilon, 1e-6);
  EXPECT_TRUE(m.class_token);
  m = model_of(R"({"architecture": "deit_tiny_patch16_224", "num_classes": 7, "model_args": {"img_size": [64, 32],
    "num_classes": 7, "in_chans": 4, "global_pool": "token"}, "pretrained_cfg": {"input_size": [3, 224, 224]}})");
  EXPECT_EQ((std::vector{m.image_channels, m.image_height, m.image_width, m.outputs}),
            (std::vector<int64_t>{4, 64, 32, 7}));
  EXPECT_EQ(model_of(R"({"architecture": "vit_base_patch16_224", "model_args": {"img_size": 64}})").image_width, 64);
  m = model_of(R"({"architecture": "resnet18", "num_classes": 3, "input_size": [1, 64, 64], "mean": [0.1], "std": [0.3],
    "crop_pct": 0.9})");
  EXPECT_EQ(m.image_channels, 1);
  EXPECT_EQ(m.image_mean, Numbers{0.1});
  EXPECT_EQ(error_in(R"({"architecture": "resnext50_32x4d"})"),
            "[model] \"config.json\":1: the architecture \"resnext50_32x4d\" of timm is not known here; there are "
            "resnet18, resnet34, resnet50, resnet101, resnet152, convnext_tiny, convnext_small, convnext_base, and "
            "(vit|deit)_SIZE_patchP_PIXELS");
  for (const char* name :
       {"vit_base_patch16_clip_224", "vit_base_patch14_dinov2", "vit_giant_patch14_224", "resnet50d"})
    EXPECT_NE(error_in(std::string(R"({"architecture": ")") + name + "\"}").find("is not known here"),
              std::string::npos)
        << name;
  EXPECT_EQ(error_in(R"({"architecture": "vit_base_patch16_224", "global_pool": "avg"})"),
            "[model] \"config.json\":1: \"global_pool\" is \"avg\"; here there is only \"token\"");
  EXPECT_EQ(error_in(R"({"architecture": "resnet50", "model_args": {"output_stride": 8}})"),
            "[model] \"config.json\":1: \"model_args\" has \"output_stride\" = 8, which changes the architecture in a "
            "way not known here");
}

TEST(ConfigImages, VitsOfTorchvision) {
  const config::Model m = model_of(
      R"({"model_type": "vit_l_32", "num_channels": 3, "image_height": 64, "image_width": 96, "num_labels": 10,
    "image_mean": [0.485, 0.456, 0.406]})");
  EXPECT_EQ(m.family, "vit");
  EXPECT_EQ((std::vector{m.layers, m.embed, m.heads, m.ffn, m.patch, m.image_height, m.image_width, m.outputs}),
            (std::vector<int64_t>{24, 1024, 16, 4096, 32, 64, 96, 10}));
  EXPECT_EQ(m.norm_epsilon, 1e-6);
  EXPECT_EQ(m.image_mean, (Numbers{0.485, 0.456, 0.406}));
  EXPECT_EQ(model_of(R"({"model_type": "vit_b_16"})").outputs, 1000);
}

// What transformers' classes compute is written as they have it.
TEST(ConfigImages, WrittenForTransformers) {
  for (const char* text :
       {R"({"model_type": "resnet", "layer_type": "basic", "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512],
            "image_size": 96, "image_mean": [0.1, 0.2, 0.3]})",
        R"({"model_type": "convnext", "depths": [3, 3, 27, 3], "drop_path_rate": 0.1, "image_size": [32, 64]})"}) {
    const config::Model m = read_config("config.json", text).model;
    const std::string written = write_config(m, tensor::DType::f32, {}, true);
    EXPECT_EQ(read_config("config.json", written).model, m) << written;
    EXPECT_NE(written.find("ForImageClassification"), std::string::npos);
  }
  config::Model m =
      read_config("config.json", R"({"model_type": "resnet18", "image_height": 32, "image_width": 32})").model;
  const auto error = [&] {
    try {
      write_config(m, tensor::DType::f32, {}, true);
    } catch (const base::UserError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(error(),
            "[model] config.json of the family resnet18 cannot say model.stem = \"auto\"; it would be read as "
            "\"large\"");
  m = read_config("config.json", R"({"model_type": "lenet"})").model;
  EXPECT_EQ(error(), "[model] transformers has no class for the family lenet; leave out --names");
}

}  // namespace kintsugi::exchange::config_images_test
