// Compressed texts, and files that are not text.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kintsugi/base/file.h"
#include "kintsugi/data/prepare.h"
#include "kintsugi/data/test_folder.h"
#include "kintsugi/data/text_stream.h"

namespace kintsugi::data::compressed_test {
namespace {

using namespace std::string_literals;

constexpr std::string_view kLine = "One line of a text that is told again and again.\n";

// Forty lines.
const std::string kGzip =
    "\x1F\x8B\x08\x00\x00\x00\x00\x00\x02\x03\xF3\xCF\x4B\x55\xC8\xC9\x04\x12\xF9\x69\x0A\x89\x0A\x25\xA9\x15\x25\x0A"
    "\x25\x19\x89\x25\x0A\x99\xC5\x0A\x25\xF9\x39\x29\x0A\x89\xE9\x89\x99\x79\x0A\x89\x79\x50\x96\x1E\x97\xFF\xA8\x86"
    "\x51\x0D\xA3\x1A\x46\x35\x8C\x6A\x18\xD5\x30\xAA\x81\x5E\x1A\x00\xD5\xEF\x7C\x27\xA8\x07\x00\x00"s;
const std::string kZstd =
    "\x28\xB5\x2F\xFD\x04\x68\x95\x01\x00\xA2\x82\x09\x11\xB0\xA9\x03\xE0\xD0\xEC\x91\xD6\x78\x80\x08\xE6\x78\xE4\x43"
    "\x01\x01\x20\x1C\xBF\xC3\xC2\x07\x4A\x5D\x9D\x4B\xD3\xBB\xAC\x73\x92\xB6\x3B\x68\x3B\x11\x02\x00\x74\x53\xF5\x31"
    "\xEA\x96\x32\x46\xC7\x0E\x99"s;

struct Kind {
  std::string suffix, name, package, bytes;
};
const Kind kKinds[] = {{".gz", "gzip", "zlib1g-dev", kGzip}, {".zst", "zstd", "libzstd-dev", kZstd}};

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

PrepareOptions options_for(const TestFolder& folder, const std::string& input, const std::string& output) {
  PrepareOptions options;
  options.inputs = {folder.text(input)};
  options.output = folder / output;
  options.validation = 0.25;
  options.threads = 2;
  return options;
}

// Whether this build has the library; otherwise checks that it says so.
bool can_read(const Kind& kind) {
  const TestFolder folder;
  folder.write("a", kind.bytes);
  const std::string error = error_of([&] { prepare(options_for(folder, "a", "out")); });
  if (error == "no error") return true;
  EXPECT_EQ(error, "[prepare] \"" + folder.text("a") + "\" is compressed by " + kind.name +
                       ", which this build cannot read: install " + kind.package +
                       " and build again, or decompress the file");
  return false;
}

}  // namespace

// The same token files as from the text, split at the same character; several members or frames are one text.
TEST(Compressed, IsReadAsWhatItHolds) {
  for (const Kind& kind : kKinds) {
    if (!can_read(kind)) continue;
    for (const int members : {1, 3, 2000}) {
      const TestFolder folder;
      folder.write("plain.txt", repeated(kLine, 40 * members));
      folder.write("text" + kind.suffix, repeated(kind.bytes, members));
      prepare(options_for(folder, "plain.txt", "plain"));
      const PrepareResult result = prepare(options_for(folder, "text" + kind.suffix, "packed"));
      EXPECT_EQ(result.bytes, kind.bytes.size() * static_cast<size_t>(members));  // those that were read
      for (const char* file : {"train.bin", "train.idx", "validation.bin", "validation.idx"})
        EXPECT_TRUE(base::read_file(folder / "plain" / file) == base::read_file(folder / "packed" / file))
            << kind.name << ", " << members << ": " << file;
    }
  }
}

TEST(Compressed, InAFolderAndAsLines) {
  for (const Kind& kind : kKinds) {
    if (!can_read(kind)) continue;
    const TestFolder folder;
    folder.write("in/a.txt", "plain");
    folder.write("in/b.txt" + kind.suffix, kind.bytes);
    EXPECT_EQ(prepare(options_for(folder, "in", "out")).train.documents +
                  prepare(options_for(folder, "in", "again")).validation.documents,
              2u);
    PrepareOptions lines = options_for(folder, "c.jsonl" + kind.suffix, "lines");
    folder.write("c.jsonl" + kind.suffix, kind.bytes);
    EXPECT_EQ(error_of([&] { prepare(lines); }), "[prepare] \"" + lines.inputs[0] +
                                                     "\" is JSONL; --field says which field of its lines is the text, "
                                                     "for example --field text");
  }
}

TEST(Compressed, DamageIsNamed) {
  for (const Kind& kind : kKinds) {
    if (!can_read(kind)) continue;
    const TestFolder folder;
    folder.write("cut", kind.bytes.substr(0, kind.bytes.size() - 9));
    EXPECT_EQ(error_of([&] { prepare(options_for(folder, "cut", "out")); }),
              "[prepare] \"" + folder.text("cut") + "\" is damaged: it is truncated");
    std::string flipped = kind.bytes;
    flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x55);
    folder.write("flipped", flipped);
    EXPECT_TRUE(error_of([&] {
                  prepare(options_for(folder, "flipped", "out"));
                }).starts_with("[prepare] \"" + folder.text("flipped") + "\" is damaged: "));
  }
}

