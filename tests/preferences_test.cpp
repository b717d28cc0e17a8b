// Preferences and rewards: the gradients of their losses, the answer of one rank in every layout, and whole runs.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"
#include "kintsugi/train/reference.h"
#include "tests/layout_lists.h"
#include "tests/process.h"
#include "tests/small_run.h"

namespace kintsugi::tests::preferences_test {
namespace {

// "llama dpo", "llama grpo", "llama grpo clip", "llama sft": packed conversations
config::Settings method_model(const std::string& name, const std::string& dtype) {
  config::Settings s = pipeline_model(name.substr(0, name.find(' ')), dtype);
  s.train.global_batch = 16;
  s.train.micro_batch = 4;
  const bool pairs = name.find("dpo") != name.npos, conversations = name.find("sft") != name.npos;
  s.train.method = conversations ? "likelihood" : pairs ? "dpo" : "grpo";
  s.data.reset_at_document = pairs || conversations;
  s.dpo.beta = 0.3;
  if (name.ends_with("clip")) s.grpo.clip = 0.5;
  if (name.ends_with("lora")) s.lora = {.rank = 3, .alpha = 6, .dropout = 0, .targets = {}};
  return s;
}

class MethodLayouts : public testing::TestWithParam<ModelLayout> {};

TEST_P(MethodLayouts, LossAndGradientsOfOneRankInFp64) {
  const Record found = run_layout(method_model, GetParam(), "fp64", 3);
  EXPECT_EQ(difference(found, twin(method_model, GetParam().model, "fp64", 3), 1e-9), "");
}

std::vector<ModelLayout> layouts_of(std::initializer_list<std::string> models) {
  std::vector<ModelLayout> list;
  for (const std::string& model : models)
    for (const std::string layout :
         {"data=2", "data=4 zero=1", "data=2 zero=3", "tensor=2", "tensor=4 sequence_parallel", "context=2",
          "context=2 method=ring", "pipe=2", "pipe=2 schedule=zero_bubble", "pipe=2 data=2 zero=3",
          "data=2 tensor=2 zero=3 sequence_parallel", "data=2 tensor=2 context=2 zero=2"})
      list.push_back({model, layout});
  return list;
}

INSTANTIATE_TEST_SUITE_P(All, MethodLayouts,
                         testing::ValuesIn(layouts_of({"llama sft", "llama dpo", "llama grpo", "gptneox grpo clip"})),
                         [](const auto& info) { return test_name(info.param); });

// With gradients of each weight by finite differences.
TEST(Methods, GradientsAgreeWithFiniteDifferences) {
  for (const std::string name : {"dpo", "grpo", "grpo clip"}) {
    SCOPED_TRACE(name);
    config::Settings s = small_model("llama", "fp64");
    s.train.method = name == "dpo" ? "dpo" : "grpo";
    s.data.reset_at_document = name == "dpo";
    if (name.ends_with("clip")) s.grpo.clip = 0.5;
    s.train.clip = 0;
    s.model.dropout = 0;
    Machine machine(s);
    machine.step(0, 0.0);
    const auto gradients = machine.states(program::StateKind::gradient);
    const auto loss_sum = [&] {
      machine.step(0, 0.0);
      return machine.executor.number(models::kLossSum);
    };
    const double norm = tests::norm(gradients);
    ASSERT_GT(norm, 0);
    for (const auto& [weight_name, g] : gradients) {
      const auto weight = machine.executor.state(weight_name.substr(0, weight_name.size() - 9)).as<double>();
      const size_t at = kernels::random_word(kernels::random_key(1, weight_name), 0, 0) % weight.size();
      const double before = weight[at], nudge = 1e-6;
      weight[at] = before + nudge;
      const double above = loss_sum();
      weight[at] = before - nudge;
      const double below = loss_sum();
      weight[at] = before;
      EXPECT_NEAR((above - below) / (2 * nudge), g[at], 1e-6 * norm) << weight_name;
    }
  }
}

// Pairs whose better answer is the number after the question's.
class PreferenceRuns : public testing::Test {
 protected:
  PreferenceRuns() {
    std::ofstream pairs(folder / "pairs.jsonl"), held_out(folder / "held_out.jsonl");
    for (int i = 0; i < 24; ++i)
      (i % 4 == 3 ? held_out : pairs) << "{\"prompt\": \"" << i % 8 << "?\", \"chosen\": \"" << (i + 1) % 8
                                      << "\", \"rejected\": \"" << (i + 5) % 8 << "\"}\n";
    std::ofstream(folder / "run.toml")
        << "[model]\nfamily = \"llama\"\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"pairs.jsonl\"\n"
           "validation = \"held_out.jsonl\"\ntokenizer = \"bytes.json\"\nchat_template = \"none\"\n"
           "[train]\nmethod = \"dpo\"\nsteps = 12\nglobal_batch = 6\nsequence = 12\nlearning_rate = 0.01\n"
           "evaluate_every = 4\nevent_files = false\n[dpo]\nbeta = 0.5\n[parallel]\nthreads = 1\n";
    std::ofstream(folder / "text.txt") << "a text";
    EXPECT_EQ(run_kintsugi(folder.path(), "prepare text.txt --tokenizer bytes --output corpus").code, 0);
    std::filesystem::copy(folder / "corpus/tokenizer.json", folder / "bytes.json");
  }

