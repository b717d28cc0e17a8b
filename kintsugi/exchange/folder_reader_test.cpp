#include "kintsugi/exchange/folder_reader.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "kintsugi/checkpoint/convert.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/safetensors.h"
#include "kintsugi/exchange/export_folder.h"
#include "kintsugi/exchange/import_folder.h"
#include "kintsugi/exchange/small_models_test.h"

namespace kintsugi::exchange::folder_reader_test {
namespace {

using checkpoint::error_of;
using checkpoint::SafetensorsTensor;
using checkpoint::ScratchFolder;
using tensor::DType;

// A folder of a small model, as written by export.
std::filesystem::path make_folder(const ScratchFolder& scratch, std::string_view family = "llama",
                                  DType dtype = DType::f32) {
  const std::filesystem::path folder = scratch / "folder";
  export_folder({.model = save_random(small_run(family), scratch / "run", dtype), .folder = folder, .dtype = {}});
  return folder;
}

// The tensors of a file, to be modified and written again.
struct File {
  explicit File(std::filesystem::path folder) : path(std::move(folder) / "model.safetensors") {
    const checkpoint::SafetensorsFile file(path);
    for (const auto& [name, entry] : file.header().tensors) {
      bytes[name].resize(entry.end - entry.begin);
      file.at(name).read_at(0, bytes[name]);
      tensors[name] = {name, entry.dtype, entry.shape};
    }
  }
  void write() const {
    std::vector<SafetensorsTensor> list;
    for (const auto& [name, tensor] : tensors) list.push_back(tensor);
    checkpoint::SafetensorsWriter writer(path, list);
    for (const SafetensorsTensor& tensor : list) writer.write(bytes.at(tensor.name));
    writer.close();
  }
  void add(const std::string& name, std::vector<int64_t> shape, DType dtype = DType::f32) {
    tensors[name] = {name, dtype, std::move(shape)};
    bytes[name].assign(tensors[name].bytes(), std::byte{});
  }
  void copy(const std::string& from, const std::string& to) {
    tensors[to] = {to, tensors.at(from).dtype, tensors.at(from).shape};
    bytes[to] = bytes.at(from);
  }
  void rename(const std::string& from, const std::string& to) {
    copy(from, to);
    remove(from);
  }
  void remove(const std::string& name) {
    tensors.erase(name);
    bytes.erase(name);
  }

  std::filesystem::path path;
  std::map<std::string, SafetensorsTensor> tensors;
  std::map<std::string, std::vector<std::byte>> bytes;
};

template <typename T>
std::vector<T> all_of(const checkpoint::TensorSource& source, const std::string& name, DType dtype) {
  std::vector<T> x(static_cast<size_t>(source.type(name).shape.elements()));
  source.read({.name = name, .box = {}, .flat = {}}, dtype, std::as_writable_bytes(std::span(x)));
  return x;
}

// The error for the modified folder of make_folder(); undoes the change.
std::string error_after(const ScratchFolder& scratch, const std::function<void(File&)>& change) {
  File file(scratch / "folder");
  const File kept = file;
  change(file);
  file.write();
  const std::string text = error_of([&] { FolderReader reader(scratch / "folder"); }, scratch.path());
  kept.write();
  EXPECT_TRUE(checkpoint::is_one_line(text));
  return text;
}

}  // namespace

// As saved by torch's wrappers and by PEFT.
TEST(FolderReader, NamesWithinWrappers) {
  ScratchFolder scratch;
  make_folder(scratch, "llama");
  const File plain(scratch / "folder");
  for (const char* prefix :
       {"module.", "_orig_mod.", "module._orig_mod.", "base_model.model.", "_fsdp_wrapped_module."}) {
    File file(scratch / "folder");
    for (const auto& [name, tensor] : plain.tensors) file.rename(name, prefix + name);
    file.write();
    const FolderReader reader(scratch / "folder");
    EXPECT_EQ(reader.notes().size(), 1u) << prefix;
    const checkpoint::CheckpointReader ours(scratch / "run/step_00000000");
    for (const std::string& name : reader.names())
      EXPECT_EQ(all_of<float>(reader, name, DType::f32), all_of<float>(ours, name, DType::f32)) << prefix << name;
    plain.write();
  }
  EXPECT_TRUE(FolderReader(scratch / "folder").notes().empty());
  EXPECT_EQ(error_after(scratch, [](File& f) { f.copy("model.norm.weight", "module.model.norm.weight"); }),
            "[model] \"folder\": tensors \"module.model.norm.weight\" and \"model.norm.weight\" are both "
            "\"model.norm.weight\"");
}

// Boxes, ranges and dtypes of weights stored in any order, compared with the checkpoint of the folder.
TEST(FolderReader, AnyPartOfAnyWeight) {
  for (const char* family : {"gpt", "gptneox", "phi3", "llama"}) {
    ScratchFolder scratch;
    const FolderReader reader(make_folder(scratch, family));
    const checkpoint::CheckpointReader ours(scratch / "run/step_00000000");
    std::mt19937 random(3);
    const auto draw = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)); };
    for (const std::string& name : reader.names()) {
      SCOPED_TRACE(name);
      ASSERT_EQ(reader.type(name), ours.type(name));
      for (int trial = 0; trial < 20; ++trial) {
        checkpoint::Box box;
        for (const tensor::Dim& dim : reader.type(name).shape) {
          box.start.push_back(draw(dim.size - 1));
          box.size.push_back(1 + draw(dim.size - box.start.back() - 1));
        }
        const int64_t from = draw(box.elements()), to = from + draw(box.elements() - from);
        const checkpoint::Slice slice = {.name = name, .box = box, .flat = checkpoint::Range{from, to}};
        const DType dtype = trial % 2 == 0 ? DType::f32 : DType::f64;
        std::vector<std::byte> a(static_cast<size_t>((to - from) * size_of(dtype))), b(a.size());
        reader.read(slice, dtype, a);
        ours.read(slice, dtype, b);
        ASSERT_EQ(a, b) << to_string(box) << " " << from << " to " << to;
      }
    }
  }
}

