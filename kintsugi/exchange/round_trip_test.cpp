// Checkpoint to folder to checkpoint: every weight of every family is restored, bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>

#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/tensor_files.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/exchange/config_json.h"
#include "kintsugi/exchange/export_folder.h"
#include "kintsugi/exchange/folder_reader.h"
#include "kintsugi/exchange/import_folder.h"
#include "kintsugi/exchange/new_folder.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/exchange/small_models_test.h"

namespace kintsugi::exchange::round_trip_test {
namespace {

using checkpoint::error_of;
using checkpoint::ScratchFolder;
using tensor::DType;

void expect_same_weights(const std::filesystem::path& a, const std::filesystem::path& b) {
  const checkpoint::CheckpointReader first(a), second(b);
  ASSERT_EQ(first.index().tensors.size(), second.index().tensors.size());
  for (const auto& [name, tensor] : first.index().tensors) {
    ASSERT_EQ(tensor.type, second.type(name)) << name;
    std::vector<std::byte> x(static_cast<size_t>(tensor.type.bytes())), y(x.size());
    first.read({.name = name, .box = {}, .flat = {}}, tensor.type.dtype, x);
    second.read({.name = name, .box = {}, .flat = {}}, tensor.type.dtype, y);
    EXPECT_EQ(x, y) << name;
  }
}

}  // namespace

TEST(RoundTrip, EveryFamily) {
  for (const models::Family& family : models::families()) {
    if (family.hugging_face.model_types.empty() || family.config.reads_images) continue;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (dtype == DType::bf16 && family.config.name != "gptneox") continue;
      SCOPED_TRACE(family.config.name);
      ScratchFolder scratch;
      const config::Resolved run = small_run(family.config.name);
      const auto saved = save_random(run, scratch / "run", dtype);
      export_folder({.model = saved, .folder = scratch / "folder", .dtype = {}});
      const auto again = import_folder({.folder = scratch / "folder", .run = scratch / "again"}).checkpoint;
      expect_same_weights(saved, again);
      const config::Model model =
          config::saved_text(checkpoint::CheckpointReader(again).config(), models::catalog()).settings.model;
      config::Model want = run.settings.model;
      want.name = model.name;
      EXPECT_EQ(model.family, want.family);
      EXPECT_EQ(model.ffn, want.ffn);
      EXPECT_EQ(model.norm, want.norm);
      EXPECT_EQ(model.head_dim, want.head_dim);
      EXPECT_EQ(model.norm_epsilon, want.norm_epsilon);
      // A folder imported and exported again: the same bytes.
      export_folder({.model = scratch / "folder", .folder = scratch / "copy", .dtype = {}});
      for (const char* name : {"model.safetensors", "config.json"})
        EXPECT_EQ(base::read_file(scratch / "folder" / name), base::read_file(scratch / "copy" / name)) << name;
    }
  }
}

// check predicts before training what export does afterwards.
TEST(RoundTrip, WhatCanBeExportedIsKnownBefore) {
  std::mt19937 random(5);
  const auto any = [&](std::initializer_list<const char*> lines) {
    return std::string(*(lines.begin() + random() % lines.size())) + "\n";
  };
  int exported = 0, refused = 0;
  for (int i = 0; i < 160; ++i) {
    const models::Family& family = models::families()[random() % models::families().size()];
    if (family.hugging_face.model_types.empty()) continue;
    std::string more;
    const auto sometimes = [&](std::initializer_list<const char*> lines) {
      if (random() % 6 == 0) more += any(lines);
    };
    sometimes({"norm = \"rms\"", "norm = \"layer\"", "norm_place = \"after\"", "norm_place = \"both\""});
    sometimes({"positions = \"none\"", "positions = \"learned\"", "positions = \"rotary\""});
    sometimes({"bias = true", "bias = false", "bias_output = true", "bias_ffn = false", "bias_head = true"});
    sometimes({"tied = true", "tied = false"});
    sometimes({"gated = true", "gated = false", "activation = \"relu\"", "activation = \"silu\""});
    sometimes({"window = 0", "window = 5", "window = 5\nwindow_layers = [\"window\", \"full\"]",
               "window_layers = [\"full\", \"window\", \"full\", \"full\", \"full\", \"full\", \"window\"]"});
    sometimes({"rope_theta = 500.0", "rope_theta_window = 100.0", "rope_scaling = \"linear\"\nrope_factor = 2.0",
               "rope_scaling = \"yarn\"\nrope_factor = 2.0\nrope_original_context = 8",
               "rope_scaling = \"llama3\"\nrope_factor = 2.0\nrope_original_context = 8", "rope_beta_fast = 16.0"});
    sometimes({"attention_scale = 0.5", "attention_scale = 0.25", "attention_softcap = 30.0", "embed_scale = 2.0"});
    sometimes({"query_key_norm = \"head\"", "query_key_norm = \"all\"", "query_key_norm = \"none\""});
    sometimes({"residual = \"parallel\"", "residual = \"sequential\"", "norm_epsilon = 1e-3"});
    sometimes({"rotary_layers = [\"rotary\", \"none\"]", "rotary_interleaved = true", "experts = 3"});
    std::optional<config::Resolved> run;
    const std::string wrong = error_of([&] {
      run = small_run(family.config.name, more);
      config::Given given = config::read_text(config::to_toml(*run), "run.toml", models::catalog());
      config::resolve(std::move(given), 1);
    });
    if (!wrong.empty()) continue;
    SCOPED_TRACE(std::string(family.config.name) + "\n" + more);
    const std::string why = why_not_exported(run->settings.model);
    ScratchFolder scratch;
    std::string error = error_of([&] {
      const auto saved = save_random(*run, scratch / "run");
      export_folder({.model = saved, .folder = scratch / "folder", .dtype = {}});
    });
    if (why.empty()) {
      EXPECT_EQ(error, "");
      import_folder({.folder = scratch / "folder", .run = scratch / "again"});
      ++exported;
    } else {
      EXPECT_EQ(error, "[model] " + why);
      ++refused;
    }
  }
  EXPECT_GT(exported, 10);
  EXPECT_GT(refused, 20);
}

