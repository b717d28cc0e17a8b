#include "kintsugi/data/token_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "kintsugi/data/test_folder.h"
#include "kintsugi/data/token_summary.h"

namespace kintsugi::data {
namespace {

const std::vector<std::vector<int32_t>> kDocuments = {{5, 6, 7}, {}, {8}, {9, 10, 11, 999}};

template <typename T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// An index as Megatron writes it, byte by byte.
std::string index_of(uint8_t code, const std::vector<int32_t>& lengths, int item,
                     const std::vector<int64_t>& boundaries) {
  std::string idx("MMIDIDX\0\0", 9);
  put(idx, uint64_t{1});
  put(idx, code);
  put(idx, uint64_t{lengths.size()});
  put(idx, uint64_t{boundaries.size()});
  for (const int32_t length : lengths) put(idx, length);
  int64_t pointer = 0;
  for (const int32_t length : lengths) {
    put(idx, pointer);
    pointer += length * item;
  }
  for (const int64_t boundary : boundaries) put(idx, boundary);
  return idx;
}

struct Pair {
  TestFolder folder;
  std::string idx, bin;

  Pair() {
    write_tokens(folder / "t", kDocuments);
    idx = base::read_file(folder / "t.idx");
    bin = base::read_file(folder / "t.bin");
  }
  std::string error() const {
    std::ofstream(folder / "t.idx", std::ios::binary) << idx;  // no sync: there are many
    std::ofstream(folder / "t.bin", std::ios::binary) << bin;
    std::string text = error_of([&] { TokenFile file(folder / "t"); });
    for (size_t at; (at = text.find(folder.path().string() + "/")) != std::string::npos;) {
      text.erase(at, folder.path().string().size() + 1);
    }
    return text;
  }
};

}  // namespace

TEST(TokenFile, RoundTrip) {
  const TestFolder folder;
  write_tokens(folder / "t", kDocuments);
  const TokenFile file(folder / "t.bin");
  EXPECT_EQ(file.type(), TokenType::kU16);
  EXPECT_EQ(file.num_documents(), 4u);
  EXPECT_EQ(all_tokens(file), (std::vector<int32_t>{5, 6, 7, 8, 9, 10, 11, 999}));
  const std::vector<uint64_t> begins = {0, 3, 3, 4, 8};
  for (uint64_t d = 0; d <= 4; ++d) EXPECT_EQ(file.document_begin(d), begins[d]);
  const std::vector<uint64_t> documents = {0, 0, 0, 2, 3, 3, 3, 3};
  for (uint64_t t = 0; t < 8; ++t) EXPECT_EQ(file.document_of(t), documents[t]);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_NE(entry.path().extension(), ".part") << entry.path();
  }
}

TEST(TokenFile, TheBytesAreMegatrons) {
  const TestFolder folder;
  write_tokens(folder / "t", kDocuments);
  EXPECT_EQ(base::read_file(folder / "t.idx"), index_of(8, {3, 0, 1, 4}, 2, {0, 1, 2, 3, 4}));
  write_tokens(folder / "w", {{1, 70000}}, {.vocab_size = 100000, .tokenizer = ""});
  EXPECT_EQ(base::read_file(folder / "w.idx"), index_of(4, {2}, 4, {0, 1}));
  EXPECT_EQ(token_type_for(65499), TokenType::kU16);
  EXPECT_EQ(token_type_for(65500), TokenType::kI32);
}