TEST(FolderReader, APrefixMayBeAbsentAndComputedTensorsAreNoWeights) {
  ScratchFolder scratch;
  const auto folder = make_folder(scratch, "gpt");
  const auto before = all_of<float>(FolderReader(folder), "layer1.attention.key.weight", DType::f32);
  File file(folder);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : file.tensors) names.push_back(name);
  for (const std::string& name : names)
    if (name.starts_with("transformer.")) file.rename(name, name.substr(12));
  file.add("h.0.attn.bias", {4}, DType::u8);
  file.add("transformer.h.1.attn.masked_bias", {});
  file.copy("wte.weight", "lm_head.weight");  // of a tied model
  file.write();
  EXPECT_EQ(all_of<float>(FolderReader(folder), "layer1.attention.key.weight", DType::f32), before);
}

TEST(FolderReader, AHeadOfItsOwnIsNotTakenForTheEmbedding) {
  ScratchFolder scratch;
  make_folder(scratch, "gpt");
  const auto error = [&](const std::function<void(File&)>& change) { return error_after(scratch, change); };
  const std::string differs =
      "[model] \"folder\": tensor \"lm_head.weight\" differs from \"transformer.wte.weight\", although config.json "
      "ties "
      "them; if the head has separate weights, set \"tie_word_embeddings\" to false";
  const std::string table = "transformer.wte.weight", head = "lm_head.weight";
  EXPECT_EQ(error([&](File& f) { f.copy(table, head); }), "");
  EXPECT_EQ(error([&](File& f) { f.copy(table, head), f.bytes.at(head).back() ^= std::byte{1}; }), differs);
  EXPECT_EQ(error([&](File& f) { f.copy(table, head), f.tensors.at(head).shape = {16, 11}; }), differs);
  EXPECT_EQ(error([&](File& f) { f.add(head, {11, 16}, DType::i32); }), differs);
}

TEST(FolderReader, WhatDoesNotFitIsNamed) {
  ScratchFolder scratch;
  const auto folder = make_folder(scratch);
  const auto error = [&](const std::function<void(File&)>& change) { return error_after(scratch, change); };
  const std::string norm = "model.layers.0.input_layernorm.weight";
  EXPECT_EQ(error([&](File& f) { f.remove(norm); }),
            "[safetensors] \"folder\" has no tensor \"model.layers.0.input_layernorm.weight\"; the nearest is "
            "\"model.layers.1.input_layernorm.weight\"");
  EXPECT_EQ(
      error([&](File& f) { f.add(norm, {23}); }),
      "[model] \"folder\": tensor \"model.layers.0.input_layernorm.weight\" has the shape [23], config.json needs "
      "[24]");
  EXPECT_EQ(error([&](File& f) { f.add(norm, {24}, DType::i32); }),
            "[model] \"folder\": tensor \"model.layers.0.input_layernorm.weight\" holds int32, which are no weights");
  EXPECT_EQ(error([&](File& f) { f.add("model.layers.6.input_layernorm.weight", {24}); }),
            "[model] \"folder\": tensor \"model.layers.6.input_layernorm.weight\" is not a weight of the model that "
            "config.json describes");
  EXPECT_EQ(error([&](File& f) { f.add("a", {24}), f.add("b", {24}), f.add("c", {1}); }),
            "[model] \"folder\": tensor \"a\", like 2 others, is not a weight of the model that config.json describes");
  EXPECT_EQ(
      error([&](File& f) { f.add(norm.substr(6), {24}); }),
      "[model] \"folder\": tensor \"layers.0.input_layernorm.weight\" is not a weight of the model that config.json "
      "describes");
  std::filesystem::remove(folder / "config.json");
  EXPECT_EQ(error_of([&] { FolderReader reader(folder); }, scratch.path()),
            "[file] cannot open \"folder/config.json\": No such file or directory");
}

