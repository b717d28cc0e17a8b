// Rewards: whole runs that sample answers, on one rank and several, and whose reward fails.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "kintsugi/base/json.h"
#include "tests/process.h"

namespace kintsugi::tests::rewards_test {
namespace {

// Prompts "a" to "d", whose answer is the letter in upper case: reached by chance once in some 250 samples, so first
// the letters are learnt from conversations.
class RewardRuns : public testing::Test {
 protected:
  RewardRuns() {
    std::ofstream prompts(folder / "prompts.jsonl"), chats(folder / "chats.jsonl"), text(folder / "text.txt");
    for (const char c : {'a', 'b', 'c', 'd'}) {
      const std::string answer(1, static_cast<char>(c - 'a' + 'A'));
      prompts << "{\"prompt\": \"" << c << "\", \"answer\": \"" << answer << "\"}\n";
      for (const char* other : {"A", "B", "C", "D"})
        chats << "{\"prompt\": \"" << c << "\", \"answer\": \"" << other << "\"}\n";
    }
    text << "abcdABCD";
    prompts.close(), chats.close(), text.close();
    EXPECT_EQ(run("prepare text.txt --tokenizer chars --output corpus").code, 0);
    const std::string model =
        "[model]\nfamily = \"llama\"\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntokenizer = "
        "\"corpus/tokenizer.json\"\n"
        "chat_template = \"none\"\n";
    std::ofstream(folder / "chats.toml")
        << model
        << "train = \"chats.jsonl\"\n[train]\nfolder = \"runs/chats\"\nsteps = 30\n"
           "global_batch = 16\nsequence = 8\nlearning_rate = 0.02\n[parallel]\nthreads "
           "= 1\n";
    std::ofstream(folder / "run.toml")
        << model
        << "train = \"prompts.jsonl\"\nvalidation = \"prompts.jsonl\"\n[train]\nmethod = \"grpo\"\nfolder = "
           "\"runs/one\"\ninit_from = \"runs/chats\"\nsteps = 100\nglobal_batch = 64\nmicro_batch = 16\nsequence = "
           "8\nlearning_rate = 0.005\ndecay = \"constant\"\nwarmup_steps = 0\nweight_decay = 0\nevaluate_every = 20\n"
           "event_files = false\n[grpo]\ngroup = 16\nlength = 1\n[parallel]\nthreads = 1\n";
    const Ended learnt = run("train chats.toml");
    EXPECT_EQ(learnt.code, 0) << learnt.err;
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

TEST_F(RewardRuns, RaiseTheReward) {
  const Ended done = run("train run.toml");
  ASSERT_EQ(done.code, 0) << done.err;
  const std::vector<base::Json> lines = metrics("runs/one");
  ASSERT_EQ(lines.size(), 100u);
  EXPECT_LT(lines[0].at("reward").number(), 0.5);
  EXPECT_GT(lines[99].at("reward").number(), 0.9);
  EXPECT_GE(lines[99].at("validation_reward").number(), 0.75);
  for (const base::Json& line : lines) EXPECT_LT(line.at("rollout_gap").number(), 1e-5);

  // On two ranks, and interrupted in between: the same rollouts.
  ASSERT_EQ(run("train run.toml --ranks 2 --stop-at 7 --set train.folder=runs/two train.steps=12").code, 0);
  const Ended resumed = run("train run.toml --resume --set train.folder=runs/two train.steps=12");
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const std::vector<base::Json> others = metrics("runs/two");
  ASSERT_EQ(others.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(others[i].at("reward").number(), lines[i].at("reward").number()) << i;
    EXPECT_NEAR(others[i].at("loss").number(), lines[i].at("loss").number(), 1e-3) << i;
  }
}

// Sampled with caches, or without where ranks split the tokens of a text.
TEST_F(RewardRuns, LayoutsSampleTheSameAnswers) {
  std::ofstream prompts(folder / "prompts.jsonl");
  for (const char* prompt : {"a", "bcd", "dA", "cabD"})
    prompts << "{\"prompt\": \"" << prompt << "\", \"answer\": \"a\"}\n";
  prompts.close();
  std::ofstream(folder / "layouts.toml")
      << "[model]\nfamily = \"llama\"\nlayers = 2\nembed = 16\nheads = 4\n[data]\ntokenizer = "
         "\"corpus/tokenizer.json\"\nchat_template = \"none\"\ntrain = \"prompts.jsonl\"\n[train]\nmethod = \"grpo\"\n"
         "steps = 3\nglobal_batch = 32\nmicro_batch = 4\nsequence = 12\nlearning_rate = 0.1\nwarmup_steps = 0\ndtype = "
         "\"fp64\"\nevent_files = false\n[grpo]\ngroup = 8\nlength = 6\nreward = \"pattern\"\npattern = "
         "\"[AB]\"\n[parallel]\nthreads = 1\n";
  const auto rollouts = [&](const std::string& name, const std::string& sets) {
    const Ended done = run("train layouts.toml --set train.folder=runs/" + name + " " + sets);
    EXPECT_EQ(done.code, 0) << sets << "\n" << done.err;
    std::vector<base::Json> lines = metrics("runs/" + name);
    EXPECT_EQ(lines.size(), 3u) << sets;
    for (const base::Json& line : lines) EXPECT_LT(line.at("rollout_gap").number(), 1e-6) << sets;
    return lines;
  };
  const std::vector<base::Json> one = rollouts("layout", "");
  ASSERT_EQ(one.size(), 3u);
  EXPECT_GT(one[0].at("reward_spread").number(), 0);
  EXPECT_GT(one[2].at("reward").number(), one[0].at("reward").number());
  int n = 0;
  for (const std::string layout :
       {"parallel.data=2", "parallel.data=4 parallel.zero=1", "parallel.data=2 parallel.zero=3", "parallel.tensor=2",
        "parallel.tensor=4 parallel.sequence_parallel=true", "parallel.context=2",
        "parallel.context=2 parallel.context_method=ring", "parallel.pipe=2",
        "parallel.pipe=2 parallel.schedule=zero_bubble", "parallel.pipe=2 parallel.data=2 parallel.zero=3",
        "parallel.data=2 parallel.tensor=2 parallel.zero=3 parallel.sequence_parallel=true",
        "parallel.data=2 parallel.tensor=2 parallel.context=2 parallel.zero=2", "parallel.data=2 parallel.tensor=2"}) {
    const std::vector<base::Json> found = rollouts("layout" + std::to_string(++n), layout);
    for (size_t i = 0; i < std::min(found.size(), one.size()); ++i)
      for (const char* key : {"reward", "answer_tokens", "loss", "gradient_norm"})
        EXPECT_NEAR(found[i].at(key).number(), one[i].at(key).number(), 1e-6)
            << layout << ", step " << i << ", " << key;
  }
}

// Answers that a device samples, with caches and without, and its steps, whose metrics are read a step late.
TEST_F(RewardRuns, DevicesSampleTheAnswersOfTheProcessor) {
  const auto steps = [&](const std::string& name, const std::string& sets) {
    const Ended done =
        run("train run.toml --set train.steps=4 train.global_batch=16 train.micro_batch=8 grpo.group=8 "
            "train.evaluate_every=4 train.folder=runs/" +
            name + sets);
    EXPECT_EQ(done.code, 0) << done.err;
    return metrics("runs/" + name);
  };
  for (const std::string layout : {"", " parallel.context=2 grpo.clip=0.2"}) {
    const std::string name = layout.empty() ? "whole" : "context";
    const std::vector<base::Json> want = steps(name + "_cpu", layout),
                                  got = steps(name + "_device", layout + " parallel.device=emulated");
    ASSERT_EQ(want.size(), 4u);
    ASSERT_EQ(got.size(), 4u);
    double apart = 0;  // rewards of a step and of the next
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_LT(got[i].at("rollout_gap").number(), 1e-5);
      for (const char* key : {"reward", "reward_spread", "answer_tokens", "loss", "gradient_norm"})
        EXPECT_NEAR(got[i].at(key).number(), want[i].at(key).number(), 1e-4) << layout << " " << i << " " << key;
      if (i > 0) apart += std::abs(want[i].at("reward").number() - want[i - 1].at("reward").number());
    }
    EXPECT_GT(apart, 0.05);
  }
}

TEST_F(RewardRuns, AFailingProgramLosesNothing) {
  std::ofstream(folder / "reward.sh")
      << "n=0\nwhile read -r line; do n=$((n + 1)); [ $n -le 200 ] || exit 3; echo 1; done\n";
  const std::string sets =
      "train run.toml --set grpo.reward=program train.steps=6 "
      "train.folder=runs/program 'grpo.program=[\"sh\",\"reward.sh\"]'";
  const Ended failed = run(sets);
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE(failed.err.find("error: [train] step 4: grpo.program \"sh\" ended with code 3; the newest checkpoint, "
                            "runs/program/step_00000003, is complete; --resume continues from it\n"),
            std::string::npos)
      << failed.err;
  const Ended resumed = run(sets + " --resume");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(metrics("runs/program").size(), 6u);
}

TEST_F(RewardRuns, RefuseWhatCannotBeRewarded) {
  const auto refused = [&](const std::string& sets) { return run("check run.toml --set " + sets).err; };
  EXPECT_EQ(refused("grpo.group=5"),
            "error: [config] --set: grpo.group = 5 must divide train.global_batch 64, which counts answers\n");
  EXPECT_EQ(refused("grpo.reward=pattern"),
            "error: [config] --set: grpo.pattern is missing, the regular expression of reward \"pattern\"\n");
  EXPECT_EQ(refused("grpo.reward=program"),
            "error: [config] --set: grpo.program is missing, the command of reward \"program\"\n");
  EXPECT_EQ(refused("train.sample_every=2"),
            "error: [config] --set: train.sample_every = 2 does not go with train.method \"grpo\", which samples in "
            "every step\n");
  EXPECT_EQ(refused("data.train=corpus/train"),
            "error: [config] run.toml:12: train.method = \"grpo\" learns from a file NAME.jsonl, and data.train names "
            "\"corpus/train\"\n");
}

}  // namespace
}  // namespace kintsugi::tests::rewards_test
