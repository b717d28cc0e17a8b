// How prepare replaces the files of its output folder, and what a failure or a kill leaves there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "kintsugi/data/prepare_harness_test.h"
#include "kintsugi/data/token_summary.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::data::prepare_replace_test {

TEST(PrepareReplaces, ReplacesOnlyWhenTold) {
  const TestFolder folder;
  folder.write("a.txt", "some text of some length");
  folder.write("out/mine.txt", "keep me");
  PrepareOptions options = options_for(folder, {"a.txt"});
  EXPECT_EQ(
      prepare_error(folder, options),
      "[prepare] --output \"out\" is not empty, it holds mine.txt; --force replaces its token files and leaves the "
      "rest, or name another folder");
  options.force = true;
  prepare(options);
  EXPECT_EQ(base::read_file(folder / "out/mine.txt"), "keep me");
  options.force = false;
  EXPECT_EQ(
      prepare_error(folder, options),
      "[prepare] --output \"out\" is not empty, it holds mine.txt and 7 more; --force replaces its token files and "
      "leaves the rest, or name another folder");
  options.output = folder / "a.txt";
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] --output \"a.txt\" is a file; it must be a folder, or not exist yet");
}

TEST(PrepareReplaces, AFailureLeavesNothingHalfWritten) {
  const TestFolder folder;
  folder.write("a.txt", mixed_text(100000));
  PrepareOptions options = options_for(folder, {"a.txt"});
  prepare(options);
  const std::string before = base::read_file(folder / "out/train.bin");
  options.force = true;

  std::atomic<bool> stop{true};
  options.stop = &stop;
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] interrupted; nothing was written, and the same command starts over");
  options.stop = nullptr;

  struct rlimit limit = {};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {before.size() / 2, limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = prepare_error(folder, options);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(error, "[file] cannot write \".part-out/train.bin.part\": File too large");

  EXPECT_EQ(base::read_file(folder / "out/train.bin"), before);
  EXPECT_FALSE(std::filesystem::exists(folder / ".part-out"));
}

TEST(PrepareReplaces, GoesOverWhatAKilledOneLeft) {
  const TestFolder folder;
  folder.write("a.txt", "some text of some length");
  folder.write("out/validation.bin.part", "half");
  folder.write(".part-out/train.bin", "half");
  folder.write("out/.part-files/train.bin", "half");
  folder.write("out/.prepare.lock", "");
  PrepareOptions options = options_for(folder, {"a.txt"});
  {
    const base::FileLock lock(folder / "out/.prepare.lock", "taken");
    EXPECT_EQ(prepare_error(folder, options), "[file] another prepare is writing into \"out\"");
  }
  options.validation = 0.0;
  prepare(options);
  EXPECT_FALSE(std::filesystem::exists(folder / "out/validation.bin.part"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out/.prepare.lock"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out/.part-files"));
  EXPECT_FALSE(std::filesystem::exists(folder / ".part-out"));
}

namespace {

// Old or new: the output in `out` is complete and from one run; returns which of the two vocabularies it has.
int64_t whole_vocabulary(const TestFolder& folder) {
  const auto tokenizer = text::load_tokenizer(folder / "out");
  for (const char* name : {"train", "validation"}) {
    const TokenFile file(folder / ("out/" + std::string(name)));
    const TokenSummary summary = summarize(file, 1, nullptr);
    EXPECT_FALSE(summary.scanned);
    EXPECT_EQ(summary.vocab_size, tokenizer->vocab_size());
    EXPECT_EQ(summary.checksum, checksum_of(file));
    checked_fingerprint(file, summary);
  }
  EXPECT_EQ(base::read_file(folder / "out/mine/deep.txt"), "mine");
  return tokenizer->vocab_size();
}

}  // namespace

namespace {

// Prepares alternately with two tokenizers, killed ten times at random moments of the first two runs; then calls
// `look`. No other threads run while children are created.
template <typename F>
void kill_at_any_moment(PrepareOptions options, F&& look) {
  options.force = true;
  options.threads = 1;
  const auto start = std::chrono::steady_clock::now();
  prepare(options);
  const std::chrono::duration<double, std::micro> one = std::chrono::steady_clock::now() - start;
  std::mt19937 random(5);
  for (int kill = 0; kill < 10; ++kill) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0;; ++i) {
        options.tokenizer = i % 2 == 0 ? "bpe:300" : "bytes";
        prepare(options);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<uint64_t>(2 * one.count())));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    look();
  }
  prepare(options);
}

}  // namespace

