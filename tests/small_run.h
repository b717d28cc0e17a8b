// Whole runs in folders, for tests: token files, a run.toml, the run in this process or as a process of its own, and
// what it left behind.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/data/token_writer.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/train/trainer.h"
#include "kintsugi/train/worlds.h"
#include "tests/paths.h"

namespace kintsugi::tests {

class RunFiles {
 public:
  RunFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "kintsugi_run_XXXXXX").string();
    if (!::mkdtemp(name.data())) throw base::InternalError("test", "no temporary folder");
    path_ = name;
    write_tokens("train", 3000);
    write_tokens("validation", 300);
  }
  ~RunFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  std::filesystem::path folder(const std::string& run) const { return path_ / run; }
  std::filesystem::path file(const std::string& name) const { return path_ / name; }

  // A run.toml of a small model with everything on that could differ from run to run. `sets` as on the command line.
  std::string toml(const std::string& family = "llama", const std::string& dtype = "fp32") const {
    const std::filesystem::path path = path_ / (family + "_" + dtype + ".toml");
    base::write_file_atomically(
        path, fmt::format(R"([model]
family = "{}"
layers = 2
embed = 32
heads = 4
kv_heads = 2
vocab = 40
dropout = 0.1
[data]
train = "{}"
validation = "{}"
reset_at_document = true
[train]
folder = "{}"
steps = 20
global_batch = 4
micro_batch = 2
sequence = 16
dtype = "{}"
learning_rate = 1e-2
warmup_steps = 3
decay_steps = 20
evaluate_every = 5
[parallel]
threads = 2
[checkpoint]
every = 4
)",
                          family, file("train").string(), file("validation").string(), folder("run").string(), dtype));
    return path.string();
  }

 private:
  // Documents in which the next token follows from the last, but for some noise.
  void write_tokens(const std::string& name, uint64_t count) const {
    data::TokenWriter writer(path_ / name, {.vocab_size = 40, .tokenizer = "t"});
    const auto key = kernels::random_key(3, name);
    int32_t token = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint32_t word = kernels::random_word(key, 0, i);
      token = word % 5 == 0 ? static_cast<int32_t>((word >> 8) % 40) : (token * 7 + 3) % 40;
      writer.append(std::span(&token, 1));
      if (word % 61 == 0) writer.end_document();
    }
    writer.finish();
    writer.publish();
  }

  std::filesystem::path path_;
};

// In this process. Stops after `stop_after` steps if that is not 0.
class Watcher : public train::Observer {
 public:
  explicit Watcher(int64_t stop_after = 0) : stop_after_(stop_after) {}
  void note(const std::string& line) override { notes.push_back(line); }
  void step(const train::Metrics& m, int64_t) override {
    // The loop checks for a stop before it reports a step, so that a stop that is set now applies to the next one.
    if (m.step + 1 == stop_after_) stop = 1;
  }

  std::vector<std::string> notes;
  std::atomic<int> stop{0};

 private:
  int64_t stop_after_;
};

inline train::Outcome train_here(train::TrainOptions options, train::Observer& observer) {
  const auto worlds = train::make_worlds(options.config.settings);
  return train::train(std::move(options), worlds, observer);
}

inline train::Outcome run_here(const std::string& toml, const std::vector<std::string>& sets, bool resume = false,
                               int64_t stop_after = 0, std::vector<std::string>* notes = nullptr) {
  Watcher watcher(stop_after);
  const train::Outcome outcome =
      train_here({.config = config::load(toml, sets, 2), .resume = resume, .stop = &watcher.stop}, watcher);
  if (notes) *notes = watcher.notes;
  return outcome;
}

// The program itself, as a process; its output goes to a file.
class Child {
 public:
  Child(const std::vector<std::string>& arguments, const std::filesystem::path& output) {
    std::vector<std::string> words = {kintsugi_command()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (::posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
    ::posix_spawn_file_actions_destroy(&actions);
    if (pid_ < 0) throw base::InternalError("test", "cannot start {}", words[0]);
  }
  ~Child() {
    if (pid_ > 0) send(SIGKILL), wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal) const {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  bool running() {
    int status = 0;
    if (pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) == 0) return pid_ > 0;
    status_ = status;
    pid_ = -1;
    return false;
  }
  // As waitpid has it.
  int wait() {
    if (pid_ > 0) ::waitpid(pid_, &status_, 0);
    pid_ = -1;
    return status_;
  }

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

inline int64_t lines_of(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return 0;
  const std::string text = base::read_file(path);
  return std::count(text.begin(), text.end(), '\n');
}

// True if it holds within a minute.
template <typename F>
bool wait_for(F&& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return true;
}

// metrics.jsonl without what depends on time; numbers as they were printed, which is exact.
inline std::vector<std::string> metrics_of(const std::filesystem::path& run) {
  std::vector<std::string> lines;
  const std::string text = base::read_file(run / "metrics.jsonl");
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    nlohmann::json line = nlohmann::json::parse(text.substr(begin, end - begin));
    for (const char* name : {"tokens_per_second", "flops_per_second", "peak_share", "seconds"})
      EXPECT_EQ(line.erase(name), 1u) << name;
    lines.push_back(line.dump());
  }
  return lines;
}

// The bytes of every tensor of a checkpoint, by name.
inline std::map<std::string, std::vector<std::byte>> tensors_of(const std::filesystem::path& checkpoint) {
  const checkpoint::CheckpointReader reader(checkpoint);
  std::map<std::string, std::vector<std::byte>> all;
  for (const auto& [name, stored] : reader.index().tensors) {
    std::vector<std::byte>& bytes = all[name];
    bytes.resize(static_cast<size_t>(stored.type.bytes()));
    reader.read({.name = name, .box = {}, .flat = {}}, stored.type.dtype, bytes);
  }
  return all;
}

}  // namespace kintsugi::tests
