// Folders of image models with the names of other programs, and folders that do not fit their config.json.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/safetensors.h"
#include "kintsugi/exchange/export_folder.h"
#include "kintsugi/exchange/folder_reader.h"
#include "kintsugi/exchange/image_names.h"
#include "kintsugi/exchange/import_folder.h"
#include "kintsugi/exchange/small_models_test.h"
#include "kintsugi/exchange/strides.h"

namespace kintsugi::exchange::image_folders_test {
namespace {

using checkpoint::error_of;
using checkpoint::ScratchFolder;
using tensor::DType;

config::Resolved run_of(const std::string& model) {
  config::Given given = config::read_text("[model]\n" + model, "run.toml", models::catalog());
  return {config::fill_derived(std::move(given), 1), {}};
}

config::Resolved small_vit() {
  return run_of(
      "family = \"vit\"\nlayers = 2\nembed = 16\nheads = 2\nimage_channels = 3\nimage_height = 16\nimage_width = "
      "16\npatch = 4\noutputs = 5\n");
}

config::Resolved small_resnet(const std::string& more = "") {
  return run_of("family = \"resnet18\"\nimage_channels = 3\nimage_height = 32\nimage_width = 32\noutputs = 5\n" + more);
}

std::vector<float> weight_of(const checkpoint::TensorSource& source, const std::string& name) {
  std::vector<float> x(static_cast<size_t>(source.type(name).shape.elements()));
  source.read({.name = name, .box = {}, .flat = {}}, DType::f32, std::as_writable_bytes(std::span(x)));
  return x;
}

// Tensors of fp32 by name.
struct Tensors {
  std::map<std::string, std::pair<std::vector<int64_t>, std::vector<float>>> all;

