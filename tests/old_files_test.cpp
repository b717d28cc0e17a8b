// Files of an earlier version load, and a run resumed from them gives the bits of that version. See
// old_files/README.md.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

#include "kintsugi/base/file.h"
#include "kintsugi/data/token_file.h"
#include "kintsugi/text/tokenizer.h"
#include "tests/paths.h"
#include "tests/process.h"

namespace kintsugi::tests::old_files_test {
namespace {

using nlohmann::ordered_json;

fs::path old_files() {
  return fs::path(source_folder()) / "tests" / "old_files";
}

// A copy of the old files.
class OldFolder {
 public:
  OldFolder() { fs::copy(old_files(), folder_.path(), fs::copy_options::recursive); }

  fs::path operator/(const fs::path& name) const { return folder_ / name; }
  std::string text(const fs::path& name) const { return base::read_file(folder_ / name); }
  std::string run(const std::string& arguments) const {
    const Ended ended = run_kintsugi(folder_.path(), arguments);
    EXPECT_EQ(ended.code, 0) << arguments << ": " << ended.err;
    return ended.out;
  }

 private:
  TemporaryFolder folder_;
};

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

// A line of metrics.jsonl: names and values as written, except those that depend on time.
std::string metrics(const std::string& line) {
  ordered_json json = ordered_json::parse(line);
  for (const char* name : {"tokens_per_second", "flops_per_second", "peak_share", "seconds"}) {
    EXPECT_TRUE(json.contains(name)) << name;
    json[name] = "any";
  }
  // The old files lack these.
  for (const char* name :
       {"loss_scale", "skipped_steps", "stage_seconds", "drain_seconds", "bits_per_byte", "validation_bits_per_byte"})
    json.erase(name);
  return json.dump();
}

void expect_same_metrics(const std::string& got, const std::string& want) {
  const std::vector<std::string> a = lines(got), b = lines(want);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(metrics(a[i]), metrics(b[i]));
}

// "[train]", "steps = 6": a configuration without the origins of its values.
std::vector<std::string> settings(const std::string& toml) {
  std::vector<std::string> all;
  for (std::string line : lines(toml)) {
    line = line.substr(0, line.find(" #"));
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty() && line[0] != '#') all.push_back(line);
  }
  return all;
}

// "/tensors/embedding.table/pieces/0/start" and all other names in an index, in order; without those about the run's
// data, which the old files lack.
std::vector<std::string> names(const std::string& index) {
  std::vector<std::string> all;
  const ordered_json flat = ordered_json::parse(index).flatten();
  for (const auto& [name, value] : flat.items())
    if (!name.starts_with("/state/data")) all.push_back(name);
  return all;
}

// The summary of a token file without its fingerprint, which the old files lack.
std::string without_fingerprint(const std::string& json) {
  ordered_json read = ordered_json::parse(json);
  EXPECT_EQ(read.erase("fingerprint"), 1u) << json;
  return read.dump(1) + "\n";
}

class OldRun : public testing::TestWithParam<const char*> {
 protected:
  const std::string run = GetParam();
  const fs::path source = old_files() / run;
  OldFolder folder;
};

TEST_P(OldRun, GoesOn) {
  folder.run("train " + run + ".toml --resume --set train.steps=6");
  expect_same_metrics(folder.text(run + "/metrics.jsonl"), folder.text("expected/" + run + ".jsonl"));
  const fs::path saved = run + "/step_00000006";
  const std::string index = folder.text(saved / "index.json");
  for (const std::string& line : lines(folder.text("expected/" + run + ".files")))
    EXPECT_NE(index.find(line), std::string::npos) << "not as before: " << line;
  EXPECT_EQ(names(index), names(base::read_file(source / "step_00000004" / "index.json")));
  // The configuration is unchanged except for the number of steps, evaluate_batches if run.toml does not set it, and a
  // renamed key; there may be keys that the old files lack.
  std::vector<std::string> before = settings(base::read_file(source / "config.toml"));
  std::erase_if(before, [](const std::string& setting) { return setting.starts_with("evaluate_batches"); });
  std::erase_if(before, [](const std::string& setting) { return setting.starts_with("device = "); });
  const std::string renamed = "kernels = \"reference\"";
  EXPECT_EQ(std::count(before.begin(), before.end(), renamed), 1);
  std::replace(before.begin(), before.end(), renamed, std::string("device = \"reference\""));
  EXPECT_EQ(std::count(before.begin(), before.end(), "steps = 4"), 1);
  std::replace(before.begin(), before.end(), std::string("steps = 4"), std::string("steps = 6"));
  // Axes that the old files lack have size 1 and default places.
  const std::string old_axes = "mesh_order = \"pipe data context tensor\"";
  EXPECT_EQ(std::count(before.begin(), before.end(), old_axes), 1);
  std::replace(before.begin(), before.end(), old_axes,
               std::string("mesh_order = \"pipe data context expert space tensor\""));
  for (const fs::path& file : {fs::path(run) / "config.toml", saved / "config.toml"}) {
    std::vector<std::string> after = settings(folder.text(file));
    // A section that the old files lack, with a key named like another.
    const auto lora = std::find(after.begin(), after.end(), std::string("[lora]"));
    const auto next =
        std::find_if(lora, after.end(), [](const std::string& s) { return s[0] == '[' && s != "[lora]"; });
    after.erase(lora, next);
    for (const std::string& setting : before)
      EXPECT_EQ(std::ranges::count(after, setting), std::ranges::count(before, setting)) << setting;
  }
}

TEST_P(OldRun, IsMadeAgain) {
  fs::remove_all(folder / run);
  folder.run("train " + run + ".toml");
  std::vector<std::string> steps = lines(folder.text("expected/" + run + ".jsonl"));
  ASSERT_EQ(steps.size(), 6u);
  expect_same_metrics(folder.text(run + "/metrics.jsonl"),
                      fmt::format("{}\n", fmt::join(steps.begin(), steps.begin() + 4, "\n")));
  for (const auto& entry : fs::directory_iterator(source / "step_00000004")) {
    const fs::path name = entry.path().filename();
    if (name.extension() != ".safetensors" && name != "tokenizer.json") continue;
    EXPECT_TRUE(base::read_file(entry.path()) == folder.text(fs::path(run) / "step_00000004" / name)) << name;
  }
}

TEST_P(OldRun, IsEvaluatedAndWritesText) {
  const std::string said = folder.run("evaluate " + run), loss = folder.text("expected/" + run + ".loss");
  EXPECT_NE(said.find("loss       " + loss), std::string::npos) << said << "instead of " << loss;
  const std::string temperature = run == "one" ? "0" : "1";
  EXPECT_EQ(folder.run("generate " + run + " --prompt 'two and' --length 24 --seed 3 --temperature " + temperature),
            folder.text("expected/" + run + ".text"));
  folder.run("show " + run + " --verify");
}

INSTANTIATE_TEST_SUITE_P(All, OldRun, testing::Values("one", "zero", "stages"),
                         [](const auto& info) { return std::string(info.param); });

TEST(OldFiles, WeightsBeginANewRun) {
  const OldFolder folder;
  folder.run("train one.toml --set train.init_from=one train.folder=from_one train.steps=2");
  expect_same_metrics(folder.text("from_one/metrics.jsonl"), folder.text("expected/from_one.jsonl"));
}

TEST(OldFiles, TokensAreThoseOfTheText) {
  const OldFolder folder;
  std::multiset<std::string> want;
  for (const std::string& line : lines(folder.text("text.jsonl")))
    want.insert(nlohmann::json::parse(line).at("text").get<std::string>());
  ASSERT_EQ(want.size(), 41u);
  for (const char* corpus : {"corpus", "letters"}) {
    const auto tokenizer = text::load_tokenizer(folder / corpus);
    std::multiset<std::string> got;
    for (const char* split : {"train", "validation"}) {
      const data::TokenFile file(folder / corpus / split);
      for (uint64_t d = 0; d < file.num_documents(); ++d) {
        std::vector<int32_t> ids(file.document_begin(d + 1) - file.document_begin(d));
        file.read(file.document_begin(d), ids);
        ASSERT_EQ(ids.back(), tokenizer->end_of_text());
        ids.pop_back();
        got.insert(tokenizer->decode(ids));
      }
    }
    EXPECT_EQ(got, want) << corpus;
  }
}

TEST(OldFiles, PreparedAgainTheyHaveTheSameBytes) {
  const OldFolder folder;
  folder.run("prepare text.jsonl --field text --tokenizer bpe:280 --output again/corpus");
  folder.run("prepare text.jsonl --field text --tokenizer chars --output again/letters");
  for (const std::string corpus : {"corpus", "letters"}) {
    for (const std::string name : {"train.bin", "train.idx", "validation.bin", "validation.idx", "tokenizer.json"})
      EXPECT_TRUE(folder.text("again/" + corpus + "/" + name) == folder.text(corpus + "/" + name)) << corpus << name;
    for (const std::string name : {"train.json", "validation.json"})
      EXPECT_EQ(without_fingerprint(folder.text("again/" + corpus + "/" + name)), folder.text(corpus + "/" + name));
  }
}

}  // namespace
}  // namespace kintsugi::tests::old_files_test
