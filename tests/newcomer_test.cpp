// Runs the README from top to bottom as a newcomer: in a terminal of 80 columns and in a pipe. Anything that takes over
// two seconds shows progress, and no line is cut.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "tests/process.h"

namespace kintsugi::tests::newcomer_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kColumns = 80;
// Nothing is printed in the first moments, and a pipe gets a line every five seconds; the rest is slack for other tests
// that run concurrently.
constexpr double kQuietInTerminal = 2 + 4, kQuietInPipe = 5 + 4;

const fs::path kRoot = fs::path(__FILE__).parent_path().parent_path();

// The commands of the page, per block.
std::vector<std::string> blocks_of(const fs::path& page) {
  std::vector<std::string> blocks;
  std::ifstream in(page);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line == "```sh") {
      inside = true;
      blocks.emplace_back();
    } else if (line.starts_with("```")) {
      inside = false;
    } else if (inside) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

struct Seen {
  int status = -1;
  std::string text;
  double quiet = 0;  // the longest time without a sign of life
};

// Runs a bash script, and reads its output as it is written.
Seen run_script(const fs::path& folder, const std::string& script, bool terminal) {
  std::ofstream(folder / "block.sh") << script;
  const std::string command = "cd '" + folder.string() + "' && PATH='" + (folder / "bin").string() +
                              "':$PATH exec bash -euo pipefail block.sh" + (terminal ? "" : " 2>&1 < /dev/null");
  Seen seen;
  int from = -1;
  pid_t pid = -1;
  if (terminal) {
    struct winsize size = {};
    size.ws_row = 24;
    size.ws_col = kColumns;
    pid = ::forkpty(&from, nullptr, nullptr, &size);
  } else {
    int ends[2] = {};
    EXPECT_EQ(::pipe(ends), 0);
    pid = ::fork();
    if (pid == 0) ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[1]);
    from = ends[0];
  }
  if (pid == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  auto last = Clock::now();
  char buffer[4096];
  for (ssize_t n; (n = ::read(from, buffer, sizeof buffer)) > 0;) {
    seen.quiet = std::max(seen.quiet, std::chrono::duration<double>(Clock::now() - last).count());
    last = Clock::now();
    seen.text.append(buffer, static_cast<size_t>(n));
  }
  ::close(from);
  ::waitpid(pid, &seen.status, 0);
  return seen;
}

// The successive contents of a line that is overwritten.
std::vector<std::string> overwritten(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t end = text.find("\x1b[K"); end != std::string::npos; end = text.find("\x1b[K", end + 1)) {
    const size_t begin = text.rfind('\r', end);
    if (begin != std::string::npos && begin + 1 < end) lines.push_back(text.substr(begin + 1, end - begin - 1));
  }
  return lines;
}

int columns(std::string_view text) {
  int count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<size_t>(1, base::utf8_length(text)));
  return count;
}

class Newcomer : public ::testing::TestWithParam<bool> {
 protected:
  Newcomer() {
    for (const char* name : {"kintsugi", "docs", "examples", "clusters"})
      fs::create_symlink(kRoot / name, folder / name);
    fs::create_directory(folder / "bin");
    fs::create_symlink(kintsugi_command(), folder / "bin/kintsugi");
  }

  TemporaryFolder folder;
};

}  // namespace

TEST_P(Newcomer, ReadsTheReadme) {
  const bool terminal = GetParam();
  const std::vector<std::string> blocks = blocks_of(kRoot / "README.md");
  ASSERT_GE(blocks.size(), 6u);
  size_t moved = 0, most = 0;
  for (const std::string& block : blocks) {
    const Seen seen = run_script(folder.path(), block, terminal);
    EXPECT_TRUE(WIFEXITED(seen.status) && WEXITSTATUS(seen.status) == 0) << block << "\n" << seen.text;
    EXPECT_LT(seen.quiet, terminal ? kQuietInTerminal : kQuietInPipe) << block << "\n" << seen.text;
    for (const std::string& line : overwritten(seen.text)) {
      ++moved;
      most = std::max(most, static_cast<size_t>(columns(line)));
      EXPECT_LT(columns(line), kColumns) << line;
      // A truncated line fills the width.
      EXPECT_TRUE(columns(line) < kColumns - 1 || line.ends_with(" left")) << "cut: " << line;
    }
  }
  if (terminal) {
    EXPECT_GT(moved, 20u);
    EXPECT_GT(most, 60u);
  } else {
    EXPECT_EQ(moved, 0u);
  }
}
INSTANTIATE_TEST_SUITE_P(InA, Newcomer, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "Terminal" : "Pipe"; });

}  // namespace kintsugi::tests::newcomer_test
