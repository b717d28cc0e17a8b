#include "kintsugi/data/prepare.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "kintsugi/data/prepare_harness_test.h"
#include "kintsugi/data/token_summary.h"
#include "kintsugi/text/tokenizer.h"
#include "tests/paths.h"

namespace kintsugi::data::prepare_test {
namespace {

// The documents of a token file, decoded.
std::vector<std::string> documents_of(const std::filesystem::path& folder, const std::string& name) {
  const auto tokenizer = text::load_tokenizer(folder);
  const TokenFile file(folder / name);
  const std::vector<int32_t> ids = all_tokens(file);
  std::vector<std::string> documents;
  for (uint64_t d = 0; d < file.num_documents(); ++d) {
    const uint64_t begin = file.document_begin(d);
    uint64_t end = file.document_begin(d + 1);
    std::string mark;
    if (end > begin && ids[end - 1] == tokenizer->end_of_text()) {
      --end;
      mark = "|";
    }
    documents.push_back(tokenizer->decode(std::span(ids).subspan(begin, end - begin)) + mark);
  }
  return documents;
}

std::vector<std::string> sorted(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  return texts;
}

}  // namespace

TEST(Prepare, AFolderOfDocuments) {
  const TestFolder folder;
  for (int i = 0; i < 20; ++i) {
    folder.write("in/" + std::string(1, static_cast<char>('a' + i % 3)) + "/" + std::to_string(i) + ".txt",
                 "text " + std::to_string(i));
  }
  folder.write("in/.hidden", "no");
  folder.write("in/empty.txt", "");
  folder.write("in/picture.png", std::string("PNG\0\0", 5));
  const PrepareResult result = prepare(options_for(folder, {"in"}));
  EXPECT_EQ(result.train.documents, 18u);
  EXPECT_EQ(result.validation.documents, 2u);
  EXPECT_EQ(result.empty_documents, 1u);
  EXPECT_EQ(result.vocab_size, 257);
  EXPECT_EQ(result.notes, (std::vector<std::string>{"1 skipped: binary files (a NUL in the first 8 KiB, or archives)",
                                                    "1 skipped: hidden files and folders"}));
  std::vector<std::string> all = documents_of(folder / "out", "train");
  for (const std::string& document : documents_of(folder / "out", "validation")) all.push_back(document);
  std::vector<std::string> expected;
  for (int i = 0; i < 20; ++i) expected.push_back("text " + std::to_string(i) + "|");
  EXPECT_EQ(sorted(all), sorted(expected));
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "out"))
    files.push_back(entry.path().filename());
  EXPECT_EQ(sorted(files), (std::vector<std::string>{"tokenizer.json", "train.bin", "train.idx", "train.json",
                                                     "validation.bin", "validation.idx", "validation.json"}));
  const TokenSummary summary = summarize(TokenFile(folder / "out/train"), 1, nullptr);
  EXPECT_EQ(summary.tokenizer, tokenizer_fingerprint(base::read_file(folder / "out/tokenizer.json")));
  EXPECT_EQ(summary.vocab_size, 257);
}

TEST(Prepare, TheSameBytesForAnyThreadsAndChunks) {
  const TestFolder folder;
  for (int i = 0; i < 30; ++i) folder.write("in/" + std::to_string(i), mixed_text(static_cast<size_t>(i * i)));
  PrepareOptions options = options_for(folder, {"in"});
  options.tokenizer = "bpe:400";
  std::string bin, idx, json;
  for (const int threads : {1, 2, 5}) {
    for (const size_t chunk : {size_t{200}, size_t{5000}, size_t{1} << 20}) {
      options.threads = threads;
      options.chunk_bytes = chunk;
      options.force = true;
      prepare(options);
      if (bin.empty()) {
        bin = base::read_file(folder / "out/train.bin");
        idx = base::read_file(folder / "out/train.idx");
        json = base::read_file(folder / "out/tokenizer.json");
      }
      EXPECT_EQ(base::read_file(folder / "out/train.bin"), bin) << threads << " " << chunk;
      EXPECT_EQ(base::read_file(folder / "out/train.idx"), idx) << threads << " " << chunk;
      EXPECT_EQ(base::read_file(folder / "out/tokenizer.json"), json) << threads << " " << chunk;
    }
  }
}

