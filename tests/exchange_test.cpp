// The command on Hugging Face folders: used as a checkpoint, imported and exported.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kintsugi/base/file.h"
#include "tests/process.h"
#include "tests/stories.h"

namespace kintsugi::tests::exchange_test {
namespace {

std::string last_lines(const std::string& text, int lines) {
  size_t at = text.size();
  for (; lines >= 0 && at != text.npos && at > 0; --lines) at = text.rfind('\n', at - 1);
  return at == text.npos || at == 0 ? text : text.substr(at + 1);
}

class Exchange : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(stories_model())) GTEST_SKIP() << "there is no " << stories_model();
    fs::create_directory(folder / "stories");
    for (const char* name : {"config.json", "model.safetensors"})
      fs::copy_file(stories_model() / name, folder / "stories" / name);
    fs::copy_file(stories_folder() / "tok512.model", folder / "stories/tokenizer.model");
  }

  // What the command prints.
  std::string run(const std::string& arguments) {
    const Ended ended = run_kintsugi(folder.path(), arguments);
    EXPECT_EQ(ended.code, 0) << arguments << "\n" << ended.err;
    return ended.out;
  }
  std::string error(const std::string& arguments) {
    const Ended ended = run_kintsugi(folder.path(), arguments);
    EXPECT_EQ(ended.code, 1) << arguments << "\n" << ended.out;
    return ended.err;
  }
  void expect_same(const fs::path& a, const fs::path& b) {
    EXPECT_EQ(base::read_file(folder / a), base::read_file(folder / b)) << a << " " << b;
  }

  TemporaryFolder folder;
};

// A small model of transformers, without a tokenizer.
class SmallFolder : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder / "small");
    for (const char* name : {"config.json", "model.safetensors"})
      fs::copy_file(fs::path(__FILE__).parent_path() / "families/llama" / name, folder / "small" / name);
  }
  Ended run(const std::string& arguments) { return run_kintsugi(folder.path(), arguments); }
  std::string read(const std::string& name) { return base::read_file(folder / "small" / name); }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder / "small" / name) << text; }

  TemporaryFolder folder;
};

// Peak resident memory in bytes, from the output of time.
int64_t peak_of(const fs::path& folder, const std::string& arguments) {
  const Ended ended = run_kintsugi(folder, arguments, ":", "/usr/bin/time -f %M -o peak.txt");
  EXPECT_EQ(ended.code, 0) << arguments << "\n" << ended.err;
  return std::stoll(base::read_file(folder / "peak.txt")) * 1024;
}

}  // namespace

// The model is that of config.json, other keys have defaults; the same through model.name, and saved with all keys.
TEST_F(SmallFolder, IsPlannedAndConfigures) {
  const std::string sets = " --set parallel.threads=1 train.global_batch=1";
  const Ended planned = run("plan small" + sets);
  EXPECT_EQ(planned.code, 0) << planned.err;
  EXPECT_NE(planned.out.find("embedding, layers 0-"), std::string::npos) << planned.out;
  std::ofstream(folder / "run.toml") << "[model]\nname = \"./small\"\n";
  EXPECT_EQ(run("plan run.toml" + sets).out, planned.out);
  EXPECT_EQ(run("explain small --pass plan" + sets).code, 0);
  const std::string checked = run("check small --all" + sets).out;
  EXPECT_NE(checked.find("name = \"\""), std::string::npos) << checked;
  EXPECT_NE(checked.find("# folder small/\n"), std::string::npos) << checked;
  std::ofstream(folder / "saved.toml") << checked;
  fs::rename(folder / "small", folder / "moved");
  EXPECT_EQ(run("plan saved.toml").out, planned.out);
  EXPECT_EQ(run("plan run.toml").err,
            "error: [config] run.toml:2: model.name = \"./small\" is not a folder with a config.json\n");
  EXPECT_EQ(run("import moved run").code, 0);
  const Ended of_run = run("plan run/step_00000000 --set parallel.threads=1");
  EXPECT_NE(of_run.out.find("embedding, layers 0-"), std::string::npos) << of_run.err;
}

// Of the folder's weights, in any dtype, and of its import.
TEST_F(SmallFolder, IsEvaluatedInAnyDtype) {
  std::ofstream(folder / "ids.txt") << "1 2 3 4 5 6\n7 8 9 1 2 3\n";
  EXPECT_EQ(run("import small run").code, 0);
  const auto loss = [&](const std::string& model, const std::string& options) {
    const Ended ended = run("evaluate " + model + " --ids ids.txt" + options);
    EXPECT_EQ(ended.code, 0) << ended.err;
    const size_t at = ended.out.find("loss       ");
    return at == std::string::npos ? 0 : std::stod(ended.out.substr(at + 11));
  };
  const double whole = loss("small", " --dtype fp64");
  EXPECT_GT(whole, 1);
  for (const auto& [dtype, tolerance] :
       std::vector<std::pair<std::string, double>>{{"fp32", 1e-6}, {"fp16", 2e-3}, {"bf16", 2e-2}}) {
    EXPECT_NEAR(loss("small", " --dtype " + dtype), whole, tolerance * whole) << dtype;
    EXPECT_EQ(loss("run", " --dtype " + dtype), loss("small", " --dtype " + dtype)) << dtype;
  }
}

