#include "kintsugi/base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <vector>

#include "kintsugi/base/error.h"

namespace kintsugi::base::file_test {
namespace {

namespace fs = std::filesystem;

class FileWriterTest : public testing::TestWithParam<Writing> {
 protected:
  FileWriterTest() {
    std::string name = (fs::temp_directory_path() / "kintsugi-file-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~FileWriterTest() override { fs::remove_all(folder_); }

  fs::path folder_;
};

std::string text_of(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 2654435761u >> 13);
  return text;
}

// Sizes around those of blocks and buffers, written in spans of other sizes.
TEST_P(FileWriterTest, WritesWhatItIsGiven) {
  constexpr size_t kBuffer = 2 << 20;
  for (const size_t size : {size_t{0}, size_t{1}, kBuffer - 1, kBuffer, kBuffer + 1, 7 * kBuffer, 9 * kBuffer + 4097}) {
    const std::string text = text_of(size);
    FileWriter file(folder_ / "x", GetParam());
    for (size_t at = 0, some = 1; at < size; at += some, some = some * 3 + 1)
      file.write(std::string_view(text).substr(at, some));
    file.close();
    EXPECT_EQ(file.size(), size);
    EXPECT_TRUE(read_file(folder_ / "x") == text) << size;
  }
}

// Like a full disk: the error names the file, on a later write or on close.
TEST_P(FileWriterTest, SaysThatThereIsNoPlace) {
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto kept = std::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t most : {5'000'000, 5'000'192}) {
    const rlimit small = {.rlim_cur = most, .rlim_max = old.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    std::string error;
    try {
      FileWriter file(folder_ / "x", GetParam());
      const std::string text = text_of(3 << 20);
      for (int i = 0; i < 4; ++i) file.write(text);
      file.close();
    } catch (const UserError& e) {
      error = e.what();
    }
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    EXPECT_EQ(error, "[file] cannot write \"" + (folder_ / "x").string() + "\": File too large");
  }
  std::signal(SIGXFSZ, kept);
}

TEST_P(FileWriterTest, MayBeGivenUp) {
  FileWriter file(folder_ / "x", GetParam());
  file.write(text_of(5 << 20));
}

INSTANTIATE_TEST_SUITE_P(Ways, FileWriterTest, testing::Values(Writing::through_cache, Writing::to_disk),
                         [](const auto& way) { return way.param == Writing::to_disk ? "ToDisk" : "ThroughCache"; });

}  // namespace
}  // namespace kintsugi::base::file_test