TEST(Prepare, ChunksGiveTheIdsOfTheWhole) {
  const TestFolder folder;
  std::string text = mixed_text(5000);
  folder.write("big.txt", text);
  folder.write("other.txt", "something for validation");
  PrepareOptions options = options_for(folder, {"big.txt"});
  options.validation_text = folder.text("other.txt");
  options.tokenizer = "bpe:400";
  options.chunk_bytes = 100;
  prepare(options);
  std::vector<std::string> tokenizers = {folder.text("out")};
  if (std::filesystem::exists(tests::shared_folder() + "/data")) {
    tokenizers.push_back(tests::shared_folder() + "/data/gpt2_bpe");
    tokenizers.push_back(tests::shared_folder() + "/data/neox_tokenizer");
  }
  for (const std::string& path : tokenizers) {
    if (path.ends_with("neox_tokenizer")) {  // it has no id for a byte of invalid UTF-8
      for (size_t at; (at = text.find('\xff')) != std::string::npos;) text.replace(at, 2, "ab");
      folder.write("big.txt", text);
    }
    options.tokenizer = path;
    options.output = folder / "again";
    options.force = true;
    prepare(options);
    const auto tokenizer = text::load_tokenizer(path);
    std::vector<int32_t> ids = tokenizer->encode(text);
    ids.push_back(*tokenizer->end_of_text());
    EXPECT_EQ(all_tokens(TokenFile(folder / "again/train")), ids) << path;
  }
}

// Tokens, patterns and added tokens that span words: documents are cut elsewhere, or not at all.
TEST(Prepare, NothingIsCutWhereATokenSpans) {
  const std::string bpe = R"("model":{"type":"BPE","unk_token":"<u>","fuse_unk":true,"vocab":{"<u>":0,"a":1,"b":2,"c":3,
      "d":4,"e":5,"▁":6,"a▁":7,"a▁b":8,"bc":9,"▁▁":10,"c\n":11,"\n":12,"d▁":13,"d▁e":14,"▁a":15},
      "merges":["a ▁","a▁ b","b c","▁ ▁","c \n","d ▁","d▁ e","▁ a"]})";
  const std::string marks =
      R"("normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},"pre_tokenizer":null,)";
  const std::string levels = R"("model":{"type":"WordLevel","unk_token":"u","vocab":{"u":0,"a":1,"ab":2,"a b":3,"b c":4,
      "c":5,"d e":6," ":7}})";
  const auto split = [](const std::string& pattern, const std::string& behavior) {
    return R"("normalizer":null,"pre_tokenizer":{"type":"Split","pattern":{"Regex":")" + pattern +
           R"("},"behavior":")" + behavior + R"(","invert":false},)";
  };
  const auto added = [](const std::string& content, const std::string& flag) {
    return R"("added_tokens":[{"id":16,"content":")" + content + R"(","special":true,")" + flag + R"(":true}],)";
  };
  const std::vector<std::string> definitions = {
      marks + bpe,
      added("b a", "single_word") + marks + bpe,
      added("e", "rstrip") + marks + bpe,
      added(" c", "single_word") + marks + bpe,
      split("[a-e]+ [a-e]+", "Isolated") + levels,
      split("[a-e]+( [a-e]+)?", "Removed") + levels,
      split("(?<=a) b", "Isolated") + levels,
      split(" ", "MergedWithPrevious") + levels,
      split(" ?[a-e]+", "Isolated") + bpe,
      split("\\\\s+", "MergedWithNext") + bpe,
      R"("pre_tokenizer":{"type":"WhitespaceSplit"},)" + levels,
      R"("pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},)" + bpe,
      R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\s+"},
          "behavior":"Isolated","invert":false},{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"}]},)" +
          bpe};
  const TestFolder folder;
  std::mt19937 random(1);
  std::string text;
  for (int i = 0; i < 6000; ++i) text += "aabbccdde      \n\tz"[random() % 18];
  folder.write("text", text);
  for (const std::string& definition : definitions) {
    folder.write("tokenizer.json", "{" + definition + "}");
    PrepareOptions options = options_for(folder, {"text"});
    options.tokenizer = folder.text("tokenizer.json");
    options.validation = 0.0;
    options.chunk_bytes = 40;
    options.force = true;
    prepare(options);
    const std::vector<int32_t> ids = text::load_tokenizer(options.tokenizer)->encode(text);
    EXPECT_EQ(all_tokens(TokenFile(folder / "out/train")), ids) << definition;
  }
}

