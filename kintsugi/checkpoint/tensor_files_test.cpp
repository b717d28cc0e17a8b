#include "kintsugi/checkpoint/tensor_files.h"

#include <gtest/gtest.h>

#include "kintsugi/checkpoint/scratch_test.h"
#include "tests/paths.h"

namespace kintsugi::checkpoint::tensor_files_test {
namespace {

using tensor::DType;

void write(const std::filesystem::path& path, const std::string& name) {
  SafetensorsWriter writer(path, {{name, DType::u8, {4}}});
  writer.write(std::as_bytes(std::span(name.data(), 4)));
  writer.close();
}

}  // namespace

TEST(TensorFiles, ShardsUnderAnIndex) {
  ScratchFolder scratch;
  const auto index = scratch / "model.safetensors.index.json";
  const auto open = [&] { return error_of([&] { TensorFiles files(scratch.path()); }, scratch.path()); };
  EXPECT_EQ(error_of([&] { TensorFiles files(scratch.path()); }),
            "[safetensors] \"" + scratch.path().string() +
                "\" holds neither model.safetensors nor model.safetensors.index.json");
  write(scratch / "a.safetensors", "aaaa");
  write(scratch / "b.safetensors", "bbbb");
  put(index, R"({"metadata":{"total_size":8},"weight_map":{"aaaa":"a.safetensors","bbbb":"b.safetensors"}})");
  const TensorFiles files(scratch.path());
  EXPECT_EQ(files.tensors().size(), 2u);
  std::byte last = {};
  files.at("bbbb").read_at(3, {&last, 1});
  EXPECT_EQ(last, std::byte{'b'});
  EXPECT_EQ(files.at("aaaa").shape[0], 4);
  EXPECT_FALSE(files.has("cccc"));
  EXPECT_THROW(files.at("cccc"), base::UserError);

  const std::string i = "[safetensors] \"model.safetensors.index.json\"";
  put(index, R"({"weight_map":3})");
  EXPECT_EQ(open(), "[safetensors] \"model.safetensors.index.json\":1: \"weight_map\" is 3; it should be an object");
  put(index, R"([])");
  EXPECT_EQ(open(), "[safetensors] \"model.safetensors.index.json\":1: the value is a list; it should be an object");
  put(index, R"({"weight_map":{"aaaa":"../a.safetensors"}})");
  EXPECT_EQ(open(),
            "[safetensors] \"model.safetensors.index.json\":1: \"weight_map.aaaa\" is \"../a.safetensors\"; it should "
            "be the name of a file in the same folder");
  put(index, R"({"weight_map":{"aaab":"a.safetensors"}})");
  EXPECT_EQ(open(), R"([safetensors] "a.safetensors" has no tensor "aaab"; the nearest is "aaaa")");
  put(index, R"({"weight_map":{"aaaa":"c.safetensors"}})");
  EXPECT_EQ(
      open(),
      "[safetensors] \"model.safetensors.index.json\":1: \"aaaa\" is in \"c.safetensors\", which is not in the folder");
  put(index, R"({"weight_map":{"aaaa":"/etc/passwd"}})");
  EXPECT_EQ(
      open(),
      "[safetensors] \"model.safetensors.index.json\":1: \"weight_map.aaaa\" is \"/etc/passwd\"; it should be the "
      "name of a file in the same folder");
  // A single file takes precedence over an index, as in transformers.
  write(scratch / "model.safetensors", "cccc");
  EXPECT_TRUE(TensorFiles(scratch.path()).has("cccc"));
  put(index, R"({"weight_map":{"aaaa":"a.safetensors","bbbb":"b.safetensors"}})");
  EXPECT_FALSE(TensorFiles(scratch.path()).has("aaaa"));
  std::filesystem::remove(scratch / "model.safetensors");
  EXPECT_TRUE(TensorFiles(scratch.path()).has("aaaa"));
  std::filesystem::remove(index);
  put(scratch / "pytorch_model.bin", "PK");
  EXPECT_EQ(error_of([&] { TensorFiles files(scratch.path()); }),
            "[safetensors] \"" + scratch.path().string() +
                "\" holds pytorch_model.bin, which is not read; write it as safetensors with transformers' "
                "save_pretrained(safe_serialization=True)");
}

TEST(TensorFiles, OtherFilesOfWeightsAreNamed) {
  ScratchFolder scratch;
  const auto error = [&] { return error_of([&] { TensorFiles files(scratch.path()); }); };
  const std::string folder = "[safetensors] \"" + scratch.path().string();
  EXPECT_EQ(error(), folder + "\" holds neither model.safetensors nor model.safetensors.index.json");
  put(scratch / "resnet50.pth", "PK");
  EXPECT_EQ(error(), folder +
                         "\" holds resnet50.pth, which is not read; write its tensors with "
                         "safetensors.torch.save_file to model.safetensors");
  put(scratch / "resnet.safetensors", "");
  EXPECT_EQ(error(), folder + "\" holds resnet.safetensors; the weights must be in model.safetensors");
}

TEST(TensorFiles, APublishedModelOpens) {
  const std::filesystem::path folder = tests::shared_folder() + "/data/stories260K/hf_derived";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const TensorFiles files(folder);
  const TensorInFile& table = files.at("model.embed_tokens.weight");
  EXPECT_EQ(table.dtype, DType::f32);
  EXPECT_EQ(std::vector(table.shape.begin(), table.shape.end()), (std::vector<int64_t>{512, 64}));
  EXPECT_EQ(table.bytes, 131072u);
  EXPECT_EQ(files.at("model.layers.4.mlp.down_proj.weight").shape[1], 172);
  size_t bytes = 0;
  for (const auto& [name, tensor] : files.tensors()) bytes += tensor.bytes;
  EXPECT_GT(bytes, 1'000'000u);
}

}  // namespace kintsugi::checkpoint::tensor_files_test
