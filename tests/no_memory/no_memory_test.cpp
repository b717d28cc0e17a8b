// Each command, with failing allocations: it succeeds, or ends with one line and exit code 1. More places:
// --gtest_repeat=100.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "kintsugi/base/file.h"
#include "tests/patterns.h"
#include "tests/process.h"

namespace kintsugi::tests {
namespace {

constexpr int kTries = 8;

class NoMemory : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 300; ++i) text += fmt::format("{} is {} and {}\n", i, i * i % 7, i % 5);
    base::write_file_atomically(folder / "text.txt", text);
    base::write_file_atomically(folder / "run.toml", R"([model]
family = "llama"
layers = 2
embed = 32
heads = 4
kv_heads = 2
dropout = 0.1
[data]
train = "data/train.bin"
validation = "data/validation.bin"
[train]
folder = "run"
steps = 3
global_batch = 4
micro_batch = 2
sequence = 16
evaluate_every = 2
[checkpoint]
every = 2
)");
    // The destructor of a JSON library value allocates.
    const std::string list = fmt::format("nm -S '{}' | sed -nE '/nlohmann.*(json_value7destroy|D[012]Ev$)/p' > '{}'",
                                         kintsugi_command(), (folder / "json").string());
    ASSERT_EQ(std::system(list.c_str()), 0);
    for (const char* made : {"prepare text.txt --output data --tokenizer chars", "train run.toml"})
      ASSERT_EQ(run_kintsugi(folder.path(), made).code, 0);
  }
  static std::mt19937_64& random() {
    static std::mt19937_64 generator(1);
    return generator;
  }
  Ended run(const std::string& set) const {
    return run_kintsugi(folder.path(), GetParam(),
                        fmt::format("export LD_PRELOAD='{}' KINTSUGI_EXEMPT=json {}", KINTSUGI_FAIL_NEW, set));
  }

  const TemporaryFolder folder;
};

TEST_P(NoMemory, EndsInOneLine) {
  const Ended whole = run("KINTSUGI_COUNT_NEW=count");
  ASSERT_EQ(whole.code, 0) << whole.out << whole.err;
  const long all = std::stol(base::read_file(folder / "count"));
  ASSERT_GT(all, 1000);
  int refused = 0;
  for (int i = 0; i < kTries; ++i) {
    fs::remove_all(folder / "made");
    const long first = std::uniform_int_distribution<long>(0, all - 1)(random());
    const long failing = std::vector<long>{1, 3, 1000000000}[random()() % 3];
    const std::string set = fmt::format("KINTSUGI_FAIL_NEW={}:{}", first, failing);
    const Ended ended = run(set);
    const std::string what = fmt::format("{} {}: {} {}", set, GetParam(), ended.out, ended.err);
    EXPECT_EQ(ended.signal, 0) << what;
    if (ended.code == 0) continue;
    ++refused;
    EXPECT_EQ(ended.code, 1) << what;
    EXPECT_TRUE(matches(ended.err, "([^\n]*\n)*error: \\[[^\n]*\n")) << what;
    EXPECT_EQ(ended.err.find("this is a bug"), std::string::npos) << what;
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Commands, NoMemory,
    testing::Values("prepare text.txt --output made", "check run.toml", "plan run.toml --csv plan.csv",
                    "explain run.toml", "train run.toml --set train.folder=made parallel.offload=optimizer",
                    "train run.toml --set train.folder=made parallel.ranks=2 parallel.data=2 parallel.zero=3",
                    "train run.toml --set train.folder=made parallel.ranks=2 parallel.pipe=2",
                    "train run.toml --set train.folder=made parallel.device=emulated", "train run.toml --resume",
                    "evaluate run", "generate run --length 5", "export run made", "report run"));

}  // namespace
}  // namespace kintsugi::tests