TEST(Prepare, OneDocumentIsSplitByPosition) {
  const TestFolder folder;
  folder.write("one.txt", "0123456789é1234567");  // 18 characters: 16 and 2
  PrepareOptions options = options_for(folder, {"one.txt"});
  EXPECT_TRUE(prepare(options).split_by_position);
  EXPECT_EQ(documents_of(folder / "out", "train"), (std::vector<std::string>{"0123456789é12345"}));
  EXPECT_EQ(documents_of(folder / "out", "validation"), (std::vector<std::string>{"67|"}));
  options.chunk_bytes = 4;
  options.force = true;
  options.tokenizer = "chars";
  EXPECT_EQ(prepare(options).vocab_size, 11);
  EXPECT_EQ(documents_of(folder / "out", "train"), (std::vector<std::string>{"0123456789é12345"}));
  EXPECT_EQ(documents_of(folder / "out", "validation"), (std::vector<std::string>{"67"}));
  options.validation = 0.0;
  EXPECT_FALSE(prepare(options).has_validation);
  EXPECT_FALSE(std::filesystem::exists(folder / "out/validation.bin"));
  EXPECT_EQ(documents_of(folder / "out", "train"), (std::vector<std::string>{"0123456789é1234567"}));
}

TEST(Prepare, JsonLines) {
  const TestFolder folder;
  folder.write("in/a.jsonl",
               "{\"text\": \"one\\n\", \"id\": 1}\n\n{\"id\": 2, \"text\": \"two\"}\r\n{\"text\": \"\"}\n");
  folder.write("in/b.ndjson", "{\"text\": \"three\"}");
  folder.write("in/readme.txt", "not read");
  PrepareOptions options = options_for(folder, {"in"});
  options.field = "text";
  options.validation = 0.34;
  for (const size_t chunk : {size_t{10}, size_t{1} << 20}) {
    options.chunk_bytes = chunk;
    options.force = true;
    const PrepareResult result = prepare(options);
    EXPECT_EQ(result.train.documents, 2u);
    EXPECT_EQ(result.validation.documents, 1u);
    EXPECT_EQ(result.empty_documents, 1u);
    std::vector<std::string> all = documents_of(folder / "out", "train");
    all.push_back(documents_of(folder / "out", "validation")[0]);
    EXPECT_EQ(sorted(all), (std::vector<std::string>{"one\n|", "three|", "two|"}));
  }
  folder.write("single.jsonl", "{\"text\": \"0123456789\"}\n");
  options.inputs = {folder.text("single.jsonl")};
  options.validation.reset();
  prepare(options);
  EXPECT_EQ(documents_of(folder / "out", "train"), (std::vector<std::string>{"012345678"}));
  EXPECT_EQ(documents_of(folder / "out", "validation"), (std::vector<std::string>{"9|"}));
}

