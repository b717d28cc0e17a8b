// Killed saves, and full disks. The children of these tests run no other threads.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/scratch_test.h"
#include "kintsugi/checkpoint/writer.h"

namespace kintsugi::checkpoint::crash_test {
namespace {

namespace fs = std::filesystem;
using tensor::DType;

void save(const fs::path& run, int64_t step, size_t bytes) {
  const std::vector<uint8_t> data(bytes, static_cast<uint8_t>(step));
  CheckpointWriter writer(run, step);
  writer.add({"w", {{{"a", static_cast<int64_t>(bytes)}}, DType::u8}, Kind::weight, {}, {}},
             std::as_bytes(std::span(data)));
  writer.write();
  writer.finish({});
}

// Runs f in a child and returns what it wrote; "" if nothing.
template <typename F>
std::string in_child(const fs::path& answer, F&& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    put(answer, f());
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return base::read_file(answer);
}

}  // namespace

TEST(Crash, WhateverIsKilledAWholeCheckpointIsThere) {
  ScratchFolder scratch;
  const fs::path run = scratch / "run";
  save(run, 1, 100'000);
  std::mt19937 random(9);
  int64_t newest = 1;
  for (int kill = 0; kill < 20; ++kill) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int64_t step = newest + 1;; ++step) {
        save(run, step, 100'000);
        if (step % 3 == 0) save(run, step, 50'000);  // again, in place of what is there
        write_best(run, {step - step % 4, 1.0});
        prune(run, 2);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    for (const SavedStep& saved : list(run)) CheckpointReader(saved.folder).verify();  // what has the name is whole
    const auto found = newest_whole(run);
    ASSERT_TRUE(found);
    EXPECT_GE(found->step, newest);
    newest = found->step;
    read_best(run);
  }
  EXPECT_GT(newest, 1);
  save(run, newest + 1, 10);
  for (const auto& entry : fs::directory_iterator(run))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".part-")) << entry.path();
}

TEST(Crash, AFileThatMayNotGrow) {
  ScratchFolder scratch;
  const fs::path run = scratch / "run";
  save(run, 1, 1000);
  const std::string error = in_child(scratch / "answer", [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4'000'000, 4'000'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return error_of([&] { save(run, 2, 9'000'000); }, scratch.path());
  });
  EXPECT_EQ(error,
            "[checkpoint] step 2 is not saved, earlier checkpoints are untouched: cannot write "
            "\"run/.part-step_00000002/rank_00000.safetensors\": File too large");
  EXPECT_EQ(newest_whole(run)->step, 1);
  EXPECT_EQ(std::distance(fs::directory_iterator(run), {}), 1);
}

TEST(Crash, ADiskThatIsFull) {
  ScratchFolder scratch;
  const fs::path disk = scratch / "disk";
  fs::create_directory(disk);
  const std::string error = in_child(scratch / "answer", [&]() -> std::string {
    // A mount of the child, which ends with it.
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=4m") != 0)
      return "no mount";
    save(disk, 1, 1'000'000);
    std::string text = error_of([&] { save(disk, 2, 9'000'000); }, scratch.path());
    if (newest_whole(disk)->step != 1) text += " (step 1 is lost)";
    if (!error_of([&] { save(disk, 3, 1'000'000); }).empty()) text += " (the space was not freed)";
    return text;
  });
  if (error == "no mount") GTEST_SKIP() << "this process may not mount a file system";
  EXPECT_EQ(error,
            "[checkpoint] step 2 is not saved, earlier checkpoints are untouched: cannot write "
            "\"disk/.part-step_00000002/rank_00000.safetensors\": No space left on device");
}

TEST(Crash, AFolderThatCannotBeWritten) {
  ScratchFolder scratch;
  put(scratch / "file", "");
  EXPECT_EQ(error_of([&] { save(scratch / "file", 1, 10); }, scratch.path()),
            "[checkpoint] step 1 is not saved, earlier checkpoints are untouched: cannot make folder \"file\": Not a "
            "directory");
}

}  // namespace kintsugi::checkpoint::crash_test
