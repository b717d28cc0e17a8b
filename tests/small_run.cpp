#include "tests/small_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/data/token_writer.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/models/models.h"
#include "kintsugi/train/worlds.h"
#include "tests/paths.h"

namespace kintsugi::tests {

RunFiles::RunFiles() {
  std::string name = (std::filesystem::temp_directory_path() / "kintsugi_run_XXXXXX").string();
  if (!::mkdtemp(name.data())) throw base::InternalError("test", "no temporary folder");
  path_ = name;
  write_tokens("train", 3000);
  write_tokens("validation", 300);
}

RunFiles::~RunFiles() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string RunFiles::toml(const std::string& family, const std::string& dtype) const {
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

void RunFiles::write_tokens(const std::string& name, uint64_t count) const {
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

void Watcher::step(const train::Metrics& m, int64_t) {
  // The loop checks for a stop before it reports a step, so a stop set now applies to the next one.
  if (m.step + 1 == stop_after_) stop = 1;
}

train::Outcome train_here(train::TrainOptions options, train::Observer& observer) {
  const auto worlds = train::make_worlds(options.config.settings);
  return train::train(std::move(options), worlds, observer);
}

train::Outcome run_here(const std::string& toml, const std::vector<std::string>& sets, bool resume, int64_t stop_after,
                        std::vector<std::string>* notes) {
  Watcher watcher(stop_after);
  const train::Outcome outcome = train_here({.config = config::load(toml, models::catalog(), sets, 2),
                                             .resume = resume ? train::Resume::yes : train::Resume::no,
                                             .stop = &watcher.stop},
                                            watcher);
  if (notes) *notes = watcher.notes;
  return outcome;
}

Child::Child(const std::vector<std::string>& arguments, const std::filesystem::path& output) {
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

Child::~Child() {
  if (pid_ > 0) send(SIGKILL), wait();
}

void Child::send(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

bool Child::running() {
  int status = 0;
  if (pid_ <= 0 || ::waitpid(pid_, &status, WNOHANG) == 0) return pid_ > 0;
  status_ = status;
  pid_ = -1;
  return false;
}

int Child::wait() {
  if (pid_ > 0) ::waitpid(pid_, &status_, 0);
  pid_ = -1;
  return status_;
}

int64_t lines_of(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return 0;
  const std::string text = base::read_file(path);
  return std::count(text.begin(), text.end(), '\n');
}

std::vector<std::string> metrics_of(const std::filesystem::path& run) {
  std::vector<std::string> lines;
  const std::string text = base::read_file(run / "metrics.jsonl");
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    nlohmann::json line = nlohmann::json::parse(text.substr(begin, end - begin));
    for (const char* name : {"tokens_per_second", "flops_per_second", "peak_share", "seconds"})
      EXPECT_EQ(line.erase(name), 1u) << name;
    for (const char* name : {"stage_seconds", "drain_seconds"}) line.erase(name);  // after a save
    lines.push_back(line.dump());
  }
  return lines;
}

std::map<std::string, std::vector<std::byte>> tensors_of(const std::filesystem::path& checkpoint) {
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