TEST(Prepare, BadJsonLinesAreNamed) {
  const TestFolder folder;
  PrepareOptions options = options_for(folder, {"a.jsonl"});
  options.field = "text";
  const std::string good = "{\"text\": \"x\"}\n{\"text\": \"y\"}\n";
  folder.write("a.jsonl", good + "{\"title\": 1, \"body\": 2}\n");
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] \"a.jsonl\":3: there is no field \"text\"; its fields are \"title\", \"body\"");
  folder.write("a.jsonl", good + "{\"text\": 5}\n");
  EXPECT_EQ(prepare_error(folder, options), "[prepare] \"a.jsonl\":3: \"text\" is 5; it should be a text");
  folder.write("a.jsonl", good + "[1]\n");
  EXPECT_EQ(prepare_error(folder, options), "[prepare] \"a.jsonl\":3: the value is a list; it should be an object");
  folder.write("a.jsonl", good + "\n{\"text\": \"x\n");
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] \"a.jsonl\":4: the JSON ends too early, after 11 bytes; it seems to be cut off");
  folder.write("a.jsonl", good + "{\"text\": \"x\", \"more\": [1e999]}\n");
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] \"a.jsonl\":3: \"more[0]\" is 1e999, which is out of the range of numbers");
  options.field.clear();
  EXPECT_EQ(
      prepare_error(folder, options),
      "[prepare] \"a.jsonl\" is JSONL; --field says which field of its lines is the text, for example --field text");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

// As written by Python's json.dumps.
TEST(Prepare, LinesOfPython) {
  const TestFolder folder;
  folder.write("a.jsonl",
               "{\"text\": \"NaN \\ud83d\\ude00\", \"score\": NaN}\n"
               "{\"score\": [Infinity, -Infinity], \"text\": \"\\ud83d, \\\\ud83d, \\\"NaN\\\" \\udc00x\"}\n"
               "{\"text\": \"plain\"}\n");
  PrepareOptions options = options_for(folder, {"a.jsonl"});
  options.field = "text";
  options.validation = 0.0;
  const PrepareResult result = prepare(options);
  EXPECT_EQ(documents_of(folder / "out", "train"),
            (std::vector<std::string>{"NaN \U0001F600|", "\uFFFD, \\ud83d, \"NaN\" \uFFFDx|", "plain|"}));
  EXPECT_EQ(result.notes, (std::vector<std::string>{"3 NaN or infinities in lines, read as null",
                                                    "2 surrogates without another half, read as U+FFFD"}));
  folder.write("a.jsonl", "{\"text\": NaN}\n");
  options.force = true;
  EXPECT_EQ(prepare_error(folder, options), "[prepare] \"a.jsonl\":1: \"text\" is null; it should be a text");
}

TEST(Prepare, SomeBadLinesArePassedOver) {
  const TestFolder folder;
  const std::string bad = "{\"text\": \"x\"}\n{\"text\": \n\n{\"text\": 5}\n{\"text\": \"y\"}\n[]\n{\"text\": \"z\"}\n";
  folder.write("a.jsonl", bad);
  PrepareOptions options = options_for(folder, {"a.jsonl"});
  options.field = "text";
  options.validation = 0.0;
  options.force = true;
  for (const size_t chunk : {size_t{8}, size_t{1} << 20}) {
    for (const char* tokenizer : {"bytes", "chars"}) {
      options.chunk_bytes = chunk;
      options.tokenizer = tokenizer;
      options.skip_bad_lines = 3;
      const PrepareResult result = prepare(options);
      EXPECT_EQ(documents_of(folder / "out", "train"), (std::vector<std::string>{"x|", "y|", "z|"}));
      ASSERT_EQ(result.notes.size(), 1u);
      EXPECT_EQ(result.notes[0].substr(0, 30), "3 bad lines skipped; the first");
      EXPECT_TRUE(
          result.notes[0].ends_with("a.jsonl\":2: the JSON ends too early, after 9 bytes; it seems to be cut "
                                    "off"))
          << result.notes[0];
    }
  }
  options.threads = 1;
  options.skip_bad_lines = 2;
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] \"a.jsonl\":6: the value is a list; it should be an object; --skip-bad-lines 2 skipped as "
            "many before it");
}

