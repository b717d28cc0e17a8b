#include "kintsugi/data/token_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <numeric>

#include "kintsugi/data/fingerprint.h"
#include "kintsugi/data/test_folder.h"
#include "kintsugi/data/token_summary.h"

namespace kintsugi::data::token_file_test {
namespace {

const std::vector<std::vector<int32_t>> kDocuments = {{5, 6, 7}, {}, {8}, {9, 10, 11, 999}};

template <typename T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// An index as written by Megatron, byte by byte.
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
  EXPECT_EQ(pair.error(), "[tokens] \"t.idx\" is not the index of a token file: it does not begin with \"MMIDIDX\"");
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
                "\" is missing next to \"t.bin\"; a token file is a .bin and an .idx of one name");
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
  // A file size limit instead of a full disk: the system's reason differs, the code path is the same.
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
  TokenSummary largest = summary;
  largest.max_token = INT64_MAX;
  EXPECT_NE(error_of([&] { require_vocabulary(file, largest, 1000); }).find("at least 9223372036854775808"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { require_vocabulary(file, summary, 999); }),
            "[data] \"" + folder.text("t.bin") +
                "\" holds the id 999, but the model's vocabulary has 999; vocab must be at least 1000");
  std::filesystem::remove(folder / "t.json");
  summary = summarize(file, 2, nullptr);
  EXPECT_TRUE(summary.scanned);
  EXPECT_EQ(summary.min_token, 5);
  EXPECT_EQ(summary.max_token, 999);
  EXPECT_EQ(summary.fingerprint, "");
}

// Files of other programs, without an index.
TEST(TokenFile, BareFilesAreOneDocument) {
  const TestFolder folder;
  const std::vector<int32_t> ids = {5, 6, 50256, 7, 8, 9, 10};
  const auto error = [&](const std::string& bytes, const std::string& name = "t.bin") {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    std::string text = error_of([&] { TokenFile file(folder / name); });
    for (size_t at; (at = text.find(folder.path().string() + "/")) != std::string::npos;)
      text.erase(at, folder.path().string().size() + 1);
    return text;
  };
  std::string narrow, wide;
  for (const int32_t id : ids) {
    put(narrow, static_cast<uint16_t>(id));
    put(wide, id);
  }
  const auto header = [](int32_t magic, int32_t version, int32_t count) {
    std::string head;
    for (const int32_t value : {magic, version, count}) put(head, value);
    return head + std::string(1024 - head.size(), '\0');
  };
  for (const std::string& bytes : {narrow, header(20240520, 1, 7) + narrow, header(20240801, 7, 7) + wide}) {
    EXPECT_EQ(error(bytes), "no error");
    const TokenFile file(folder / "t.bin");
    EXPECT_EQ(all_tokens(file), ids);
    EXPECT_EQ(file.num_documents(), 1u);
    EXPECT_EQ(file.document_of(6), 0u);
    EXPECT_EQ(file.document_begin(1), 7u);
    std::vector<int32_t> two(2);
    EXPECT_EQ(file.read_with_next(1, two), 7);
    EXPECT_EQ(summarize(file, 1, nullptr).max_token, 50256);
    EXPECT_FALSE(fingerprint(file).empty());
  }
  EXPECT_EQ(error(header(20240520, 1, 9) + narrow),
            "[tokens] \"t.bin\" says that it holds 9 ids, but 14 bytes follow its "
            "header");
  EXPECT_EQ(error(header(20240520, 2, 7) + narrow),
            "[tokens] \"t.bin\" has version 2 of llm.c's format; this program reads version 1");
  EXPECT_EQ(error(narrow + "x"),
            "[tokens] \"t.bin\" has no index \"t.idx\", and 15 bytes are not 16-bit ids, as nanoGPT's are");
  std::string many;
  for (int32_t i = 0; i < 100; ++i) put(many, i);
  EXPECT_EQ(error(many),
            "[tokens] \"t.bin\" has no index \"t.idx\", and as 16-bit ids, nanoGPT's, every second one would "
            "be 0: its ids seem to be wider");
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 123\n";
  EXPECT_EQ(pointer.size() % 2, 0u);
  EXPECT_EQ(error(pointer),
            "[tokens] \"t.bin\" is a pointer of Git LFS, not the file itself; run \"git lfs pull\" where it "
            "was cloned");
  // Without its suffix, or with a summary, it is an incomplete pair.
  const std::string incomplete = error_of([&] { TokenFile file(folder / "t"); });
  EXPECT_NE(incomplete.find("is missing next to"), std::string::npos);
  EXPECT_TRUE(incomplete.ends_with("; name the .bin itself if it is nanoGPT's or llm.c's")) << incomplete;
  write_tokens(folder / "pair", kDocuments);
  std::filesystem::remove(folder / "pair.idx");
  EXPECT_NE(error_of([&] { TokenFile file(folder / "pair.bin"); }).find("is missing next to"), std::string::npos);
}