TEST(RoundTrip, ExpertsInEveryLayer) {
  ScratchFolder scratch;
  const config::Resolved run = small_deepseek("dense_layers = 0\n");
  EXPECT_EQ(run.settings.model.dense_ffn, 0);
  EXPECT_EQ(why_not_exported(run.settings.model), "");
  export_folder({.model = save_random(run, scratch / "run"), .folder = scratch / "folder", .dtype = {}});
  import_folder({.folder = scratch / "folder", .run = scratch / "again"});
}

// A folder that someone else fills is left alone; leftovers of killed processes are not in the way.
TEST(RoundTrip, NothingOfOthersIsRemoved) {
  ScratchFolder scratch;
  const auto saved = save_random(small_run("llama"), scratch / "run");
  {
    NewFolder folder("export", scratch / "made");
    base::write_file_atomically(folder.part() / "ours", "1");
    base::make_folders(scratch / "made");
    base::write_file_atomically(scratch / "made" / "theirs", "2");
    EXPECT_EQ(error_of([&] { folder.finish(); }, scratch.path()),
              "[export] \"made\" was filled by another program meanwhile; nothing there was changed");
  }
  EXPECT_EQ(base::read_file(scratch / "made" / "theirs"), "2");
  {
    NewFolder first("export", scratch / "twice"), second("export", scratch / "twice");
    EXPECT_TRUE(std::filesystem::exists(first.part()));
  }
  base::make_folders(scratch / ".part-twice-1");  // of a process that was killed
  base::make_folders(scratch / ".part-twice");
  export_folder({.model = saved, .folder = scratch / "twice", .dtype = {}});
  EXPECT_FALSE(std::filesystem::exists(scratch / ".part-twice-1"));
  EXPECT_FALSE(std::filesystem::exists(scratch / ".part-twice"));
  base::make_folders(scratch / "imported" / ".part-step_00000000");
  import_folder({.folder = scratch / "twice", .run = scratch / "imported"});
  base::make_folders(scratch / "other" / ".part-step_00000000");
  base::write_file_atomically(scratch / "other" / "notes", "3");
  EXPECT_NE(error_of([&] { import_folder({.folder = scratch / "twice", .run = scratch / "other"}); }), "");
  EXPECT_TRUE(std::filesystem::exists(scratch / "other" / ".part-step_00000000"));
}

// A number that overflows a dtype is an error, not a silent infinity.
TEST(RoundTrip, OverflowOfADtypeIsRefused) {
  ScratchFolder scratch;
  const auto saved = save_random(small_run("llama"), scratch / "run");
  export_folder({.model = saved, .folder = scratch / "folder", .dtype = {}});
  const std::filesystem::path file = scratch / "folder" / "model.safetensors";
  std::string bytes = base::read_file(file);
  const float large = 7e4F;
  std::memcpy(bytes.data() + bytes.size() - 8, &large, sizeof large);
  base::write_file_atomically(file, bytes);
  const std::string error =
      error_of([&] { export_folder({.model = scratch / "folder", .folder = scratch / "half", .dtype = DType::f16}); });
  EXPECT_NE(error.find("[export] 1 of the "), std::string::npos) << error;
  EXPECT_NE(error.find("are NaN or infinity in fp16, whose largest number is 65504"), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists(scratch / "half"));
  export_folder({.model = scratch / "folder", .folder = scratch / "brain", .dtype = DType::bf16});
  export_folder(
      {.model = scratch / "folder", .folder = scratch / "half", .dtype = DType::f16, .allow_not_finite = true});
  EXPECT_TRUE(std::filesystem::exists(scratch / "half"));
}