// Single-pass inputs: standard input and pipes, as from process substitution.
TEST(Prepare, PipesAndTheStandardInput) {
  const TestFolder folder;
  const std::string text = mixed_text(3000);
  folder.write("plain.txt", text);
  PrepareOptions options = options_for(folder, {"plain.txt"});
  options.tokenizer = "bpe:300";
  prepare(options);
  const std::string fifo = folder.text("pipe");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int kept = ::dup(STDIN_FILENO);
  for (const bool standard : {false, true}) {
    PrepareOptions piped = options;
    piped.inputs = {standard ? "-" : fifo};
    piped.output = folder / (standard ? "of_input" : "of_pipe");
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    if (standard) ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
    std::thread writer([&] {
      const int to = standard ? ends[1] : ::open(fifo.c_str(), O_WRONLY);
      for (size_t at = 0; at < text.size();) {
        const ssize_t n = ::write(to, text.data() + at, std::min<size_t>(text.size() - at, 1000));
        if (n <= 0) break;
        at += static_cast<size_t>(n);
      }
      ::close(to);
      if (!standard) ::close(ends[1]);
    });
    EXPECT_EQ(prepare(piped).bytes, text.size());
    writer.join();
    for (const char* file : {"train.bin", "validation.bin", "tokenizer.json"})
      EXPECT_EQ(base::read_file(folder / "out" / file), base::read_file(piped.output / file)) << standard;
  }
  ::dup2(kept, STDIN_FILENO);
  ::close(kept);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) files.push_back(entry.path().filename());
  EXPECT_EQ(sorted(files), (std::vector<std::string>{"of_input", "of_pipe", "out", "pipe", "plain.txt"}));
  options.inputs = {"-"};
  options.validation_text = "-";
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] the standard input is read once; it is the text or the validation text");
  options.validation_text = "";
  options.inputs = {"-", "-"};
  EXPECT_EQ(prepare_error(folder, options), "[prepare] the standard input is read once, and \"-\" is given 2 times");
}

TEST(Prepare, AValidationTextOfItsOwn) {
  const TestFolder folder;
  folder.write("in/a.txt", "alpha");
  folder.write("in/v.txt", "omega");
  PrepareOptions options = options_for(folder, {"in"});
  options.validation_text = folder.text("in/v.txt");
  options.tokenizer = "chars";
  const PrepareResult result = prepare(options);
  EXPECT_EQ(documents_of(folder / "out", "train"), (std::vector<std::string>{"alpha"}));
  EXPECT_EQ(documents_of(folder / "out", "validation"), (std::vector<std::string>{"omega"}));
  EXPECT_EQ(result.notes, (std::vector<std::string>{"1 left out of the training text: files of the validation text"}));
  options.validation = 0.1;
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] --validation and --validation-text exclude each other: the validation text is either a share of "
            "the corpus or a separate text");
}

TEST(Prepare, PatternsAndRepeatedInputs) {
  const TestFolder folder;
  folder.write("b.txt", "bb");
  folder.write("a.txt", "aa");
  folder.write("c.md", "cc");
  PrepareOptions options = options_for(folder, {"*.txt", "b.txt", "c.md"});
  options.validation = 0.0;
  const PrepareResult result = prepare(options);
  EXPECT_EQ(documents_of(folder / "out", "train"), (std::vector<std::string>{"aa|", "bb|", "cc|"}));
  EXPECT_EQ(result.notes, (std::vector<std::string>{"1 skipped: files named twice"}));
}