// A named file that is not text is an error; one in a folder is skipped.
TEST(Compressed, WhatIsNoTextIsRefused) {
  struct Case {
    std::string bytes, why;
  };
  const Case cases[] = {{"PNG\r\n\0\1"s, "has a NUL at byte 5"},
                        {"PK\x03\x04 and so on", "is a zip archive"},
                        {"\xFD"
                         "7zXZ\0"s,
                         "is compressed by xz"},
                        {"BZh91AY", "is compressed by bzip2"},
                        {"%PDF-1.7\n", "is a PDF"},
                        {"\xFF\xFEt\0e\0"s, "is UTF-16"}};
  for (const Case& c : cases) {
    const TestFolder folder;
    folder.write("in/file", c.bytes);
    folder.write("in/text", "a text of some words");
    EXPECT_EQ(error_of([&] { prepare(options_for(folder, "in/file", "out")); }),
              "[prepare] \"" + folder.text("in/file") + "\" is not text: it " + c.why +
                  "; name text files, compressed by gzip or zstd or not");
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
    EXPECT_EQ(prepare(options_for(folder, "in", "out")).files, 1u);
  }
}

// Frames with the largest windows of zstd's --ultra --long=31, with skippable frames before, between and after them (as
// in pzstd and seekable files), and empty frames.
TEST(Compressed, ReadsAllFramesOfZstd) {
  if (!can_read(kKinds[1])) GTEST_SKIP() << "built without libzstd";
  const std::string text = "a text of several words, so and so";
  const auto frame = [&](char window) {
    std::string f = "\x28\xB5\x2F\xFD\x00"s + window;
    const auto block = [&](std::string_view part, bool ends) {
      const auto head = static_cast<uint32_t>(part.size() << 3 | (ends ? 1 : 0));
      f += {static_cast<char>(head), static_cast<char>(head >> 8), static_cast<char>(head >> 16)};
      f += part;
    };
    block(text, false);
    block(".\n", true);
    return f;
  };
  const auto skipped = [](char nibble, size_t size) {
    const auto n = static_cast<char>(size);
    return std::string{nibble, '\x2A', '\x4D', '\x18', n, 0, 0, 0} + std::string(size, 'x');
  };
  const TestFolder folder;
  folder.write("plain.txt", repeated(text + ".\n", 3));
  folder.write("text.zst", skipped(0x50, 4) + skipped(0x5F, 0) + frame('\x90') + skipped(0x5A, 100) + frame('\x50') +
                               frame('\xA8') + skipped(0x50, 9));
  prepare(options_for(folder, "plain.txt", "plain"));
  prepare(options_for(folder, "text.zst", "packed"));
  for (const char* file : {"train.bin", "validation.bin"})
    EXPECT_EQ(base::read_file(folder / "plain" / file), base::read_file(folder / "packed" / file));
  folder.write("lz4", skipped(0x50, 4) + "\x04\x22\x4D\x18 and so on");
  EXPECT_EQ(error_of([&] { prepare(options_for(folder, "lz4", "out")); }),
            "[prepare] \"" + folder.text("lz4") +
                "\" is not text: it is compressed by lz4; name text files, compressed by gzip or zstd or not");
}

TEST(Compressed, APointerOfGitLfsIsNamed) {
  const TestFolder folder;
  folder.write("text.gz", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n");
  const std::string advice = "a pointer of Git LFS, not the file itself; run \"git lfs pull\" where it was cloned";
  EXPECT_EQ(error_of([&] { prepare(options_for(folder, "text.gz", "out")); }),
            "[prepare] \"" + folder.text("text.gz") + "\" is not text: it is " + advice +
                "; name text files, compressed by gzip or zstd or not");
  folder.write("a.txt", "some text");
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    PrepareOptions options = options_for(folder, "a.txt", "out");
    options.tokenizer = folder.text(name);
    folder.write(name, base::read_file(folder / "text.gz"));
    EXPECT_EQ(error_of([&] { prepare(options); }), "[tokenizer] " + folder.text(name) + ": this is " + advice);
  }
}

}  // namespace kintsugi::data::compressed_test