// The objective is encoded in the architecture's name, the labels and the tensors.
TEST(RoundTrip, EveryObjective) {
  for (const char* objective : {"masked_next", "masked", "classes", "numbers"}) {
    SCOPED_TRACE(objective);
    ScratchFolder scratch;
    const config::Resolved run = small_run("bert", fmt::format("objective = \"{}\"\noutputs = 3\n", objective));
    const auto saved = save_random(run, scratch / "run");
    export_folder({.model = saved, .folder = scratch / "folder", .dtype = {}});
    const auto again = import_folder({.folder = scratch / "folder", .run = scratch / "again"}).checkpoint;
    expect_same_weights(saved, again);
    EXPECT_EQ(
        config::saved_text(checkpoint::CheckpointReader(again).config(), models::catalog()).settings.model.objective,
        objective);
  }
  // Like the published folder: config.json names one head, but the tensors are of both. And with former names.
  ScratchFolder scratch;
  export_folder({.model = save_random(small_run("bert"), scratch / "run"), .folder = scratch / "folder", .dtype = {}});
  const auto change = [&](const char* file, const std::string& from, const std::string& to) {
    std::string text = base::read_file(scratch / "folder" / file);
    ASSERT_EQ(from.size(), to.size());
    for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
    checkpoint::put(scratch / "folder" / file, text);
  };
  change("config.json", "\"BertForPreTraining\"", "\"BertForMaskedLM\"   ");
  change("model.safetensors", "LayerNorm.weight\"", "LayerNorm.gamma\" ");
  EXPECT_EQ(FolderReader(scratch / "folder").config().model.objective, "masked_next");
}

TEST(RoundTrip, AFamilyWithoutFoldersIsRefused) {
  ScratchFolder scratch;
  const config::Resolved run = small_run("mlp", "features = 3\noutputs = 2\n");
  const models::Family& family = models::family("mlp");
  EXPECT_EQ(error_of([&] { weight_map(family, run.settings.model); }, scratch.path()),
            "[model] models of the family mlp have no Hugging Face folders");
}

TEST(RoundTrip, SeveralFilesAndDtypes) {
  ScratchFolder scratch;
  const auto saved = save_random(small_run("gpt"), scratch / "run");
  const Exported one = export_folder({.model = saved, .folder = scratch / "one", .dtype = {}});
  const Exported many = export_folder({.model = saved, .folder = scratch / "many", .dtype = {}, .shard_bytes = 5000});
  EXPECT_EQ(one.files, 1u);
  EXPECT_GT(many.files, 3u);
  EXPECT_EQ(one.bytes, many.bytes);
  const auto index = base::Json::parse("test", "index", base::read_file(scratch / "many/model.safetensors.index.json"));
  EXPECT_EQ(index.at("metadata").at("total_size").whole(), static_cast<int64_t>(one.bytes));
  EXPECT_EQ(index.at("weight_map").members().size(), one.tensors);
  for (const base::Json& file : index.at("weight_map").members()) {
    const checkpoint::SafetensorsFile shard(scratch / "many" / file.text());
    if (shard.header().tensors.size() == 1) continue;
    uint64_t bytes = 0;
    for (const auto& [name, entry] : shard.header().tensors) bytes += entry.end - entry.begin;
    EXPECT_LE(bytes, 5000u) << file.text();
  }
  export_folder({.model = scratch / "many", .folder = scratch / "joined", .dtype = {}});
  EXPECT_EQ(base::read_file(scratch / "one/model.safetensors"), base::read_file(scratch / "joined/model.safetensors"));

  export_folder({.model = saved, .folder = scratch / "half", .dtype = DType::f16});
  const checkpoint::TensorFiles half(scratch / "half");
  for (const auto& [name, tensor] : half.tensors()) EXPECT_EQ(tensor.dtype, DType::f16) << name;
}

