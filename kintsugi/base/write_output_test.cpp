#include "kintsugi/base/write_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/read_only_file.h"

namespace kintsugi::base::write_output_test {
namespace {

namespace fs = std::filesystem;

class WriteOutput : public testing::Test {
 protected:
  WriteOutput() {
    std::string name = (fs::temp_directory_path() / "kintsugi_XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  ~WriteOutput() override { fs::remove_all(folder); }

  template <typename F>
  std::string error_of(F&& f) {
    try {
      f();
      return "";
    } catch (const UserError& error) {
      std::string text = error.what();
      for (size_t at; (at = text.find(folder.string() + "/")) != text.npos;) text.erase(at, folder.string().size() + 1);
      return text;
    }
  }
  std::vector<std::string> names() {
    std::vector<std::string> list;
    for (const auto& entry : fs::directory_iterator(folder)) list.push_back(entry.path().filename().string());
    std::sort(list.begin(), list.end());
    return list;
  }

  fs::path folder;
};

}  // namespace

TEST_F(WriteOutput, MakesAndReplacesFiles) {
  write_output(folder / "a", "one");
  EXPECT_EQ(read_file(folder / "a"), "one");
  ::chmod((folder / "a").c_str(), 0600);
  write_output(folder / "a", "another");
  EXPECT_EQ(read_file(folder / "a"), "another");
  struct stat status = {};
  ASSERT_EQ(::stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  EXPECT_EQ(error_of([&] { write_output(folder / "no/a", ""); }),
            "[file] cannot write \"no/a\": No such file or directory");
  EXPECT_EQ(error_of([&] { write_output(folder, ""); }).substr(0, 19), "[file] cannot write");
}

TEST_F(WriteOutput, FollowsLinks) {
  fs::create_directory(folder / "there");
  fs::create_symlink("there/target", folder / "second");
  fs::create_symlink(folder / "second", folder / "first");
  for (const char* text : {"made", "replaced"}) {
    write_output(folder / "first", text);
    EXPECT_TRUE(fs::is_symlink(folder / "first"));
    EXPECT_TRUE(fs::is_symlink(folder / "second"));
    EXPECT_EQ(read_file(folder / "there/target"), text);
  }
  fs::create_symlink("loop", folder / "loop");
  EXPECT_EQ(error_of([&] { write_output(folder / "loop", ""); }),
            "[file] cannot write \"loop\": Too many levels of symbolic links");
}

TEST_F(WriteOutput, LeavesDevices) {
  const fs::path null = folder / "null", full = folder / "full";
  // Only root can create devices, and not in every container; without root, the system's other devices cannot be
  // replaced.
  if (::mknod(null.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0 ||
      ::mknod(full.c_str(), S_IFCHR | 0666, makedev(1, 7)) != 0)
    GTEST_SKIP() << "no right to make a device";
  const int opened = ::open(null.c_str(), O_WRONLY);
  if (opened < 0) GTEST_SKIP() << "no right to use a device";
  ::close(opened);
  write_output(null, "text");
  EXPECT_TRUE(fs::is_character_file(null));
  EXPECT_EQ(error_of([&] { write_output(full, "text"); }), "[file] cannot write \"full\": No space left on device");
  EXPECT_TRUE(fs::is_character_file(full));
}

TEST_F(WriteOutput, WritesIntoAFifo) {
  const fs::path fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&] { write_output(fifo, "text"); });
  const int reader = ::open(fifo.c_str(), O_RDONLY);  // waits for the writer
  writer.join();
  std::array<char, 8> read = {};
  EXPECT_EQ(::read(reader, read.data(), read.size()), 4);
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(fifo));
}

TEST_F(WriteOutput, WritesToStdoutUnderAnotherName) {
  std::fflush(stdout);
  const int kept = ::dup(STDOUT_FILENO);
  const int file = ::open((folder / "out").c_str(), O_WRONLY | O_CREAT, 0600);
  ::dup2(file, STDOUT_FILENO);
  std::fputs("before\n", stdout);
  write_output("/dev/stdout", "a\n");
  write_output(folder / "out", "b\n");
  ::dup2(kept, STDOUT_FILENO);
  ::close(kept);
  ::close(file);
  EXPECT_EQ(read_file(folder / "out"), "before\na\nb\n");
}

TEST_F(WriteOutput, RefusesInputs) {
  const auto refused = [&](const std::string& csv, const std::string& svg) {
    const std::array<Output, 2> outputs = {
        {{"--csv", csv.empty() ? "" : folder / csv}, {"--svg", svg.empty() ? "" : folder / svg}}};
    const std::array<fs::path, 2> inputs = {folder / "run.toml", folder / "absent"};
    return error_of([&] { refuse_inputs("plan", outputs, inputs); });
  };
  write_file_atomically(folder / "run.toml", "text");
  fs::create_symlink("run.toml", folder / "link");
  fs::create_hard_link(folder / "run.toml", folder / "hard");
  EXPECT_EQ(refused("", ""), "");
  EXPECT_EQ(refused("a", "b"), "");
  EXPECT_EQ(refused("absent", ""), "");
  EXPECT_EQ(refused("run.toml", ""), "[plan] --csv \"run.toml\" is a file of this run; name another");
  EXPECT_EQ(refused("", "link"), "[plan] --svg \"link\" is \"run.toml\", a file of this run; name another");
  EXPECT_EQ(refused("", "hard"), "[plan] --svg \"hard\" is \"run.toml\", a file of this run; name another");
  EXPECT_EQ(refused("a", "./a"), "[plan] --csv and --svg are one file, \"./a\"; name two");
  write_file_atomically(folder / "a", "text");
  EXPECT_EQ(refused("a", "a"), "[plan] --csv and --svg are one file, \"a\"; name two");
}

TEST_F(WriteOutput, ReadsWithALimit) {
  write_file_atomically(folder / "file", "12345");
  EXPECT_EQ(read_file(folder / "file", {5, "a note"}), "12345");
  EXPECT_EQ(error_of([&] {
              read_file(folder / "file", {4, "a note"});
            }),
            "[file] \"file\" has more than 4 B; a note has less");
  EXPECT_EQ(error_of([&] {
              read_file("/dev/zero", {1 << 20, "a note"});
            }),
            "[file] \"/dev/zero\" has more than 1.0 MiB; a note has less");
  EXPECT_EQ(read_file("/dev/null", {4, "a note"}), "");
}

TEST_F(WriteOutput, ReadsAFifoThatHasAWriter) {
  const fs::path fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string unused = "[file] \"fifo\" is a FIFO into which no process writes; start the writer first";
  EXPECT_EQ(error_of([&] { read_file(fifo); }), unused);
  EXPECT_EQ(error_of([&] { ReadOnlyFile file(fifo); }), "[file] \"fifo\" is not a regular file");
  const int end = ::open(fifo.c_str(), O_RDWR);  // so that the writer need not wait, and is there when we read
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(::write(end, "text", 4), 4);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ::close(end);
  });
  EXPECT_EQ(read_file(fifo), "text");
  writer.join();
}

// In a container nearly every process has the number of the one that was killed.
TEST_F(WriteOutput, RemovesPartsOfKilledProcesses) {
  const std::string mine = fmt::format(".kintsugi-{}-0.part", ::getpid());
  const auto made = [&](const std::string& name) { write_file_atomically(folder / name, "half"); };
  made(mine);
  made(".kintsugi-1-0.part");
  fs::last_write_time(folder / ".kintsugi-1-0.part", fs::file_time_type::clock::now() - std::chrono::minutes(5));
  made(".kintsugi-1-1.part");  // its process, which lives, may have just made it
  made(".kintsugi-1-2.part");
  fs::last_write_time(folder / ".kintsugi-1-2.part", fs::file_time_type::clock::now() - std::chrono::minutes(5));
  const int locked = ::open((folder / ".kintsugi-1-2.part").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(locked, LOCK_EX), 0);
  write_output(folder / "a", "whole");
  EXPECT_EQ(names(), (std::vector<std::string>{".kintsugi-1-1.part", ".kintsugi-1-2.part", "a"}));
  ::close(locked);
}

}  // namespace kintsugi::base::write_output_test
