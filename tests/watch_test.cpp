// `kintsugi watch` in a terminal, and in a pipe.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <utmp.h>

#include <chrono>
#include <fstream>
#include <string>

#include "kintsugi/base/file.h"
#include "tests/process.h"

namespace kintsugi::tests::watch_test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string line_of(int step) {
  return fmt::format("{{\"step\":{},\"loss\":{},\"learning_rate\":0.001,\"gradient_norm\":1.5,\"seconds\":0.25}}\n",
                     step, 8.5 - step);
}

// The command in a terminal of its own.
class InTerminal {
 public:
  InTerminal(const fs::path& folder, const std::string& command) {
    struct winsize size = {};
    size.ws_row = 24;
    size.ws_col = 80;
    int process_end = -1;
    if (::openpty(&terminal_, &process_end, nullptr, nullptr, &size) != 0) return;
    ::tcgetattr(terminal_, &before);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(terminal_);
      ::login_tty(process_end);
      ::execl("/bin/sh", "sh", "-c", ("cd '" + folder.string() + "' && exec " + command).c_str(), nullptr);
      ::_exit(127);
    }
    ::close(process_end);
  }
  ~InTerminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(terminal_);
  }
  InTerminal(const InTerminal&) = delete;
  InTerminal& operator=(const InTerminal&) = delete;

  // Reads until `text` has been written, or for a minute.
  bool shows(const std::string& text) {
    const auto begin = Clock::now();
    while (seconds_since(begin) < 60) {
      if (written.find(text) != std::string::npos) return true;
      read();
    }
    return false;
  }
  void type(const std::string& keys) { EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), std::ssize(keys)); }
  void resize(unsigned short columns, unsigned short rows) {
    struct winsize size = {};
    size.ws_row = rows;
    size.ws_col = columns;
    ::ioctl(terminal_, TIOCSWINSZ, &size);
  }
  void send(int signal) { EXPECT_EQ(::kill(pid_, signal), 0); }
  // The exit status when the process ends.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) read();
    read();
    pid_ = -1;
    return status;
  }
  termios settings() const {
    termios now = {};
    ::tcgetattr(terminal_, &now);
    return now;
  }

  std::string written;
  termios before = {};

 private:
  void read() {
    pollfd ready = {.fd = terminal_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 20) <= 0) return;
    char buffer[4096];
    const ssize_t n = ::read(terminal_, buffer, sizeof buffer);
    if (n > 0) written.append(buffer, static_cast<size_t>(n));
  }

  int terminal_ = -1;
  pid_t pid_ = -1;
};

class Watch : public ::testing::Test {
 protected:
  Watch() {
    fs::create_directories(folder / "run");
    std::ofstream(folder / "run/config.toml") << "[train]\nsteps = 6\n[checkpoint]\nevery = 4\n";
    append(line_of(1) + line_of(2));
  }

  void append(const std::string& text) const { std::ofstream(folder / "run/metrics.jsonl", std::ios::app) << text; }
  Ended run(const std::string& arguments) const { return run_kintsugi(folder.path(), arguments); }

  TemporaryFolder folder;
};

}  // namespace

