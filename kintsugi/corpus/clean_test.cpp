#include "kintsugi/corpus/clean.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <map>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/corpus/corpus_page.h"
#include "kintsugi/corpus/documents.h"
#include "kintsugi/corpus/prepare_corpus.h"
#include "kintsugi/data/hash.h"
#include "kintsugi/data/token_file.h"

namespace kintsugi::corpus {
namespace clean_test {
namespace {

namespace fs = std::filesystem;

class CleanCorpus : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              fmt::format("clean_{}", testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(std::string_view name) const { return (folder_ / name).string(); }
  void write(std::string_view name, std::string_view text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  static std::vector<std::string> texts(const fs::path& file) {
    std::vector<std::string> list;
    std::istringstream lines(base::read_file(file));
    for (std::string line; std::getline(lines, line);)
      list.emplace_back(base::Json::parse("test", file.string(), line).at("text").text());
    return list;
  }
  static std::string error_of(const Spec& spec, const fs::path& to) {
    try {
      clean(spec, to, {});
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

// Document i of a corpus: some are copies, some differ from an earlier one in a word.
std::string document(uint64_t i) {
  std::string text;
  const uint64_t of = i % 10 == 7 || i % 10 == 8 ? i - i % 10 : i;
  for (uint64_t w = 0; w < 60; ++w) text += fmt::format("w{} ", data::mix(of, w) % 5000);
  if (i % 10 == 8) text += "changed";
  return text;
}

TEST_F(CleanCorpus, DropsDuplicatesAndKeepsTheFirst) {
  std::string lines;
  for (uint64_t i = 0; i < 500; ++i) lines += fmt::format("{{\"id\": {}, \"text\": \"{}\"}}\n", i, document(i));
  write("a.jsonl", lines);
  write("b.jsonl", fmt::format("{{\"text\": \"{}\"}}\n{{\"text\": \"new\"}}\n", document(3)));
  Spec spec;
  spec.sources = {{.domain = "a", .paths = {path("a.jsonl")}}, {.domain = "b", .paths = {path("b.jsonl")}}};
  spec.deduplicate.near = 0.7;
  std::string outputs[2];
  for (int threads : {1, 3}) {
    const Cleaned cleaned = clean(spec, folder_ / "out", {.threads = threads});
    EXPECT_EQ(cleaned.domains[0].documents[static_cast<size_t>(Verdict::kept)], 400u);
    EXPECT_EQ(cleaned.domains[0].documents[static_cast<size_t>(Verdict::exact_duplicate)], 50u);
    EXPECT_EQ(cleaned.domains[0].documents[static_cast<size_t>(Verdict::near_duplicate)], 50u);
    EXPECT_EQ(cleaned.domains[1].documents[static_cast<size_t>(Verdict::exact_duplicate)], 1u);
    EXPECT_EQ(texts(folder_ / "out/b.jsonl"), std::vector<std::string>{"new"});
    const std::vector<std::string> kept = texts(folder_ / "out/a.jsonl");
    ASSERT_EQ(kept.size(), 400u);
    EXPECT_EQ(kept[7], document(9));
    outputs[threads / 3] = base::read_file(folder_ / "out/a.jsonl");
    EXPECT_FALSE(fs::exists(folder_ / "out/.notes"));
  }
  EXPECT_EQ(outputs[0], outputs[1]);
}

TEST_F(CleanCorpus, CountsAddUp) {
  write("a.jsonl",
        "{\"text\": \"\"}\n{\"text\": \"same\"}\n{\"text\": \"same\"}\n\nnot json\n{\"other\": 1}\n{\"text\": \"long "
        "enough\"}\n");
  Spec spec;
  spec.sources = {{.domain = "a", .paths = {path("a.jsonl")}}};
  EXPECT_TRUE(error_of(spec, folder_ / "out").starts_with(fmt::format("[prepare] \"{}\":5: ", path("a.jsonl"))));
  spec.filter.skip_bad_lines = 2;
  const Cleaned cleaned = clean(spec, folder_ / "out", {});
  const Counts& counts = cleaned.domains[0];
  EXPECT_EQ(counts.bad_lines, 2u);
  uint64_t documents = 0, bytes = 0;
  for (size_t v = 0; v < kVerdicts; ++v) {
    documents += counts.documents[v];
    bytes += counts.bytes[v];
  }
  EXPECT_EQ(documents, 4u);
  EXPECT_EQ(bytes, 19u);
  EXPECT_EQ(counts.documents[static_cast<size_t>(Verdict::too_short)], 1u);
  const std::string page = html_of(cleaned, spec, "test");
  EXPECT_NE(page.find("dropped: exact duplicate"), std::string::npos);
  const auto json = base::Json::parse("test", "counts", json_of(cleaned));
  EXPECT_EQ(json.at("domains").at("a").at("kept").at("documents").whole(), 2);
}

TEST_F(CleanCorpus, EachFormatIsRead) {
  write("page.txt", "one file is one document \xff\n");
  write(
      "mag.jsonl",
      "{\"IndexedAbstract\": {\"IndexLength\": 4, \"InvertedIndex\": {\"the\": [0, 2], \"cat\": [1], \"mat\": [3]}}}\n"
      "{\"IndexedAbstract\": {\"b\": [1], \"a\": [0]}}\n");
  write("text.txt", "abc");
  data::PrepareOptions prepare;
  prepare.inputs = {path("text.txt")};
  prepare.output = folder_ / "tokens";
  prepare.validation = 0;
  data::prepare(prepare);
  write("bare.bin", std::string("a\0b\0\0\1c\0", 8));  // nanoGPT: 256 ends a document
  Spec spec;
  spec.sources = {
      {.domain = "text", .format = Format::text, .paths = {path("page.txt")}},
      {.domain = "mag", .format = Format::inverted, .paths = {path("mag.jsonl")}, .field = "IndexedAbstract"},
      {.domain = "ids",
       .format = Format::tokens,
       .paths = {path("tokens/train")},
       .tokenizer = path("tokens/tokenizer.json")},
      {.domain = "bare",
       .format = Format::tokens,
       .paths = {path("bare.bin")},
       .tokenizer = path("tokens/tokenizer.json")}};
  clean(spec, folder_ / "out", {.threads = 2});
  EXPECT_EQ(texts(folder_ / "out/text.jsonl"), std::vector<std::string>{"one file is one document \uFFFD\n"});
  EXPECT_EQ(texts(folder_ / "out/mag.jsonl"), (std::vector<std::string>{"the cat the mat", "a b"}));
  EXPECT_EQ(texts(folder_ / "out/ids.jsonl"), std::vector<std::string>{"abc"});
  EXPECT_EQ(texts(folder_ / "out/bare.jsonl"), (std::vector<std::string>{"ab", "c"}));
}

TEST_F(CleanCorpus, AnInterruptedPipelineContinues) {
  std::string lines;
  for (uint64_t i = 0; i < 200; ++i) lines += fmt::format("{{\"text\": \"{}\"}}\n", document(i));
  write("a.jsonl", lines);
  write("b.jsonl", "{\"text\": 5}\n");
  Spec spec;
  spec.sources = {{.domain = "a", .paths = {path("a.jsonl")}}, {.domain = "b", .paths = {path("b.jsonl")}}};
  spec.deduplicate.near = 0.7;
  EXPECT_NE(error_of(spec, folder_ / "out"), "");
  write("b.jsonl", "{\"text\": \"five\"}\n");
  const Cleaned again = clean(spec, folder_ / "out", {});
  EXPECT_EQ(again.continued, 1u);
  const std::string continued = base::read_file(folder_ / "out/a.jsonl");
  const Cleaned whole = clean(spec, folder_ / "out", {});
  EXPECT_EQ(whole.continued, 0u);
  EXPECT_EQ(base::read_file(folder_ / "out/a.jsonl"), continued);
  // Notes of another spec are not used.
  write("b.jsonl", "{\"text\": 5}\n");
  EXPECT_NE(error_of(spec, folder_ / "out"), "");
  write("b.jsonl", "{\"text\": \"five\"}\n");
  spec.deduplicate.near = 0.9;
  EXPECT_EQ(clean(spec, folder_ / "out", {}).continued, 0u);
  const std::atomic<bool> stop = true;
  EXPECT_THROW(clean(spec, folder_ / "out", {.stop = &stop}), base::UserError);
}

TEST_F(CleanCorpus, DomainsShareATokenizer) {
  std::string a, b;
  for (uint64_t i = 0; i < 60; ++i) {
    a += fmt::format("{{\"text\": \"{}\"}}\n", document(i));
    b += fmt::format("{{\"text\": \"numbers {} and {}\"}}\n", i, i * i);
  }
  write("a.jsonl", a);
  write("b.jsonl", b);
  Spec spec;
  spec.sources = {{.domain = "a", .paths = {path("a.jsonl")}}, {.domain = "b", .paths = {path("b.jsonl")}}};
  data::PrepareOptions options;
  options.tokenizer = "bpe:400";
  options.output = folder_ / "corpus";
  options.threads = 1;
  const PreparedCorpus prepared = prepare_corpus(spec, options);
  ASSERT_EQ(prepared.domains.size(), 2u);
  const std::string tokenizer = base::read_file(folder_ / "corpus/tokenizer.json");
  for (const PreparedDomain& domain : prepared.domains) {
    EXPECT_EQ(base::read_file(folder_ / "corpus" / domain.name / "tokenizer.json"), tokenizer);
    const data::TokenFile file(folder_ / "corpus" / domain.name / "train");
    EXPECT_EQ(file.num_tokens(), domain.result.train.tokens);
  }
  EXPECT_TRUE(fs::exists(folder_ / "corpus/report.html"));
  EXPECT_THROW(prepare_corpus(spec, options), base::UserError);  // it is there
}

}  // namespace
}  // namespace clean_test
}  // namespace kintsugi::corpus