  Ended run(const std::string& arguments) const { return run_kintsugi(folder.path(), arguments); }
  std::vector<base::Json> metrics(const std::string& name) const {
    std::ifstream file(folder / name / "metrics.jsonl");
    std::vector<base::Json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(base::Json::parse("test", "metrics", line));
    return lines;
  }

  TemporaryFolder folder;
};

TEST_F(PreferenceRuns, LearnFromTheReferenceOn) {
  const Ended done = run("train run.toml --set train.folder=runs/one");
  ASSERT_EQ(done.code, 0) << done.err;
  const std::vector<base::Json> lines = metrics("runs/one");
  ASSERT_EQ(lines.size(), 12u);
  EXPECT_NEAR(lines[0].at("loss").number(), std::log(2.0), 1e-5);  // the model is the reference
  EXPECT_NEAR(lines[0].at("reward_margin").number(), 0, 1e-5);
  EXPECT_LT(lines[11].at("loss").number(), 0.5);
  EXPECT_EQ(lines[11].at("accuracy").number(), 1);
  EXPECT_GT(lines[11].at("validation_reward_margin").number(), 0);
  EXPECT_TRUE(lines[11].has("validation_accuracy"));

  // On two ranks, and interrupted in between: the same.
  ASSERT_EQ(run("train run.toml --ranks 2 --stop-at 5 --set train.folder=runs/two").code, 0);
  const Ended resumed = run("train run.toml --resume --set train.folder=runs/two");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const std::vector<base::Json> others = metrics("runs/two");
  ASSERT_EQ(others.size(), 12u);
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(others[i].at("loss").number(), lines[i].at("loss").number(), 1e-4) << i;

  std::filesystem::remove(folder / "runs/two" / std::string(train::kReferenceFile));
  const Ended gone = run("train run.toml --resume --set train.folder=runs/two train.steps=14");
  EXPECT_TRUE(
      gone.err.ends_with("error: [train] \"runs/two/reference.json\" is missing, the reference of the run's "
                         "preferences; begin the run anew, in another train.folder\n"))
      << gone.err;
}

// The reference and the first steps by a device, the rest by the processor.
TEST_F(PreferenceRuns, OfADeviceAreThoseOfTheProcessor) {
  ASSERT_EQ(run("train run.toml --set train.folder=runs/cpu train.steps=6").code, 0);
  const Ended first =
      run("train run.toml --stop-at 4 --set train.folder=runs/device train.steps=6 parallel.device=emulated");
  ASSERT_EQ(first.code, 0) << first.err;
  const Ended rest = run("train run.toml --resume --set train.folder=runs/device train.steps=6");
  ASSERT_EQ(rest.code, 0) << rest.err;
  const std::vector<base::Json> want = metrics("runs/cpu"), got = metrics("runs/device");
  ASSERT_EQ(want.size(), 6u);
  ASSERT_EQ(got.size(), 6u);
  for (size_t i = 0; i < 6; ++i)
    for (const char* key : {"loss", "reward_margin", "accuracy", "validation_loss", "validation_reward_margin"}) {
      ASSERT_EQ(got[i].has(key), want[i].has(key)) << i << " " << key;
      if (!got[i].has(key)) continue;
      EXPECT_NEAR(got[i].at(key).number(), want[i].at(key).number(), 1e-4) << i << " " << key;
    }
}

TEST_F(PreferenceRuns, RefuseWhatCannotBeLearnt) {
  const auto refused = [&](const std::string& sets) { return run("check run.toml --set " + sets).err; };
  EXPECT_EQ(refused("model.family=gpt"),
            "error: [config] run.toml:12: train.method = \"dpo\" puts both answers into one sample, which needs "
            "positions relative to the answer: model.positions \"rotary\", and this is \"learned\"\n");
  EXPECT_EQ(refused("train.sequence=5"),
            "error: [data] \"pairs.jsonl\": 18 of 18 pairs are longer than train.sequence 5, which holds both answers "
            "with their prompt; the longest, in line 1, has 8 tokens: raise train.sequence, or set "
            "data.long_conversations to \"drop\"\n");
  EXPECT_EQ(
      refused("data.long_conversations=cut"),
      "error: [config] --set: data.long_conversations = \"cut\" cannot cut answers, whose end counts; \"drop\" or "
      "\"refuse\" can be set\n");
  std::ofstream(folder / "pairs.jsonl") << "{\"prompt\": \"a\", \"chosen\": \"b\"}\n";
  EXPECT_EQ(refused("train.steps=1"),
            "error: [data] \"pairs.jsonl\":1: a pair has \"prompt\", \"chosen\" and \"rejected\"\n");
}

}  // namespace
}  // namespace kintsugi::tests::preferences_test
