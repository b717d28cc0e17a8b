// [train] batch_warmup: the first steps with fewer micro-batches, over the same states.
#include "kintsugi/config/batch_warmup.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tests/layouts.h"
#include "tests/small_run.h"

namespace kintsugi::tests::batch_warmup_test {
namespace {

std::vector<double> column(const RunFiles& files, const std::string& run, const char* name) {
  std::vector<double> values;
  for (const std::string& line : metrics_of(files.folder(run)))
    if (const auto json = nlohmann::json::parse(line); json.contains(name)) values.push_back(json[name]);
  return values;
}

// 3 steps of 2 samples, 2 of 4, then 8.
std::vector<std::string> with(const RunFiles& files, const std::string& run, std::vector<std::string> sets = {}) {
  std::vector<std::string> all = {"train.folder=" + files.folder(run).string(),
                                  "train.batch_warmup=[\"2 3\", \"4 2\"]",
                                  "train.global_batch=8",
                                  "train.micro_batch=1",
                                  "train.steps=8",
                                  "train.evaluate_every=0",
                                  "checkpoint.every=0"};
  all.insert(all.end(), sets.begin(), sets.end());
  return all;
}

}  // namespace

TEST(BatchWarmup, SamplesOfSteps) {
  config::Train train;
  train.global_batch = 8;
  train.batch_warmup = {"2 3", " 4  2 "};
  EXPECT_EQ(config::batch_stages(train), (std::vector<config::BatchStage>{{2, 3}, {4, 2}}));
  const std::vector<int64_t> batches = {2, 2, 2, 4, 4, 8, 8};
  int64_t before = 0;
  for (size_t step = 0; step < batches.size(); ++step) {
    EXPECT_EQ(config::batch_of_step(train, static_cast<int64_t>(step)), batches[step]);
    EXPECT_EQ(config::samples_before(train, static_cast<int64_t>(step)), before);
    before += batches[step];
  }
}

// A step with some micro-batches is, to the bit, the step of a run whose batch has no more.
TEST(BatchWarmup, AStepIsThatOfASmallerBatch) {
  for (const char* device : {"reference", "cpu"})
    for (const bool tied : {false, true}) {
      config::Settings s = small_model(tied ? "gpt" : "llama", "fp32");
      s.parallel.device = device;
      s.train.micro_batch = 2;
      s.train.optimizer = "sgd";
      s.train.momentum = 0;
      s.train.global_batch = 8;
      s.train.batch_warmup = {"2 1", "4 1", "6 1"};
      Machine warms(s);
      for (const int64_t micro_batches : {1, 3, 2, 1, 0, 3}) {
        config::Settings of = s;
        of.train.batch_warmup.clear();
        if (micro_batches > 0) of.train.global_batch = 2 * micro_batches;
        Machine plain(of);
        plain.take_weights(warms);
        const double want = plain.step(micro_batches, 0.1);
        kernels::Numbers numbers = {.seed = s.train.seed,
                                    .step = micro_batches,
                                    .batch_rows = 2,
                                    .learning_rate = 0.1,
                                    .micro_batches = micro_batches};
        warms.executor.run(program::Step::train, numbers,
                           [&](const run::Executor::Inputs& inputs) { warms.fill(micro_batches, inputs); });
        SCOPED_TRACE(std::string(device) + ", " + std::to_string(micro_batches) + " micro-batches");
        EXPECT_EQ(warms.executor.number(models::kLossSum) / warms.executor.number(models::kLossCount), want);
        EXPECT_EQ(warms.states(program::StateKind::weight), plain.states(program::StateKind::weight));
      }
    }
}

TEST(BatchWarmup, RunsOnInEveryLayout) {
  RunFiles files;
  const std::string toml = files.toml("llama", "fp64");
  run_here(toml, with(files, "one"));
  const std::vector<double> losses = column(files, "one", "loss"), tokens = column(files, "one", "tokens");
  EXPECT_EQ(tokens, (std::vector<double>{32, 64, 96, 160, 224, 352, 480, 608}));
  ASSERT_EQ(losses.size(), 8u);
  // The first steps are those of a run with batches of 2.
  run_here(toml, with(files, "two", {"train.batch_warmup=[]", "train.global_batch=2"}));
  const std::vector<double> of_two = column(files, "two", "loss");
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(losses[i] == of_two[i], i < 3) << i;
  for (const std::vector<std::string>& layout : std::vector<std::vector<std::string>>{
           {"parallel.data=2", "parallel.zero=1"},
           {"parallel.data=2", "parallel.zero=2"},
           {"parallel.data=2", "parallel.zero=3"},
           {"parallel.tensor=2"},
           {"parallel.pipe=2"},
           {"parallel.pipe=2", "parallel.schedule=gpipe"},
           {"parallel.pipe=2", "parallel.schedule=zero_bubble"},
           {"parallel.pipe=2", "parallel.chunks=2", "parallel.schedule=interleaved", "model.layers=4"},
           {"parallel.pipe=2", "parallel.data=2", "parallel.zero=1"},
           {"parallel.offload=all"}}) {
    std::vector<std::string> sets = layout;
    const bool deep = layout.back() == "model.layers=4";
    if (deep) run_here(toml, with(files, "deep", {"model.layers=4"}));
    SCOPED_TRACE(layout.front() + " " + layout.back());
    run_here(toml, with(files, "layout", sets));
    const std::vector<double> found = column(files, "layout", "loss"),
                              want = deep ? column(files, "deep", "loss") : losses;
    ASSERT_EQ(found.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 1e-9) << i;
    std::filesystem::remove_all(files.folder("layout"));
  }
}

TEST(BatchWarmup, RunsOnADevice) {
  RunFiles files;
  const std::string toml = files.toml("llama", "fp32");
  run_here(toml, with(files, "cpu", {"parallel.device=cpu"}));
  run_here(toml, with(files, "device", {"parallel.device=emulated"}));
  const std::vector<double> found = column(files, "device", "loss"), want = column(files, "cpu", "loss");
  ASSERT_EQ(found.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 1e-4) << i;
}

// From within a stage of the warm-up, or at its end, in another layout.
TEST(BatchWarmup, ResumesInAnotherLayout) {
  RunFiles files;
  const std::string toml = files.toml("llama", "fp64");
  run_here(toml, with(files, "whole"));
  const std::vector<double> want = column(files, "whole", "loss");
  const std::vector<std::vector<std::string>> layouts = {
      {"parallel.data=2", "parallel.zero=3"}, {"parallel.pipe=2"}, {"parallel.tensor=2"}};
  for (const auto& [stop, before, after] : {std::tuple{2, 0, 1}, {4, 1, 2}, {5, 2, 0}}) {
    const std::string name = fmt::format("stopped{}", stop);
    run_here(toml, with(files, name, layouts[static_cast<size_t>(before)]), false, stop);
    EXPECT_EQ(column(files, name, "loss").size(), static_cast<size_t>(stop));
    run_here(toml, with(files, name, layouts[static_cast<size_t>(after)]), true);
    const std::vector<double> found = column(files, name, "loss");
    ASSERT_EQ(found.size(), want.size()) << name;
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 1e-9) << name << ", step " << i + 1;
    EXPECT_EQ(column(files, name, "tokens"), column(files, "whole", "tokens"));
  }
}