  void write(const std::filesystem::path& folder) const {
    std::vector<checkpoint::SafetensorsTensor> list;
    for (const auto& [name, tensor] : all) list.push_back({name, DType::f32, tensor.first});
    checkpoint::SafetensorsWriter writer(folder / "model.safetensors", list);
    for (const auto& tensor : list) writer.write(std::as_bytes(std::span(all.at(tensor.name).second)));
    writer.close();
  }
};

// The weights of a model with the names of a folder.
Tensors named(const checkpoint::TensorSource& source, const config::Model& model, const models::HuggingFace& names) {
  Tensors tensors;
  for (const MappedTensor& tensor : weight_map(models::family(model.family), model, names)) {
    auto& [shape, values] = tensors.all[tensor.name];
    shape = tensor.shape;
    values.resize(static_cast<size_t>(tensor.elements()));
    for (const MappedWeight& w : tensor.weights) {
      const std::vector<float> ours = weight_of(source, w.name);
      const checkpoint::Box whole = checkpoint::whole_box(w.shape);
      const Grid theirs = {w.first, whole.size, w.stride};
      std::vector<int64_t> index(whole.size.size(), 0);
      for (int64_t i = 0; i < whole.elements(); ++i) {
        int64_t rest = i;
        for (size_t d = index.size(); d-- > 0; rest /= whole.size[d]) index[d] = rest % whole.size[d];
        values[static_cast<size_t>(theirs.at(index))] = ours[static_cast<size_t>(i)];
      }
    }
  }
  return tensors;
}

std::string error_in(const ScratchFolder& scratch) {
  const std::string text = error_of([&] { const FolderReader reader(scratch / "folder"); }, scratch.path());
  EXPECT_TRUE(text.empty() || checkpoint::is_one_line(text));
  return text;
}

void replace_in_config(const ScratchFolder& scratch, const std::string& from, const std::string& to) {
  std::string text = base::read_file(scratch / "folder" / "config.json");
  const size_t at = text.find(from);
  ASSERT_NE(at, text.npos) << text;
  text.replace(at, from.size(), to);
  checkpoint::put(scratch / "folder" / "config.json", text);
}

}  // namespace

TEST(ImageFolders, ResNetOfTransformersAndBack) {
  ScratchFolder scratch;
  const config::Resolved run =
      small_resnet("stem = \"large\"\nimage_mean = [0.485, 0.456, 0.406]\nimage_deviation = [0.229, 0.224, 0.225]\n");
  const auto saved = save_random(run, scratch / "run");
  export_folder({.model = saved, .folder = scratch / "folder", .dtype = {}, .names = Program::transformers});
  const FolderReader reader(scratch / "folder");
  EXPECT_EQ(reader.config().model, run.settings.model);
  EXPECT_TRUE(reader.files().has("resnet.encoder.stages.3.layers.1.layer.1.convolution.weight"));
  const checkpoint::CheckpointReader before(saved),
      after(import_folder({.folder = scratch / "folder", .run = scratch / "again"}).checkpoint);
  ASSERT_EQ(before.index().tensors.size(), after.index().tensors.size());
  for (const auto& [name, tensor] : before.index().tensors) {
    const std::vector<float> a = weight_of(before, name), b = weight_of(after, name);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << name;
  }
  // The size of the images is that of preprocessor_config.json.
  replace_in_config(scratch, "\"image_size\": 32", "\"image_size\": 48");
  EXPECT_EQ(FolderReader(scratch / "folder").config().model.image_height, 32);
  std::filesystem::remove(scratch / "folder" / "preprocessor_config.json");
  EXPECT_EQ(FolderReader(scratch / "folder").config().model.image_height, 48);
}

TEST(ImageFolders, VitWithAnyNames) {
  ScratchFolder scratch;
  const config::Resolved run = small_vit();
  const auto saved = save_random(run, scratch / "run");
  export_folder({.model = saved, .folder = scratch / "folder", .dtype = {}});
  EXPECT_EQ(error_of([&] {
              export_folder({.model = saved, .folder = scratch / "torch", .dtype = {}, .names = Program::torchvision});
            }),
            "[export] --names torchvision: folders of the family vit have transformers' names");
  const checkpoint::CheckpointReader ours(saved);
  for (const Program program : {Program::timm, Program::torchvision}) {
    Tensors tensors = named(ours, run.settings.model, image_names("vit", program)->folder);
    if (program == Program::torchvision)  // as in published files
      for (const char* part : {"weight", "bias"}) {
        auto moved = tensors.all.extract(fmt::format("encoder.layers.encoder_layer_1.mlp.0.{}", part));
        moved.key() = fmt::format("encoder.layers.encoder_layer_1.mlp.linear_1.{}", part);
        tensors.all.insert(std::move(moved));
      }
    tensors.write(scratch / "folder");
    const FolderReader reader(scratch / "folder");
    EXPECT_EQ(reader.names().size(), ours.index().tensors.size());
    for (const std::string& name : reader.names()) EXPECT_EQ(weight_of(reader, name), weight_of(ours, name)) << name;
  }
  Tensors tensors = named(ours, run.settings.model, image_names("vit", Program::timm)->folder);
  tensors.all["fc_norm.weight"] = {{16}, std::vector<float>(16)};
  tensors.write(scratch / "folder");
  EXPECT_EQ(error_in(scratch),
            "[model] \"folder\": tensor \"fc_norm.weight\" is not a weight of the model that config.json describes");
}

// A published backbone: it initializes a training with a new head, and is good for nothing else.
TEST(ImageFolders, WithoutAHead) {
  ScratchFolder scratch;
  const config::Resolved run = small_vit();
  const auto saved = save_random(run, scratch / "run");
  export_folder({.model = saved, .folder = scratch / "folder", .dtype = {}});
  const checkpoint::CheckpointReader ours(saved);
  Tensors tensors = named(ours, run.settings.model, models::family("vit").hugging_face);
  tensors.all.erase("classifier.weight");
  tensors.all.erase("classifier.bias");
  tensors.write(scratch / "folder");
  const FolderReader reader(scratch / "folder");
  EXPECT_EQ(weight_of(reader, "layer1.ffn.up.weight"), weight_of(ours, "layer1.ffn.up.weight"));
  const std::string error =
      "[model] \"folder\" has no head: train one with train.init_from = \"folder\" and train.init_new = "
      "[\"head.classes\"]";
  EXPECT_EQ(error_of([&] { reader.type("head.classes.weight"); }, scratch.path()), error);
  EXPECT_EQ(error_of([&] { import_folder({.folder = scratch / "folder", .run = scratch / "new"}); }, scratch.path()),
            error);
  EXPECT_FALSE(std::filesystem::exists(scratch / "new"));
}

TEST(ImageFolders, WhatDoesNotFitIsNamed) {
  ScratchFolder scratch;
  const config::Resolved run = small_resnet();
  const auto saved = save_random(run, scratch / "run");
  export_folder({.model = saved, .folder = scratch / "folder", .dtype = {}});
  const checkpoint::CheckpointReader ours(saved);
  const Tensors tensors = named(ours, run.settings.model, models::family("resnet18").hugging_face);
  replace_in_config(scratch, "\"num_labels\": 5", "\"num_labels\": 7");
  EXPECT_EQ(error_in(scratch),
            "[model] \"folder\": tensor \"fc.weight\" is a head with 5 outputs, config.json says 7; correct "
            "config.json. A run with another number of outputs begins a new head with train.init_new = [\"fc\"]");
  Tensors bias = tensors;
  bias.all["fc.bias"] = {{7}, std::vector<float>(7)};
  bias.write(scratch / "folder");
  replace_in_config(scratch, "\"num_labels\": 7", "\"num_labels\": 5");
  EXPECT_TRUE(error_in(scratch).starts_with(
      "[model] \"folder\": tensor \"fc.bias\" is a head with 7 outputs, config.json says 5; correct config.json."));
  tensors.write(scratch / "folder");
  // Another architecture, and another number of classes.
  replace_in_config(scratch, "\"num_labels\": 5", "\"num_labels\": 7");
  replace_in_config(scratch, "\"model_type\": \"resnet18\"", "\"model_type\": \"resnet50\"");
  EXPECT_EQ(error_in(scratch),
            "[model] \"folder\": config.json describes resnet50, and the tensors are those of resnet18: its "
            "\"model_type\" is \"resnet18\"");
  checkpoint::put(scratch / "folder" / "config.json",
                  R"({"architecture": "resnet34", "num_classes": 5, "pretrained_cfg": {"input_size": [3, 32, 32]}})");
  EXPECT_EQ(error_in(scratch),
            "[model] \"folder\": config.json describes resnet34, and the tensors are those of resnet18: its "
            "\"architecture\" is \"resnet18\"");
  Tensors other = tensors;
  other.all["layer4.1.bn2.bias"] = {{7}, std::vector<float>(7)};
  other.write(scratch / "folder");
  EXPECT_EQ(
      error_in(scratch),
      "[model] \"folder\": config.json describes resnet34, and the tensors are those of no network known here; the "
      "nearest is resnet18, with 101 of 102 tensors");
  checkpoint::put(scratch / "folder" / "config.json",
                  R"({"model_type": "resnet18", "num_labels": 5, "image_height": 32, "image_width": 32})");
  EXPECT_EQ(error_in(scratch),
            "[model] \"folder\": tensor \"layer4.1.bn2.bias\" has the shape [7], config.json needs [512]; 101 of 102 "
            "tensors fit");
  Tensors some = tensors;
  std::erase_if(some.all, [](const auto& t) { return t.first.find("running") != t.first.npos; });
  some.write(scratch / "folder");
  checkpoint::put(scratch / "folder" / "config.json",
                  R"({"model_type": "resnet18", "num_labels": 5, "image_height": 32, "image_width": 32})");
  EXPECT_EQ(error_in(scratch),
            "[model] \"folder\" has no tensor \"bn1.running_mean\", the running statistics of a batch norm; save "
            "model.state_dict(), which has them, rather than parameters");
}

TEST(ImageFolders, FilesOfWeightsAreNoFolders) {
  ScratchFolder scratch;
  checkpoint::put(scratch / "resnet50.pth", "PK");
  checkpoint::put(scratch / "resnet50.safetensors", "");
  const auto error_for = [&](const char* file) {
    return error_of([&] { import_folder({.folder = scratch / file, .run = scratch / "new"}); }, scratch.path());
  };
  EXPECT_EQ(error_for("resnet50.pth"),
            "[model] \"resnet50.pth\" is a file in PyTorch's format, which is not read; write its tensors with "
            "safetensors.torch.save_file as model.safetensors to a folder with a config.json");
  EXPECT_EQ(error_for("resnet50.safetensors"),
            "[model] \"resnet50.safetensors\" is a file; name its folder, with the weights as model.safetensors and a "
            "config.json");
}

// As torchvision's, whatever the size of the images.
TEST(ImageFolders, LargeStemOfSmallImages) {
  ScratchFolder scratch;
  const auto saved = save_random(small_resnet("stem = \"large\"\n"), scratch / "run");
  export_folder({.model = saved, .folder = scratch / "folder", .dtype = {}});
  checkpoint::put(scratch / "folder" / "config.json",
                  R"({"model_type": "resnet18", "num_labels": 5, "image_height": 32, "image_width": 32})");
  const FolderReader reader(scratch / "folder");
  EXPECT_EQ(reader.config().model.stem, "large");
  EXPECT_EQ(reader.type("conv1.weight").shape[0].size, 7);
}

}  // namespace kintsugi::exchange::image_folders_test
