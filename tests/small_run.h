// Whole runs in folders: token files, a run.toml, the run in this process or in a separate one, and its output.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "kintsugi/train/trainer.h"

namespace kintsugi::tests {

class RunFiles {
 public:
  RunFiles();
  ~RunFiles();
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  std::filesystem::path folder(const std::string& run) const { return path_ / run; }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }

  // A run.toml of a small model that uses everything that could differ from run to run. `sets` as on the command line.
  std::string toml(const std::string& family = "llama", const std::string& dtype = "fp32") const;

 private:
  // Documents in which the next token follows from the last, with some noise.
  void write_tokens(const std::string& name, uint64_t count) const;

  std::filesystem::path path_;
};

// In this process. Stops after `stop_after` steps if that is not 0.
class Watcher : public train::Observer {
 public:
  explicit Watcher(int64_t stop_after = 0) : stop_after_(stop_after) {}
  void note(const std::string& line) override { notes.push_back(line); }
  void step(const train::Metrics& m, int64_t) override;

  std::vector<std::string> notes;
  std::atomic<int> stop{0};

 private:
  int64_t stop_after_;
};

train::Outcome train_here(train::TrainOptions options, train::Observer& observer);

train::Outcome run_here(const std::string& toml, const std::vector<std::string>& sets, bool resume = false,
                        int64_t stop_after = 0, std::vector<std::string>* notes = nullptr);

// The program as a separate process; its output goes to a file.
class Child {
 public:
  Child(const std::vector<std::string>& arguments, const std::filesystem::path& output);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal) const;
  bool running();
  // As returned by waitpid.
  int wait();

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

int64_t lines_of(const std::filesystem::path& path);

// Whether it becomes true within a minute.
template <typename F>
bool wait_for(F&& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return true;
}

// metrics.jsonl without values that depend on time; numbers as printed, which is exact.
std::vector<std::string> metrics_of(const std::filesystem::path& run);

// The bytes of every tensor of a checkpoint, by name.
std::map<std::string, std::vector<std::byte>> tensors_of(const std::filesystem::path& checkpoint);

}  // namespace kintsugi::tests