TEST(TokenSummary, ADamagedSidecarIsRefused) {
  const TestFolder folder;
  write_tokens(folder / "t", kDocuments);
  const std::string whole = base::read_file(folder / "t.json");
  const auto error = [&](const std::string& json) {
    folder.write("t.json", json);
    const std::string text = error_of([&] { summarize(TokenFile(folder / "t"), 1, nullptr); });
    const std::string begin = "[tokens] \"" + folder.text("t.json") + "\"",
                      end = "; prepare it again, or, if t.bin and t.idx are of another program, remove t.json";
    if (!text.starts_with(begin) || !text.ends_with(end)) return text;
    return text.substr(begin.size(), text.size() - begin.size() - end.size());
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string json = whole;
    return error(json.replace(json.find(from), from.size(), to));
  };
  EXPECT_EQ(error(whole), "no error");
  EXPECT_EQ(error(""), " is empty");
  EXPECT_EQ(error("[1,"), ":1: the JSON ends too early, after 3 bytes; it seems to be cut off");
  EXPECT_EQ(error("{\"text\": \"mine\"}"), ":1: it does not describe a token file");
  EXPECT_EQ(with("\"version\": 1", "\"version\": 2"), ":3: \"version\" is 2; it should be 1");
  EXPECT_EQ(with("\"max_token\": 999", "\"max_token\": \"\""),
            ":7: \"max_token\" is \"\"; it should be a whole number from -1 on");
  EXPECT_EQ(with("\"tokens\": 8", "\"tokens\": 9"), " describes another token file: 9 tokens instead of 8");
  EXPECT_EQ(with("\"vocab_size\": 1000", "\"vocab_size\": 999"),
            " says that the vocabulary has 999 ids, and the largest one is 999");
  // Of a pair with the same numbers of tokens and documents.
  write_tokens(folder / "other", {{5, 6}, {7}, {8}, {9, 10, 11, 999}});
  EXPECT_EQ(error(base::read_file(folder / "other.json")).substr(0, 62),
            " describes another token file: its index has the checksum " +
                base::read_file(folder / "other.json").substr(whole.find("\"index_checksum\": \"") + 19, 4));
}

TEST(TokenSummary, FilesOfAnotherCorpusUnderTheNameAreRefused) {
  const TestFolder folder;
  write_tokens(folder / "t", kDocuments);
  write_tokens(folder / "other", {{6, 5, 7}, {}, {8}, {9, 10, 11, 999}});  // the index is the same
  const auto check = [&](const std::string& name) {
    const TokenFile file(folder / name);
    return checked_fingerprint(file, summarize(file, 1, nullptr));
  };
  const std::string one = check("t"), other = check("other");
  EXPECT_NE(one, other);
  std::filesystem::rename(folder / "t.bin", folder / "kept.bin");
  std::filesystem::copy_file(folder / "other.bin", folder / "t.bin");
  EXPECT_EQ(error_of([&] { check("t"); }),
            "[tokens] \"" + folder.text("t.json") + "\" describes another token file: one with the fingerprint " + one +
                " instead of " + other +
                "; prepare it again, or, if t.bin and t.idx are of another program, remove t.json");
  std::filesystem::remove(folder / "t.json");
  EXPECT_EQ(check("t"), other);  // content alone counts
}