TEST(RoundTrip, WhatIsThereIsNotReplaced) {
  ScratchFolder scratch;
  const auto saved = save_random(small_run("llama"), scratch / "run");
  std::filesystem::create_directory(scratch / "empty");
  export_folder({.model = saved, .folder = scratch / "empty", .dtype = {}});
  EXPECT_TRUE(std::filesystem::exists(scratch / "empty/model.safetensors"));
  EXPECT_EQ(
      error_of([&] { export_folder({.model = saved, .folder = scratch / "empty", .dtype = {}}); }, scratch.path()),
      "[export] \"empty\" is not empty; name a folder that is empty or does not exist");
  EXPECT_EQ(error_of([&] { import_folder({.folder = scratch / "empty", .run = scratch / "run"}); }, scratch.path()),
            "[import] \"run\" is not empty; name a folder that is empty or does not exist");
}

TEST(RoundTrip, AnErrorLeavesNothing) {
  ScratchFolder scratch;
  const auto turned = save_random(small_run("gpt", "positions = \"rotary\"\n"), scratch / "turned");
  EXPECT_EQ(error_of([&] { export_folder({.model = turned, .folder = scratch / "new", .dtype = {}}); }, scratch.path()),
            "[model] config.json of the family gpt cannot say model.positions = \"rotary\"; it would be read as "
            "\"learned\"");
  const auto saved = save_random(small_run("llama"), scratch / "run");
  std::string bytes = base::read_file(saved / "rank_00000.safetensors");
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
  checkpoint::put(saved / "rank_00000.safetensors", bytes);
  const std::string error =
      error_of([&] { export_folder({.model = saved, .folder = scratch / "new", .dtype = {}}); }, scratch.path());
  EXPECT_NE(error.find("is damaged"), error.npos) << error;
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path()))
    left.push_back(entry.path().filename().string());
  std::ranges::sort(left);
  EXPECT_EQ(left, (std::vector<std::string>{"run", "turned"}));
}

// Weights and running statistics of convolutional networks, with PyTorch's names and order of dims.
TEST(RoundTrip, ImageFamilies) {
  for (const auto& [name, more] : std::vector<std::pair<const char*, const char*>>{
           {"lenet", "image_channels = 3\nimage_height = 32\nimage_width = 32\nimage_mean = [0.1, 0.25, 0.7]\n"},
           {"resnet18", "image_channels = 3\nimage_height = 32\nimage_width = 32\n"},
           {"unet", "embed = 4\nimage_channels = 1\nimage_height = 16\nimage_width = 32\n"},
           {"unet", "embed = 4\nimage_channels = 1\nimage_height = 16\nimage_width = 16\nimage_depth = 16\n"},
           {"cosmoflow",
            "image_channels = 4\nimage_height = 16\nimage_width = 16\nimage_depth = 16\nimage_dtype = \"fp32\"\n"},
           {"vit",
            "layers = 2\nembed = 16\nheads = 2\nimage_channels = 3\nimage_height = 16\nimage_width = 16\npatch = "
            "4\n"},
           {"vit",
            "objective = \"fields\"\nlayers = 1\nembed = 16\nheads = 2\nimage_channels = 2\nimage_height = 8\n"
            "image_width = 12\npatch = 4\nimage_dtype = \"fp32\"\n"},
           {"unet", "objective = \"fields\"\nembed = 4\nimage_channels = 1\nimage_height = 16\nimage_width = 32\n"},
           {"vit",
            "layers = 1\nembed = 16\nheads = 2\nimage_channels = 5\nimage_height = 8\nimage_width = 8\npatch = 4\n"
            "image_dtype = \"fp32\"\nimage_mean = 250.0\nimage_deviation = [1.0, 2.0, 3.0, 4.0, 5.0]\n"}}) {
    SCOPED_TRACE(name);
    ScratchFolder scratch;
    const std::string text = std::string("[model]\nfamily = \"") + name + "\"\noutputs = 5\n" + more;
    const config::Resolved run = {config::fill_derived(config::read_text(text, "run.toml", models::catalog()), 1), {}};
    const auto saved = save_random(run, scratch / "run");
    export_folder({.model = saved, .folder = scratch / "folder", .dtype = {}});
    const auto again = import_folder({.folder = scratch / "folder", .run = scratch / "again"}).checkpoint;
    expect_same_weights(saved, again);
    const auto self = comm::self_communicator();
    const config::Model model = open_model(again, *self).settings().model;
    EXPECT_EQ(model.image_dtype, run.settings.model.image_dtype);
    EXPECT_EQ(model.image_mean, run.settings.model.image_mean);
    EXPECT_EQ(model.image_deviation, run.settings.model.image_deviation);
  }
}

