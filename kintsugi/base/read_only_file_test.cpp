#include "kintsugi/base/read_only_file.h"

#include <gtest/gtest.h>

#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"

namespace kintsugi::base::read_only_file_test {
namespace {

class ReadOnly : public testing::Test {
 protected:
  ReadOnly() {
    std::string name = (std::filesystem::temp_directory_path() / "kintsugi_base_XXXXXX").string();
    if (!::mkdtemp(name.data())) throw InternalError("test", "no temporary folder");
    folder = name;
  }
  ~ReadOnly() override { std::filesystem::remove_all(folder); }

  static std::string text(const ReadOnlyFile& file, uint64_t offset, size_t size) {
    std::string read(size, '\0');
    file.read_at(offset, std::as_writable_bytes(std::span(read)));
    return read;
  }
  template <typename F>
  static std::string error_of(F&& f) {
    try {
      f();
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path folder;
};

}  // namespace

TEST_F(ReadOnly, ReadsAnyPart) {
  std::string content;
  for (int i = 0; i < 300'000; ++i) content += std::to_string(i);
  write_file_atomically(folder / "a", content);
  ReadOnlyFile other(folder / "a");
  const ReadOnlyFile file = std::move(other);
  EXPECT_EQ(file.size(), content.size());
  EXPECT_EQ(text(file, 12345, 99), content.substr(12345, 99));
  EXPECT_EQ(text(file, content.size(), 0), "");
  std::string all;
  for_each_block(file, [&](std::span<const std::byte> block) {
    all.append(reinterpret_cast<const char*>(block.data()), block.size());
  });
  EXPECT_TRUE(all == content);
  EXPECT_THROW(text(file, content.size(), 1), InternalError);
}

TEST_F(ReadOnly, AFileThatShrinksIsAnError) {
  write_file_atomically(folder / "a", "0123456789");
  const ReadOnlyFile file(folder / "a");
  std::filesystem::resize_file(folder / "a", 4);
  EXPECT_EQ(text(file, 0, 4), "0123");
  EXPECT_EQ(error_of([&] { text(file, 2, 5); }),
            "[file] \"" + (folder / "a").string() +
                "\" was truncated while in use: it had 10 bytes, now it ends at byte 4 or before");
}

TEST_F(ReadOnly, WhatCannotBeOpenedIsNamed) {
  EXPECT_EQ(error_of([&] { ReadOnlyFile file(folder / "none"); }),
            "[file] cannot open \"" + (folder / "none").string() + "\": No such file or directory");
  EXPECT_EQ(error_of([&] { ReadOnlyFile file(folder); }),
            "[file] cannot read \"" + folder.string() + "\": Is a directory");
}

}  // namespace kintsugi::base::read_only_file_test