TEST(FolderReader, NumbersThatAreNotFiniteAreCounted) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    ScratchFolder scratch;
    const auto folder = make_folder(scratch, "llama", dtype);
    File file(folder);
    std::vector<std::byte>& bytes = file.bytes["model.layers.1.mlp.down_proj.weight"];
    const auto size = static_cast<size_t>(size_of(dtype));
    const float values[] = {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
                            -std::numeric_limits<float>::infinity()};
    for (size_t i = 0; i < 3; ++i)
      checkpoint::convert(DType::f32, std::as_bytes(std::span(values + i, 1)).data(), dtype,
                          bytes.data() + (7 + 20 * i) * size, 1);
    file.write();
    const std::string error =
        "[model] \"folder\": 3 of the 480 elements of tensor \"model.layers.1.mlp.down_proj.weight\" are NaN or "
        "infinity; kintsugi import --allow-not-finite takes them as they are";
    const FolderReader reader(folder);
    EXPECT_EQ(error_of([&] { all_of<double>(reader, "layer1.ffn.down.weight", DType::f64); }, scratch.path()), error);
    EXPECT_EQ(error_of([&] { all_of<double>(reader, "layer1.ffn.up.weight", DType::f64); }), "");
    EXPECT_EQ(error_of([&] { all_of<double>(FolderReader(folder, true), "layer1.ffn.down.weight", DType::f64); }), "");
    // Tensors that are not loaded are not checked, and overflow in a conversion is not an error.
    const auto row = [&](int64_t begin, DType as) {
      std::vector<std::byte> out(static_cast<size_t>(7 * size_of(as)));
      reader.read({.name = "layer1.ffn.down.weight", .box = {}, .flat = checkpoint::Range{begin, begin + 7}}, as, out);
    };
    EXPECT_EQ(error_of([&] { row(473, dtype); }), "");
    EXPECT_EQ(error_of([&] { import_folder({.folder = folder, .run = scratch / "new"}); }, scratch.path()),
              "[checkpoint] step 0 is not saved, earlier checkpoints are untouched: " + error.substr(8));
    EXPECT_FALSE(std::filesystem::exists(scratch / "new"));
    import_folder({.folder = folder, .run = scratch / "new", .allow_not_finite = true});
  }
}

// Networks of images differ by little but their sizes; config.json is written by hand.
TEST(FolderReader, NamesTheNetworkThatTheTensorsAreOf) {
  ScratchFolder scratch;
  const config::Resolved run = {
      config::fill_derived(config::read_text("[model]\nfamily = \"resnet18\"\noutputs = 5\nimage_channels = "
                                             "3\nimage_height = 32\nimage_width = 32\n",
                                             "run.toml", models::catalog()),
                           1),
      {}};
  const std::filesystem::path folder = scratch / "folder";
  export_folder({.model = save_random(run, scratch / "run"), .folder = folder, .dtype = {}});
  const std::string config = base::read_file(folder / "config.json");
  const auto error_as = [&](const std::string& type) {
    std::string text = config;
    text.replace(text.find("resnet18"), 8, type);
    checkpoint::put(folder / "config.json", text);
    return error_of([&] { const FolderReader reader(folder); }, scratch.path());
  };
  EXPECT_EQ(error_as("resnet18"), "");
  for (const std::string type : {"resnet34", "resnet50"})
    EXPECT_EQ(error_as(type), "[model] \"folder\": config.json describes " + type +
                                  ", and the tensors are those of resnet18: its \"model_type\" is \"resnet18\"");
  // Tensors of none.
  std::string text = config;
  text.replace(text.find("\"num_channels\": 3"), 17, "\"num_channels\": 4");
  checkpoint::put(folder / "config.json", text);
  const std::string error = error_of([&] { const FolderReader reader(folder); }, scratch.path());
  EXPECT_NE(error.find("tensor \"conv1.weight\" has the shape"), std::string::npos) << error;
  EXPECT_NE(error_as("resnet_18").find("the model_type \"resnet_18\" is not known here"), std::string::npos);
}

}  // namespace kintsugi::exchange::folder_reader_test