TEST(TokenFile, OneThatShrinksIsAnErrorThatNamesIt) {
  const TestFolder folder;
  write_tokens(folder / "t", kDocuments);
  const TokenFile file(folder / "t");
  std::filesystem::resize_file(folder / "t.bin", 4);
  const std::string shorter = "\" was truncated while in use: it had ";
  EXPECT_EQ(error_of([&] { all_tokens(file); }),
            "[file] \"" + folder.text("t.bin") + shorter + "16 bytes, now it ends at byte 4 or before");
  std::filesystem::resize_file(folder / "t.idx", 40);
  EXPECT_EQ(error_of([&] { file.document_of(1); }),
            "[file] \"" + folder.text("t.idx") + shorter + "122 bytes, now it ends at byte 50 or before");
}

TEST(TokenFile, ManyDocuments) {
  const TestFolder folder;
  std::vector<std::vector<int32_t>> documents;
  std::vector<uint64_t> begins = {0};
  for (size_t d = 0; d < 1000; ++d) {
    documents.emplace_back(d * 7 % 5, 3);
    begins.push_back(begins.back() + documents.back().size());
  }
  for (const int64_t max_sequence : {100, 2}) {  // a document is one sequence, or several
    write_tokens(folder / "t", documents, {.vocab_size = 10, .tokenizer = "", .max_sequence = max_sequence});
    const TokenFile file(folder / "t");
    std::vector<uint64_t> all(1001);
    file.document_begins(0, all);
    EXPECT_EQ(all, begins);
    for (uint64_t t = 0; t < file.num_tokens(); ++t) {
      const uint64_t d = file.document_of(t);
      ASSERT_TRUE(begins[d] <= t && t < begins[d + 1]) << t;
    }
  }
}

TEST(TokenFile, MoreDocumentsThanAreKeptInMemory) {
  const TestFolder folder;
  const std::vector<int32_t> lengths(300'000, 3);
  std::vector<int64_t> boundaries(lengths.size() + 1);
  std::iota(boundaries.begin(), boundaries.end(), 0);
  std::ofstream(folder / "t.idx", std::ios::binary) << index_of(1, lengths, 1, boundaries);
  std::ofstream(folder / "t.bin").put('a');
  std::filesystem::resize_file(folder / "t.bin", 3 * lengths.size());
  const TokenFile file(folder / "t");
  for (uint64_t t = 0; t < file.num_tokens(); t += 997) ASSERT_EQ(file.document_of(t), t / 3);
  EXPECT_EQ(file.document_of(file.num_tokens() - 1), lengths.size() - 1);
}

TEST(Fingerprint, OfALargeFileSeesBothEndsAndBlocksBetween) {
  const TestFolder folder;
  write_tokens(folder / "t", kDocuments);
  const auto large = folder / "large";
  std::ofstream(large).put('a');
  std::filesystem::resize_file(large, 100 << 20);
  const base::ReadOnlyFile idx(folder / "t.idx");
  const auto now = [&] { return fingerprint(base::ReadOnlyFile(large), idx); };
  const auto put_at = [&](int64_t at) {
    std::fstream out(large, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(at).put('b');
  };
  const std::string one = now();
  EXPECT_EQ(now(), one);
  put_at((100 << 20) - 1);
  const std::string two = now();
  EXPECT_NE(one, two);
  put_at(0);
  EXPECT_NE(now(), two);
  std::filesystem::resize_file(large, (100 << 20) + 1);
  EXPECT_NE(now(), two);
}

TEST(TokenSummary, NegativeIdsAreRefused) {
  const TestFolder folder;
  folder.write("b.idx", index_of(2, {2}, 1, {0, 1}));
  folder.write("b.bin", std::string("\x01\xff", 2));
  const TokenFile file(folder / "b");
  EXPECT_EQ(error_of([&] { require_vocabulary(file, summarize(file, 1, nullptr), 10); }),
            "[data] \"" + folder.text("b.bin") + "\" holds the id -1; token ids are not negative");
}

}  // namespace kintsugi::data::token_file_test