// A folder for transformers names the numbers a second time, in the file that it reads them from.
TEST(RoundTrip, ImageProcessor) {
  ScratchFolder scratch;
  const std::string text =
      "[model]\nfamily = \"vit\"\nlayers = 1\nembed = 16\nheads = 2\noutputs = 5\nimage_channels = 3\n"
      "image_height = 8\nimage_width = 8\npatch = 4\nimage_mean = [0.1, 0.25, 0.7]\n";
  const config::Resolved run = {config::fill_derived(config::read_text(text, "run.toml", models::catalog()), 1), {}};
  const std::filesystem::path folder = scratch / "folder";
  export_folder({.model = save_random(run, scratch / "run"), .folder = folder, .dtype = {}});
  const std::string processor = base::read_file(folder / "preprocessor_config.json");
  const auto json = base::Json::parse("test", "processor", processor);
  EXPECT_EQ(json.at("image_mean").compact(), "[0.1,0.25,0.7]");
  EXPECT_EQ(json.at("image_std").compact(), "[0.5,0.5,0.5]");
  EXPECT_EQ(json.at("size").at("height").whole(), 8);
  EXPECT_EQ(read_folder_config(folder).model.image_mean, run.settings.model.image_mean);
  // Of folders by transformers only this file has them.
  std::string config = base::read_file(folder / "config.json");
  const size_t begin = config.find("\"image_mean\""), end = config.find(']', begin);
  config.replace(begin, end + 1 - begin, "\"image_mean\": null");
  checkpoint::put(folder / "config.json", config);
  EXPECT_EQ(read_folder_config(folder).model.image_mean, run.settings.model.image_mean);
  EXPECT_TRUE(read_folder_config(folder).model.image_deviation.empty());
  std::filesystem::remove(folder / "preprocessor_config.json");
  EXPECT_TRUE(read_folder_config(folder).model.image_mean.empty());
}

TEST(RoundTrip, NamesAndShapesOfPyTorch) {
  const auto tensors_of = [](const char* family) {
    config::Model m = models::defaults_of(family);
    m.layers = models::family(family).config.layers;
    m.outputs = 10;
    m.image_channels = 3;
    m.image_height = m.image_width = 224;
    std::map<std::string, std::vector<int64_t>> all;
    for (const MappedTensor& t : weight_map(models::family(family), m)) all[t.name] = t.shape;
    return all;
  };
  using Sizes = std::vector<int64_t>;
  auto resnet = tensors_of("resnet50");
  EXPECT_EQ(resnet.at("conv1.weight"), (Sizes{64, 3, 7, 7}));
  EXPECT_EQ(resnet.at("bn1.running_mean"), (Sizes{64}));
  EXPECT_EQ(resnet.at("layer2.0.downsample.0.weight"), (Sizes{512, 256, 1, 1}));
  EXPECT_EQ(resnet.at("layer2.0.downsample.1.running_var"), (Sizes{512}));
  EXPECT_EQ(resnet.at("layer4.2.bn3.weight"), (Sizes{2048}));
  EXPECT_EQ(resnet.at("fc.weight"), (Sizes{10, 2048}));
  EXPECT_EQ(resnet.size(), 5 * 53 + 2);
  auto vgg = tensors_of("vgg11_bn");
  EXPECT_EQ(vgg.at("features.0.bias"), (Sizes{64}));
  EXPECT_EQ(vgg.at("features.1.running_var"), (Sizes{64}));
  EXPECT_EQ(vgg.at("features.25.weight"), (Sizes{512, 512, 3, 3}));
  EXPECT_EQ(vgg.at("classifier.0.weight"), (Sizes{4096, 512 * 49}));
  auto next = tensors_of("convnext_tiny");
  EXPECT_EQ(next.at("features.0.0.weight"), (Sizes{96, 3, 4, 4}));
  EXPECT_EQ(next.at("features.1.0.block.0.weight"), (Sizes{96, 1, 7, 7}));
  EXPECT_EQ(next.at("features.3.2.layer_scale"), (Sizes{192, 1, 1}));
  EXPECT_EQ(next.at("features.6.1.weight"), (Sizes{768, 384, 2, 2}));
  EXPECT_EQ(next.at("classifier.2.weight"), (Sizes{10, 768}));
  EXPECT_EQ(next.size(), 182u);
  auto alex = tensors_of("alexnet");
  EXPECT_EQ(alex.at("features.10.weight"), (Sizes{256, 256, 3, 3}));
  EXPECT_EQ(alex.at("classifier.1.weight"), (Sizes{4096, 256 * 36}));
  EXPECT_EQ(alex.size(), 16u);
}

}  // namespace kintsugi::exchange::round_trip_test