// To the bit, from within a stage of the warm-up.
TEST(BatchWarmup, Resumes) {
  RunFiles files;
  const std::string toml = files.toml("llama", "fp32");
  run_here(toml, with(files, "whole"));
  for (const int64_t stop : {2, 4}) {
    const std::string name = "stopped" + std::to_string(stop);
    run_here(toml, with(files, name), false, stop);
    run_here(toml, with(files, name), true);
    EXPECT_EQ(metrics_of(files.folder(name)), metrics_of(files.folder("whole"))) << stop;
  }
}

TEST(BatchWarmup, ScalesTheLearningRate) {
  RunFiles files;
  run_here(files.toml(), with(files, "run",
                              {"train.scale_learning_rate=sqrt", "train.base_batch=8", "train.decay=constant",
                               "train.warmup_steps=0"}));
  const std::vector<double> rates = column(files, "run", "learning_rate");
  ASSERT_EQ(rates.size(), 8u);
  EXPECT_DOUBLE_EQ(rates[0], 0.005);
  EXPECT_DOUBLE_EQ(rates[3], 0.01 * std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(rates[5], 0.01);
}

TEST(BatchWarmup, BadInput) {
  RunFiles files;
  const auto error = [&](const std::vector<std::string>& sets) {
    return error_of([&] { run_here(files.toml(), with(files, "bad", sets)); });
  };
  for (const std::string entry : {"4", "4 x", "0 1", "4 0", "", "4 1 1", "-4 1", "1e3 2"})
    EXPECT_EQ(error({"train.batch_warmup=[\"" + entry + "\"]"}),
              "[config] train.batch_warmup: \"" + entry +
                  "\" is not a number of samples and one of steps, as in \"64 1000\"");
  EXPECT_EQ(error({"train.batch_warmup=[\"8 2\"]"}),
            "[config] --set: train.batch_warmup: \"8 2\" is not a batch below train.global_batch = 8");
  EXPECT_EQ(error({"train.batch_warmup=[\"3 2\"]", "train.micro_batch=2"}),
            "[config] --set: train.batch_warmup: \"3 2\": 3 samples are not divisible by train.micro_batch = 2 x 1 "
            "data rank; nearest: 2, 4");
  EXPECT_EQ(error({"train.reproducible=8"}),
            "[config] --set: train.batch_warmup is not possible with train.reproducible = 8: its units are those of a "
            "whole batch");
}

}  // namespace kintsugi::tests::batch_warmup_test