// The layout of the hub's cache.
TEST_F(SmallFolder, LinksAreFollowed) {
  fs::create_directory(folder / "hub");
  for (const char* name : {"config.json", "model.safetensors"})
    fs::create_symlink(folder / "small" / name, folder / "hub" / name);
  EXPECT_EQ(run("import hub run").out, "checkpoint run/step_00000000\n");
}

TEST_F(SmallFolder, DamageIsOneLineAndNothingIsWritten) {
  const std::string config = read("config.json"), weights = read("model.safetensors");
  const auto error = [&](const std::string& name, const std::string& text) {
    write(name, text);
    const Ended ended = run("import small run");
    EXPECT_EQ(ended.code, 1) << ended.out;
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_FALSE(fs::exists(folder / "run"));
    write("config.json", config), write("model.safetensors", weights);
    return ended.err;
  };
  EXPECT_EQ(error("config.json", std::string(100'000, '[')),
            "error: [model] \"small/config.json\":1: the values nest deeper than 64 levels\n");
  EXPECT_EQ(error("config.json", "{\"model_type\": \"" + std::string(17 << 20, 'x') + "\"}"),
            "error: [file] \"small/config.json\" has more than 16.0 MiB; a config.json has less\n");
  EXPECT_NE(error("config.json", "{}").find("model_type"), std::string::npos);
  for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, weights.size() - 1})
    EXPECT_NE(error("model.safetensors", weights.substr(0, size)).find("small/model.safetensors"), std::string::npos);
  // An index is used only without a single file.
  fs::rename(folder / "small" / "model.safetensors", folder / "small" / "model-00001-of-00001.safetensors");
  write("model.safetensors.index.json", std::string(100'000, '['));
  EXPECT_EQ(error("config.json", config),
            "error: [safetensors] \"small/model.safetensors.index.json\":1: the values nest deeper than 64 levels\n");
}

// Regardless of the size of a tensor, only a few parts of it are in memory.
TEST_F(SmallFolder, LargeTensorsPassThroughInParts) {
  if (!fs::exists("/usr/bin/time")) GTEST_SKIP() << "there is no /usr/bin/time";
  constexpr int64_t kMost = 72 << 20;
  std::ofstream(folder / "text.txt") << std::string(4000, 'a');
  ASSERT_EQ(run("prepare text.txt --tokenizer bytes --output corpus").code, 0);
  std::ofstream(folder / "run.toml")
      << "[model]\nlayers = 1\nembed = 512\nheads = 8\nvocab = 40960\n[data]\ntrain = \"corpus/train\"\n[train]\n"
         "folder = \"run\"\nsteps = 1\nglobal_batch = 1\nsequence = 4\n[parallel]\nthreads = 1\n";
  ASSERT_EQ(run("train run.toml").code, 0);  // the embedding alone has 80 MiB
  EXPECT_LT(peak_of(folder.path(), "export run large"), kMost);
  EXPECT_LT(peak_of(folder.path(), "export large half --dtype bf16"), kMost);
  EXPECT_LT(peak_of(folder.path(), "import large again"), kMost);
  const int64_t weights = static_cast<int64_t>(fs::file_size(folder / "large/model.safetensors"));
  EXPECT_LT(peak_of(folder.path(), "evaluate large --data corpus/validation --sequence 4 --batch 8 --threads 1"),
            weights + (80 << 20));
  EXPECT_GT(weights, 80 << 20);
}

TEST_F(Exchange, AFolderIsUsedAsACheckpointIs) {
  const std::string tell = " --prompt \"Once upon a time\" --length 60 --temperature 0 --threads 1";
  const std::string told = run("generate stories" + tell);
  const auto published = read_json(stories_folder() / "expected.json").at("text").get<std::string>();
  EXPECT_EQ(told, published.substr(0, told.size() - 1) + "\n");
  EXPECT_GT(told.size(), 100u);
  EXPECT_EQ(run("generate stories --set parallel.tensor=2 parallel.pipe=2" + tell), told);
  EXPECT_EQ(run("import stories run"), "checkpoint run/step_00000000\n");
  EXPECT_EQ(run("generate run" + tell), told);

  std::ofstream(folder / "text.txt") << read_json(stories_folder() / "expected.json").at("text").get<std::string>();
  run("prepare text.txt --tokenizer stories --output corpus --validation 0 --threads 1");
  const std::string evaluate = " --data corpus/train --sequence 64 --threads 1";
  const std::string loss = last_lines(run("evaluate stories" + evaluate), 2);
  EXPECT_TRUE(loss.starts_with("loss ")) << loss;
  EXPECT_EQ(last_lines(run("evaluate run" + evaluate), 2), loss);
  EXPECT_EQ(last_lines(run("evaluate stories --ranks 2" + evaluate), 2), loss);

  // Training from the folder's weights starts at the folder's loss.
  std::ofstream(folder / "run.toml")
      << "[model]\nfamily = \"llama\"\nlayers = 5\nembed = 64\nheads = 8\nkv_heads = 4\nffn = 172\ncontext = 512\ntied "
         "= "
         "true\n[data]\ntrain = \"corpus/train\"\n[train]\nfolder = \"more\"\nsteps = 1\nglobal_batch = 1\nsequence = "
         "64\ninit_from = \"stories\"\n[parallel]\nthreads = 1\n";
  const Ended trained = run_kintsugi(folder.path(), "train run.toml");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE((trained.out + trained.err).find("weights from stories"), std::string::npos) << trained.out << trained.err;
  const auto first = nlohmann::json::parse(base::read_file(folder / "more/metrics.jsonl")
                                               .substr(0, base::read_file(folder / "more/metrics.jsonl").find('\n')));
  EXPECT_LT(first.at("loss").get<double>(), 2.0);
  EXPECT_EQ(trained.err.find("warning"), std::string::npos) << trained.err;

  // Each expert is a copy of the feed-forward layer, and the weights of a token's experts sum to 1.
  const Ended upcycled = run_kintsugi(folder.path(), "train run.toml --set train.folder=upcycled model.experts=4");
  ASSERT_EQ(upcycled.code, 0) << upcycled.err;
  EXPECT_NE((upcycled.out + upcycled.err).find("each expert a copy of its feed-forward layer, with new routers"),
            std::string::npos)
      << upcycled.out << upcycled.err;
  const std::string lines = base::read_file(folder / "upcycled/metrics.jsonl");
  const auto with_experts = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_NEAR(with_experts.at("loss").get<double>() / first.at("loss").get<double>(), 1.0, 1e-5);
  EXPECT_TRUE(with_experts.contains("busiest_expert"));
  const Ended narrow =
      run_kintsugi(folder.path(), "train run.toml --set train.folder=narrow model.experts=4 model.ffn=100");
  EXPECT_NE(narrow.err.find("an expert of this model needs [embed:64 ffn:100]: model.ffn must be that of the dense"),
            std::string::npos)
      << narrow.err;

  const Ended other = run_kintsugi(folder.path(), "train run.toml --set train.folder=other model.rope_theta=500000");
  EXPECT_NE(other.err.find("warning: the weights of \"stories\" are of a model with rope_theta = 10000.0; here it is "
                           "500000.0\n"),
            std::string::npos)
      << other.err;
}

TEST_F(Exchange, WhatIsImportedIsExportedBitForBit) {
  run("import stories run");
  run("export run back");
  expect_same("stories/model.safetensors", "back/model.safetensors");
  expect_same("stories/tokenizer.model", "back/tokenizer.model");
  run("export run parts --shard-size 200kB");
  EXPECT_FALSE(fs::exists(folder / "parts/model.safetensors"));
  run("export parts joined");
  expect_same("stories/model.safetensors", "joined/model.safetensors");
  run("export stories half --dtype bf16");
  EXPECT_LT(fs::file_size(folder / "half/model.safetensors"),
            fs::file_size(folder / "back/model.safetensors") / 2 + 9999);
  EXPECT_NE(run("show half").find("torch_dtype") == std::string::npos, false);
}

TEST_F(Exchange, ErrorsSayWhatIsMissing) {
  EXPECT_EQ(error("import stories stories"),
            "error: [import] \"stories\" is not empty; name a folder that is empty or does not exist\n");
  EXPECT_EQ(error("export stories new --dtype fp8"), "error: [export] --dtype fp8 is not fp32, bf16 or fp16\n");
  EXPECT_EQ(error("export stories new --shard-size 5"),
            "error: [export] --shard-size 5 is not a size; write e.g. 5GB or 512MiB\n");
  fs::copy(fs::path(__FILE__).parent_path() / "families/llama", folder / "small");
  fs::copy(folder / "stories/tokenizer.model", folder / "small/tokenizer.model");
  EXPECT_EQ(error("generate small --prompt Once"),
            "error: [generate] the prompt contains token id 403, but the model's embedding has 29 rows; the tokenizer "
            "belongs to a different model\n");
  fs::remove(folder / "stories/tokenizer.model");
  EXPECT_EQ(error("generate stories"),
            "error: [generate] \"stories\" has no tokenizer, which is needed to decode text\n");
  fs::rename(folder / "stories/model.safetensors", folder / "stories/pytorch_model.bin");
  EXPECT_EQ(error("import stories run"),
            "error: [safetensors] \"stories\" holds pytorch_model.bin, which is not read; write it as safetensors with "
            "transformers' save_pretrained(safe_serialization=True)\n");
  EXPECT_FALSE(fs::exists(folder / "run"));
}

}  // namespace kintsugi::tests::exchange_test