TEST(PrepareReplaces, WhateverIsKilledOldOrNewFilesAreWhole) {
  const TestFolder folder;
  folder.write("a.txt", mixed_text(200));
  folder.write("out/mine/deep.txt", "mine");
  kill_at_any_moment(options_for(folder, {"a.txt"}), [&] {
    const int64_t vocabulary = whole_vocabulary(folder);
    EXPECT_TRUE(vocabulary == 257 || vocabulary == 300) << vocabulary;
  });
  EXPECT_EQ(whole_vocabulary(folder), 257);
  EXPECT_FALSE(std::filesystem::exists(folder / ".part-out"));
}

// If folders cannot be exchanged, here because one is the working directory, a kill between two renames leaves a
// rejected state, never a mixture.
TEST(PrepareReplaces, InTheFolderInWhichItWorks) {
  const TestFolder folder;
  folder.write("a.txt", mixed_text(200));
  folder.write("out/mine/deep.txt", "mine");
  PrepareOptions options = options_for(folder, {"a.txt"});
  options.output = ".";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "out");
  kill_at_any_moment(options, [&] {
    const std::string error = error_of([&] { whole_vocabulary(folder); });
    EXPECT_TRUE(error == "no error" || error.find(".idx\" is missing next to \"") != error.npos ||
                error.find("there is no token file") != error.npos)
        << error;
  });
  std::filesystem::current_path(before);
  EXPECT_EQ(whole_vocabulary(folder), 257);
  EXPECT_FALSE(std::filesystem::exists(folder / "out/.part-files"));
}

TEST(PrepareReplaces, OtherFilesOfTheFolderStayThemselves) {
  const TestFolder folder;
  folder.write("a.txt", "some text of some length");
  PrepareOptions options = options_for(folder, {"a.txt"});
  prepare(options);
  folder.write("out/mine/run/log.txt", "mine");
  std::filesystem::create_symlink("nowhere", folder / "out/link");
  std::filesystem::permissions(folder / "out", std::filesystem::perms::group_all, std::filesystem::perm_options::add);
  std::filesystem::permissions(folder / "out/mine", std::filesystem::perms::owner_all);
  std::filesystem::create_directory_symlink(folder / "out", folder / "named");
  struct stat before = {}, after = {};
  ::stat((folder / "out/mine/run/log.txt").c_str(), &before);
  options.force = true;
  options.validation = 0.0;
  options.output = folder / "named/";
  prepare(options);
  ::stat((folder / "out/mine/run/log.txt").c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(std::filesystem::read_symlink(folder / "out/link"), "nowhere");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "named"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out/validation.bin"));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(folder / "out").permissions() & perms::group_all, perms::group_all);
  EXPECT_EQ(std::filesystem::status(folder / "out/mine").permissions(), perms::owner_all);
}

TEST(PrepareReplaces, ReplacesNothingThatItReads) {
  const TestFolder folder;
  folder.write("a.txt", mixed_text(200));
  PrepareOptions options = options_for(folder, {"a.txt"});
  prepare(options);
  const std::string bin = base::read_file(folder / "out/train.bin"),
                    json = base::read_file(folder / "out/tokenizer.json");
  options.force = true;
  for (const char* name : {"tokenizer.json", "train.json", "train.bin"}) {
    options.inputs = {folder.text("out/" + std::string(name))};
    EXPECT_EQ(prepare_error(folder, options), "[prepare] \"out/" + std::string(name) +
                                                  "\" is an input, and the output would replace it; name another "
                                                  "--output");
  }
  options.inputs = {folder.text("a.txt")};
  options.validation_text = folder.text("out/validation.json");
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] \"out/validation.json\" is an input, and the output would replace it; name another --output");
  options.validation_text = "";
  options.tokenizer = folder.text("out/tokenizer.json");
  folder.write("out/tokenizer.json", json + "\n");
  EXPECT_EQ(prepare_error(folder, options),
            "[prepare] --tokenizer \"out/tokenizer.json\" is written in another form than that in which the output "
            "would replace it; name another --output");
  EXPECT_EQ(base::read_file(folder / "out/train.bin"), bin);
  EXPECT_EQ(base::read_file(folder / "out/tokenizer.json"), json + "\n");
  folder.write("out/tokenizer.json", json);  // with its own bytes it may be replaced
  prepare(options);
  EXPECT_EQ(base::read_file(folder / "out/tokenizer.json"), json);
}

}  // namespace kintsugi::data::prepare_replace_test