TEST_F(Watch, FollowsARunUntilAKeyOrASignal) {
  for (const std::string key : {"q", "\x03"}) {
    fs::remove(folder / "run/metrics.jsonl");
    append(line_of(1) + line_of(2));
    InTerminal terminal(folder.path(), "env LANG=C.UTF-8 " + kintsugi_command() + " watch run");
    EXPECT_TRUE(terminal.shows("\x1b[?1049h"));
    EXPECT_TRUE(terminal.shows("step 2/6")) << terminal.written;
    EXPECT_TRUE(terminal.shows("\x1b[36m"));
    EXPECT_TRUE(terminal.shows("q ends"));
    EXPECT_NE(terminal.settings().c_lflag & ECHO, terminal.before.c_lflag & ECHO);
    append(line_of(3));
    EXPECT_TRUE(terminal.shows("step 3/6"));
    EXPECT_TRUE(terminal.shows("loss 5.5000"));
    // Resumed from step 2.
    base::write_file_atomically(folder / "run/metrics.jsonl", line_of(1) + line_of(2));
    append("{\"step\":3,\"loss\":4.75}\n" + line_of(4));
    EXPECT_TRUE(terminal.shows("step 4/6"));
    terminal.resize(40, 10);
    terminal.written.clear();
    EXPECT_TRUE(terminal.shows("next checkpoint at step 6"));
    append(line_of(5) + line_of(6));
    EXPECT_TRUE(terminal.shows("done"));
    const auto typed = Clock::now();
    terminal.type(key);
    const int status = terminal.wait();
    EXPECT_LT(seconds_since(typed), 1.0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_NE(terminal.written.find("\x1b[?25h\x1b[?1049l"), std::string::npos);
    EXPECT_EQ(terminal.settings().c_lflag, terminal.before.c_lflag);
    EXPECT_EQ(terminal.settings().c_cc[VSUSP], terminal.before.c_cc[VSUSP]);
  }
}

TEST_F(Watch, SignalsRestoreTheTerminal) {
  for (const int signal : {SIGHUP, SIGQUIT, SIGTERM}) {
    InTerminal terminal(folder.path(), kintsugi_command() + " watch run");
    EXPECT_TRUE(terminal.shows("q ends"));
    terminal.send(signal);
    const int status = terminal.wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << signal << " " << status;
    EXPECT_NE(terminal.written.find("\x1b[?25h\x1b[?1049l"), std::string::npos) << signal;
    EXPECT_EQ(terminal.settings().c_lflag, terminal.before.c_lflag) << signal;
  }
}

TEST_F(Watch, PrintsOnce) {
  const std::string piped = run("watch run").out;
  EXPECT_TRUE(piped.starts_with("run                                                                      running\n"))
      << piped;
  EXPECT_NE(piped.find("step 2/6  33%  about 1.0s left\n"), std::string::npos) << piped;
  EXPECT_NE(piped.find("next checkpoint at step 4 or in 10m00s"), std::string::npos) << piped;
  for (const unsigned char c : piped) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << piped;
  EXPECT_EQ(run("watch run --once --plain").out.substr(0, 30), piped.substr(0, 30));
  const auto in_terminal = [&](const std::string& environment, const std::string& options) {
    InTerminal terminal(folder.path(),
                        "env " + environment + " " + kintsugi_command() + " watch run --once " + options);
    EXPECT_EQ(terminal.wait(), 0);
    return terminal.written;
  };
  const auto braille = [](const std::string& text) { return text.find("\xe2\xa0") != std::string::npos; };
  const auto colour = [](const std::string& text) { return text.find('\x1b') != std::string::npos; };
  const std::string all = in_terminal("LC_ALL=C.UTF-8 NO_COLOR=", ""),
                    none = in_terminal("LC_ALL=C.UTF-8 NO_COLOR=1", ""), other = in_terminal("LC_ALL=C NO_COLOR=", ""),
                    plain = in_terminal("LC_ALL=C.UTF-8 NO_COLOR=", "--plain");
  EXPECT_TRUE(braille(all) && colour(all)) << all;
  EXPECT_TRUE(braille(none) && !colour(none)) << none;
  EXPECT_TRUE(!braille(other) && colour(other)) << other;
  EXPECT_TRUE(!braille(plain) && !colour(plain)) << plain;
}

TEST_F(Watch, BeforeTheFirstStepAndWhenTheFolderGoes) {
  fs::remove(folder / "run/metrics.jsonl");
  EXPECT_NE(run("watch run").out.find("before its first step\n"), std::string::npos);
  InTerminal terminal(folder.path(), kintsugi_command() + " watch run");
  EXPECT_TRUE(terminal.shows("no step yet"));
  fs::remove_all(folder / "run");
  EXPECT_TRUE(terminal.shows("its folder is gone"));
}

// The end as reported by `train`.
TEST_F(Watch, WhyARunEnded) {
  std::ofstream text(folder / "text.txt");
  for (int i = 0; i < 400; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
  text.close();
  ASSERT_EQ(run("prepare text.txt --tokenizer bytes --output corpus").code, 0);
  std::ofstream(folder / "run.toml") << "[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\n"
                                        "[train]\nfolder = \"small\"\nsteps = 100000\nglobal_batch = 2\nsequence = "
                                        "16\n[parallel]\nthreads = 1\n";
  const auto first_line = [&] {
    const std::string shown = run("watch small --once").out;
    return shown.substr(0, shown.find('\n'));
  };
  Process process(folder.path(), "train run.toml");
  ASSERT_TRUE(process.wait_for([&] { return fs::exists(folder / "small/profile.json"); }));
  EXPECT_TRUE(first_line().ends_with(" running")) << first_line();
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().code, 0);
  EXPECT_TRUE(first_line().ends_with(" stopped by a signal")) << first_line();
  EXPECT_EQ(run("report small").err, "");
  EXPECT_NE(base::read_file(folder / "small/report.html").find("<td>stopped by a signal</td>"), std::string::npos);

  EXPECT_EQ(run("train run.toml --resume --set train.stop_after_minutes=1e-9").code, 0);
  EXPECT_TRUE(first_line().ends_with(" stopped by stop_after_minutes")) << first_line();

  const Ended failed = run("train run.toml --set train.folder=bad train.learning_rate=1e9 train.clip=0");
  EXPECT_EQ(failed.code, 1);
  const std::string shown = run("watch bad --once").out;
  EXPECT_NE(shown.find(" ended with an error\n[train] step "), std::string::npos) << shown;
  EXPECT_EQ(run("report bad").code, 0);
  EXPECT_NE(base::read_file(folder / "bad/report.html").find("<td>ended with an error: [train] step "),
            std::string::npos);

  // A running run has not ended, and a finished one is done.
  std::ofstream(folder / "small/ended.json") << "damaged";
  EXPECT_NE(first_line().find("ended.json"), std::string::npos) << first_line();
  EXPECT_EQ(run("train run.toml --set train.folder=done train.steps=2").code, 0);
  EXPECT_EQ(base::read_file(folder / "done/ended.json"), "{\"step\":2}\n");
  EXPECT_NE(run("watch done --once").out.find(" done\n"), std::string::npos);
}

TEST_F(Watch, WhatIsNoRun) {
  EXPECT_EQ(run("watch nothing").err,
            "error: [watch] folder \"nothing\" not found; name the folder of a run ([train] folder)\n");
  fs::remove(folder / "run/config.toml");
  EXPECT_EQ(run("watch run").err,
            "error: [watch] \"run\" is not a run: config.toml is missing; name the folder of a run ([train] folder)\n");
}

}  // namespace kintsugi::tests::watch_test