TEST(Prepare, BadInput) {
  const TestFolder folder;
  EXPECT_EQ(prepare_error(folder, options_for(folder, {"none"})), "[prepare] there is no file or folder \"none\"");
  EXPECT_EQ(prepare_error(folder, options_for(folder, {"*.txt"})), "[prepare] no file matches \"*.txt\"");
  std::filesystem::create_directory(folder / "in");
  EXPECT_EQ(prepare_error(folder, options_for(folder, {"in"})),
            "[prepare] no file to read in 1 input: 0 binary, 0 hidden, 0 other files were skipped");
  folder.write("in/a", "");
  EXPECT_EQ(prepare_error(folder, options_for(folder, {"in"})),
            "[prepare] the corpus is empty: 1 file without a character of text");
  folder.write("in/a", "xy");
  EXPECT_EQ(prepare_error(folder, options_for(folder, {"in", "/dev/null"})),
            "[prepare] \"/dev/null\" is neither a file nor a folder");
  folder.write("tiny", "x");
  EXPECT_EQ(prepare_error(folder, options_for(folder, {"tiny"})),
            "[prepare] \"tiny\" has 1 characters, too few to reserve 0.1 of them for validation; add text, or set "
            "--validation-text or --validation 0");
  PrepareOptions options = options_for(folder, {"in"});
  options.validation = 1.5;
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] --validation 1.5 is not a fraction of the documents: at least 0 and below 1, such as 0.1");
  options = options_for(folder, {"in"});
  options.tokenizer = "byte";
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] --tokenizer byte is neither bytes, chars, bpe:N, nor a file or folder");
  options.tokenizer = "bpe:8k";
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] --tokenizer bpe:8k: after \"bpe:\" comes the size of the vocabulary, such as bpe:8192");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(Prepare, AnUnreadableFileIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const TestFolder folder;
  folder.write("a.txt", "text");
  ::chmod((folder / "a.txt").c_str(), 0);
  EXPECT_EQ(prepare_error(folder, options_for(folder, {"a.txt"})),
            "[prepare] cannot open \"a.txt\": Permission denied");
}

TEST(Prepare, CharactersThatTheTokenizerLacksAreNamed) {
  const TestFolder folder;
  folder.write("a.txt", "abcabc abcabc");
  PrepareOptions options = options_for(folder, {"a.txt"});
  options.tokenizer = "chars";
  prepare(options);
  folder.write("b.txt", "abcdabcd");
  options.inputs = {folder.text("b.txt")};
  options.tokenizer = folder.text("out/tokenizer.json");
  options.output = folder / "other";
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] b.txt: the character U+0064 \"d\" at byte 3 of the text is not among the 4 characters of the "
            "vocabulary");
  folder.write("b.txt", "ab\xff");
  options.tokenizer = "chars";
  EXPECT_EQ(
      prepare_error(folder, options),
      "[tokenizer] b.txt: byte 0xff at byte 2 is not valid UTF-8, which chars needs; take bytes or bpe, or convert "
      "the text");
}

TEST(Prepare, ManyDocumentsFallByHash) {
  const TestFolder folder;
  std::string lines;
  for (int i = 0; i < 5000; ++i) lines += "{\"t\": \"" + std::to_string(i) + "\"}\n";
  folder.write("a.jsonl", lines);
  PrepareOptions options = options_for(folder, {"a.jsonl"});
  options.field = "t";
  const PrepareResult result = prepare(options);
  EXPECT_EQ(result.train.documents + result.validation.documents, 5000u);
  EXPECT_NEAR(static_cast<double>(result.validation.documents), 500.0, 100.0);
  const std::vector<std::string> one = documents_of(folder / "out", "validation");
  options.force = true;
  options.seed = 2;
  prepare(options);
  EXPECT_NE(documents_of(folder / "out", "validation"), one);
  options.validation = 1e-12;
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] no text is left for validation: 5000 documents, a share of 1e-12 for validation");
}

TEST(Prepare, ShakespeareIsNanoGpts) {
  const std::string path = tests::shared_folder() + "/data/tinyshakespeare";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  const TestFolder folder;
  PrepareOptions options;
  options.inputs = {path + "/input.txt"};
  options.tokenizer = "chars";
  options.output = folder / "out";
  const PrepareResult result = prepare(options);
  EXPECT_EQ(result.train.tokens, 1003854u);
  EXPECT_EQ(result.validation.tokens, 111540u);
  EXPECT_EQ(result.vocab_size, 65);
}

}  // namespace kintsugi::data::prepare_test