TEST(TokenFile, LongDocumentsAreSeveralSequences) {
  const TestFolder folder;
  write_tokens(folder / "t", {{1, 2, 3, 4, 5}, {6}, {7, 8, 9, 10}},
               {.vocab_size = 11, .tokenizer = "", .max_sequence = 2});
  EXPECT_EQ(base::read_file(folder / "t.idx"), index_of(8, {2, 2, 1, 1, 2, 2}, 2, {0, 3, 4, 6}));
  const TokenFile file(folder / "t");
  EXPECT_EQ(file.num_documents(), 3u);
  EXPECT_EQ(file.document_begin(2), 6u);
  EXPECT_EQ(all_tokens(file), (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(TokenFile, EveryIntegerTypeAndModes) {
  const TestFolder folder;
  folder.write("a.idx", index_of(1, {3}, 1, {0, 1}));
  folder.write("a.bin", std::string("\x01\xff\x02", 3));
  EXPECT_EQ(all_tokens(TokenFile(folder / "a")), (std::vector<int32_t>{1, 255, 2}));
  folder.write("b.idx", index_of(2, {2}, 1, {0, 1}) + std::string(1, '\0'));  // with modes
  folder.write("b.bin", std::string("\x01\xff", 2));
  EXPECT_EQ(all_tokens(TokenFile(folder / "b")), (std::vector<int32_t>{1, -1}));
  std::string wide;
  put(wide, int64_t{7});
  put(wide, int64_t{1} << 40);
  folder.write("c.idx", index_of(5, {2}, 8, {0, 1}));
  folder.write("c.bin", wide);
  EXPECT_EQ(all_tokens(TokenFile(folder / "c")), (std::vector<int32_t>{7, INT32_MAX}));
  std::string narrow;
  put(narrow, int16_t{-3});
  folder.write("d.idx", index_of(3, {1}, 2, {0, 1}));
  folder.write("d.bin", narrow);
  EXPECT_EQ(all_tokens(TokenFile(folder / "d")), (std::vector<int32_t>{-3}));
}

TEST(TokenFile, AnEmptyFileIsWhole) {
  const TestFolder folder;
  write_tokens(folder / "t", {});
  const TokenFile file(folder / "t");
  EXPECT_EQ(file.num_tokens(), 0u);
  EXPECT_EQ(file.num_documents(), 0u);
}

TEST(TokenFile, Damage) {
  Pair pair;
  EXPECT_EQ(pair.error(), "no error");
  const Pair whole;
  pair.idx = whole.idx.substr(0, 20);
  EXPECT_EQ(pair.error(),
            "[tokens] \"t.idx\" is cut short: 20 bytes, its header alone has 34; make it again with prepare");
  pair.idx = whole.idx;
  pair.idx[0] = 'X';
  EXPECT_EQ(pair.error(), "[tokens] \"t.idx\" is no index of a token file: it does not begin with \"MMIDIDX\"");
  pair.idx = whole.idx;
  pair.idx[9] = 2;
  EXPECT_EQ(pair.error(), "[tokens] \"t.idx\" has version 2 of the format; this program reads version 1");
  pair.idx = whole.idx;
  pair.idx[17] = 7;
  EXPECT_EQ(pair.error(),
            "[tokens] \"t.idx\" has type code 7 (floating point); token ids are integers: codes 1 to 5 and 8");
  pair.idx[17] = 99;
  EXPECT_EQ(pair.error(), "[tokens] \"t.idx\" has type code 99; token ids are integers: codes 1 to 5 and 8");
  pair.idx = whole.idx.substr(0, whole.idx.size() - 1);
  EXPECT_EQ(pair.error(),
            "[tokens] \"t.idx\" is cut short or damaged: it names 4 sequences and 5 boundaries, which do not fit its "
            "121 bytes; make it again with prepare");
  pair.idx = whole.idx;
  std::memset(pair.idx.data() + 18, 0xff, 8);
  EXPECT_EQ(pair.error(),
            "[tokens] \"t.idx\" is cut short or damaged: it names 18446744073709551615 sequences and 5 boundaries, "
            "which do not fit its 122 bytes; make it again with prepare");
  pair.idx = whole.idx;
  pair.idx[34 + 3] = '\x80';  // the sign of the first length
  EXPECT_EQ(pair.error(),
            "[tokens] \"t.idx\" is damaged: sequence 0 has length -2147483645; make it again with prepare");
  pair.idx = whole.idx;
  pair.idx[34 + 16 + 8] = 4;
  EXPECT_EQ(
      pair.error(),
      "[tokens] \"t.idx\" is damaged: sequence 1 begins at byte 4, but the sequences before it end at byte 6; make "
      "it again with prepare");
  pair.idx = whole.idx;
  pair.idx[34 + 48 + 8] = 9;
  EXPECT_EQ(pair.error(),
            "[tokens] \"t.idx\" is damaged: document 1 begins at sequence 9, after 0 of 4; make it again with prepare");
  pair.idx[34 + 48 + 8] = 1;
  pair.idx[34 + 48 + 32] = 3;
  EXPECT_EQ(pair.error(),
            "[tokens] \"t.idx\" is damaged: its documents end at sequence 3 of 4; make it again with prepare");
  pair.idx = whole.idx;
  pair.bin = whole.bin.substr(0, 15);
  EXPECT_EQ(pair.error(),
            "[tokens] \"t.bin\" has 15 bytes, but its index describes 16: it is cut short; make it again with prepare");
  pair.bin = whole.bin + "xy";
  EXPECT_EQ(pair.error(),
            "[tokens] \"t.bin\" has 18 bytes, but its index describes 16: they do not belong together; make it again "
            "with prepare");
}

TEST(TokenFile, EveryFlippedByteOfAnIndexIsAnErrorOrHarmless) {
  Pair pair;
  const Pair whole;
  for (size_t i = 0; i < whole.idx.size(); ++i) {
    pair.idx = whole.idx;
    pair.idx[i] = static_cast<char>(pair.idx[i] ^ 0x55);
    EXPECT_NE(pair.error(), "no error") << "byte " << i;
  }
}

TEST(TokenFile, MissingHalf) {
  const TestFolder folder;
  EXPECT_EQ(error_of([&] { TokenFile file(folder / "no"); }),
            "[tokens] there is no token file \"" + folder.text("no") +
                "\" (.bin and .idx); \"kintsugi prepare\" makes one from text");
  write_tokens(folder / "t", kDocuments);
  std::filesystem::remove(folder / "t.idx");
  EXPECT_EQ(error_of([&] { TokenFile file(folder / "t"); }),
            "[tokens] \"" + folder.text("t.idx") +
                "\" is missing beside \"t.bin\"; a token file is a .bin and an .idx of one name");
}

TEST(TokenWriter, AFailureLeavesWhatWasThere) {
  const TestFolder folder;
  write_tokens(folder / "t", kDocuments);
  {
    TokenWriter writer(folder / "t", {.vocab_size = 10, .tokenizer = ""});
    writer.append(std::vector<int32_t>{1, 2});
    writer.finish();
  }  // never published
  EXPECT_EQ(TokenFile(folder / "t").num_tokens(), 8u);
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 3);
}

TEST(TokenWriter, AFullDiskIsOneLine) {
  const TestFolder folder;
  // A limit on the size of files instead of a full disk: the system's reason differs, the code path is the same.
  struct rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {1 << 20, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = error_of([&] {
    TokenWriter writer(folder / "t", {.vocab_size = 10, .tokenizer = ""});
    const std::vector<int32_t> ids(100000, 3);
    for (int i = 0; i < 30; ++i) writer.append(ids);
    writer.finish();
    writer.publish();
  });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(error, "[file] cannot write \"" + folder.text("t.bin.part") + "\": File too large");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(TokenSummary, FromTheSidecarOrByReading) {
  const TestFolder folder;
  write_tokens(folder / "t", kDocuments);
  const TokenFile file(folder / "t");
  TokenSummary summary = summarize(file, 2, nullptr);
  EXPECT_FALSE(summary.scanned);
  EXPECT_EQ(summary.max_token, 999);
  EXPECT_EQ(summary.num_documents, 4u);
  EXPECT_EQ(summary.vocab_size, 1000);
  EXPECT_EQ(summary.tokenizer, "t");
  EXPECT_EQ(summary.checksum, checksum_of(file));
  EXPECT_EQ(error_of([&] { require_vocabulary(file, summary, 1000); }), "no error");
  EXPECT_EQ(error_of([&] { require_vocabulary(file, summary, 999); }),
            "[data] \"" + folder.text("t.bin") +
                "\" holds the id 999, but the model's vocabulary has 999; vocab must be at least 1000");
  // A sidecar of another pair is ignored.
  write_tokens(folder / "other", {{1, 2, 3}});
  std::filesystem::copy_file(folder / "other.json", folder / "t.json",
                             std::filesystem::copy_options::overwrite_existing);
  summary = summarize(file, 2, nullptr);
  EXPECT_TRUE(summary.scanned);
  EXPECT_EQ(summary.min_token, 5);
  EXPECT_EQ(summary.max_token, 999);
  folder.write("t.json", "{\"format\": \"kintsugi tokens\", \"version\": 1}");
  EXPECT_TRUE(summarize(file, 2, nullptr).scanned);
  for (const char* damaged :
       {"[1,", "{\"format\": 0}", "{\"format\": \"kintsugi tokens\", \"version\": \"1\"}", "1e999"}) {
    folder.write("t.json", damaged);
    EXPECT_TRUE(summarize(file, 2, nullptr).scanned) << damaged;
  }
}

TEST(TokenSummary, NegativeIdsAreRefused) {
  const TestFolder folder;
  folder.write("b.idx", index_of(2, {2}, 1, {0, 1}));
  folder.write("b.bin", std::string("\x01\xff", 2));
  const TokenFile file(folder / "b");
  EXPECT_EQ(error_of([&] { require_vocabulary(file, summarize(file, 1, nullptr), 10); }),
            "[data] \"" + folder.text("b.bin") + "\" holds the id -1; token ids are not negative");
}

}  // namespace kintsugi::data
