// A run without checkpoint settings loses little when killed, and its printed commands can be pasted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

#include "kintsugi/base/file.h"
#include "tests/patterns.h"
#include "tests/process.h"

namespace kintsugi::tests::safe_run_test {
namespace {

class SafeRun : public ::testing::Test {
 protected:
  SafeRun() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 400; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    std::ofstream(folder / "run.toml")
        << "[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\nvalidation = "
           "\"corpus/validation\"\n[train]\nfolder = \"run\"\nsteps = 40\nglobal_batch = 4\nsequence = 16\n"
           "[parallel]\nthreads = 1\n";
    EXPECT_EQ(run("prepare text.txt --tokenizer bytes --output corpus").code, 0);
  }

  Ended run(const std::string& arguments, const std::string& before = ":") const {
    return Process(folder.path(), arguments, before).wait();
  }

  std::vector<nlohmann::json> metrics(const std::string& name = "run") const {
    std::vector<nlohmann::json> lines;
    std::ifstream in(folder / name / "metrics.jsonl");
    // A kill leaves a partial line.
    for (std::string line; std::getline(in, line) && !in.eof();) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  std::vector<int64_t> saved(const std::string& name = "run") const {
    std::vector<int64_t> steps;
    if (!fs::exists(folder / name)) return steps;
    for (const auto& entry : fs::directory_iterator(folder / name))
      if (const std::string file = entry.path().filename(); file.starts_with("step_"))
        steps.push_back(std::stoll(file.substr(5)));
    std::sort(steps.begin(), steps.end());
    return steps;
  }

  TemporaryFolder folder;
};

}  // namespace

// Rank 0's clock decides, and all ranks save at the same step: here after every step.
TEST_F(SafeRun, SavesByTime) {
  for (const std::string layout :
       {"parallel.data=1", "parallel.data=2 parallel.zero=3", "parallel.pipe=2 model.layers=2"}) {
    fs::remove_all(folder / "run");
    const Ended ended =
        run("train run.toml --set train.steps=6 checkpoint.every_minutes=1e-9 checkpoint.keep=9 data.validation= " +
            layout);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(saved(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6})) << layout;
  }
  fs::remove_all(folder / "run");
  run("train run.toml --set train.steps=6 checkpoint.every_minutes=0 checkpoint.every=4 checkpoint.keep=9 "
      "data.validation=");
  EXPECT_EQ(saved(), (std::vector<int64_t>{4, 6}));
}

// A run that is killed repeatedly loses at most the time between two checkpoints each time, and ends as if undisturbed.
TEST_F(SafeRun, LosesLittleWhenItIsKilled) {
  const std::string sets = " --set train.steps=3000 data.validation= checkpoint.every_minutes=0.001";  // 0.06 s
  EXPECT_EQ(run("train run.toml" + sets + " train.folder=whole").code, 0);
  int64_t before = 0;
  int kills = 0;
  for (; kills < 10; ++kills) {
    Process process(folder.path(), "train run.toml" + sets + (saved().empty() ? "" : " --resume"));
    const int64_t first = std::max<int64_t>(1, before);
    process.wait_for([&] { return !saved().empty() && saved().back() > first; });
    std::this_thread::sleep_for(std::chrono::milliseconds(13 * kills));
    process.send(SIGKILL);
    if (process.wait().code == 0) break;  // a fast machine was done before the kill
    const std::vector<nlohmann::json> lines = metrics();
    ASSERT_FALSE(lines.empty());
    double lost = 0;
    for (const auto& line : lines)
      if (line["step"].get<int64_t>() > saved().back()) lost += line["seconds"].get<double>();
    EXPECT_LT(lost, 0.06 + 0.5) << kills;  // and the step and the save that were under way
    ASSERT_GE(saved().back(), before) << kills;
    before = saved().back();
  }
  EXPECT_GE(kills, 3);
  EXPECT_EQ(run("train run.toml --resume" + sets).code, 0);
  const auto whole = metrics("whole"), parts = metrics();
  ASSERT_EQ(whole.size(), parts.size());
  for (size_t i = 0; i < whole.size(); ++i) ASSERT_EQ(whole[i]["loss"], parts[i]["loss"]) << i;
}

// Defaults are in the resolved configuration, with their origins.
TEST_F(SafeRun, DefaultsAreTold) {
  // Comments that exceed a line continue below.
  const std::string check = replaced(run("check run.toml --all --set train.steps=2000").out, "\n +# ", " ");
  for (const std::string line :
       {"warmup_steps = 20                             # derived: a hundredth of steps, or of decay_steps if that is "
        "smaller",
        "evaluate_every = 100                          # derived: a twentieth of steps; 0 of fewer than 20",
        "evaluate_batches = 25                         # derived: a quarter of those trained between evaluations, "
        "at least 4; all if evaluate_every is 0",
        "every_minutes = 10.0                          # default"})
    EXPECT_NE(check.find("\n" + line + "\n"), std::string::npos) << line;
  EXPECT_EQ(run("train run.toml").code, 0);
  std::vector<int64_t> evaluated;
  for (const auto& line : metrics())
    if (line.contains("validation_loss")) evaluated.push_back(line["step"]);
  EXPECT_EQ(evaluated.size(), 20u);
  EXPECT_EQ(evaluated.back(), 40);
}

// The windows of a validation are spread over the file, equally in every layout.
TEST_F(SafeRun, ValidatesOnTheWholeFile) {
  std::ofstream text(folder / "uneven.txt");  // its end is another text than its beginning
  for (int i = 0; i < 60; ++i) text << "aaaaaaaaaaaaaaaa";
  for (int i = 0; i < 60; ++i) text << "q" << i * 7 % 10 << "zx" << i * i % 97 << "wv";
  text.close();
  ASSERT_EQ(run("prepare uneven.txt --validation 0 --tokenizer bytes --output uneven").code, 0);
  const std::string sets =
      " --set train.steps=30 train.learning_rate=0.01 data.train=uneven/train "
      "data.validation=uneven/train train.evaluate_every=0 train.folder=";
  const auto loss = [&](const std::string& name, const std::string& more) {
    const Ended ended = run("train run.toml" + sets + name + " " + more);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return metrics(name).back()["validation_loss"].get<double>();
  };
  const double all = loss("all", ""), some = loss("some", "train.evaluate_batches=5"),
               split = loss("split", "train.evaluate_batches=5 parallel.data=2 train.micro_batch=1"),
               two = loss("two", "train.evaluate_batches=5 train.micro_batch=2");
  EXPECT_NEAR(some, all, 0.15 * all);
  EXPECT_NEAR(split, some, 1e-4);
  EXPECT_NEAR(two, some, 1e-4);
  EXPECT_NE(some, all);
}

// Each domain separately, and all tokens together.
TEST_F(SafeRun, ValidatesEachDomain) {
  std::ofstream text(folder / "digits.txt");
  for (int i = 0; i < 300; ++i) text << i * i * i << " " << i * 7919 << "\n";
  text.close();
  ASSERT_EQ(run("prepare digits.txt --tokenizer bytes --output digits").code, 0);
  const std::string sets =
      " --set train.steps=30 train.learning_rate=0.01 train.evaluate_every=10 train.evaluate_batches=0 "
      "'data.validation={lines = \"corpus/validation\", digits = \"digits/validation\"}' train.folder=";
  const auto last = [&](const std::string& name, const std::string& more) {
    const Ended ended = run("train run.toml" + sets + name + " " + more);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return metrics(name).back();
  };
  const nlohmann::json one = last("one", ""), split = last("split", "parallel.data=2 parallel.tensor=2");
  const double lines = one["validation_loss.lines"], digits = one["validation_loss.digits"],
               all = one["validation_loss"];
  EXPECT_LT(lines, digits);  // the text that it learns
  for (const char* key : {"validation_loss", "validation_loss.lines", "validation_loss.digits"})
    EXPECT_NEAR(split[key].get<double>(), one[key].get<double>(), 1e-4) << key;

  // `evaluate` gives the same for each domain, weighted by tokens.
  const std::string page = run("evaluate one").out;
  const std::vector<Match> domains =
      find_all(page, "domain +(\\S+): loss ([0-9.]+), perplexity [0-9.]+, (\\S+), ([0-9,]+) tokens\n");
  ASSERT_EQ(domains.size(), 2u) << page;
  EXPECT_EQ(domains[0].groups[1], "lines");
  EXPECT_EQ(domains[1].groups[3], "digits/validation");
  EXPECT_NEAR(std::stod(domains[0].groups[2]), lines, 2e-6);
  EXPECT_NEAR(std::stod(domains[1].groups[2]), digits, 2e-6);
  std::vector<double> tokens;
  for (const Match& domain : domains) {
    std::string count = domain.groups[4];
    std::erase(count, ',');
    tokens.push_back(std::stod(count));
  }
  EXPECT_NEAR((lines * tokens[0] + digits * tokens[1]) / (tokens[0] + tokens[1]), all, 1e-6);
  EXPECT_EQ(find_all(page, "\ndata +2 domains, [0-9,]+ tokens\nloss +[0-9.]+\n").size(), 1u) << page;

  // The saved configuration keeps them; the report and event files show them.
  EXPECT_EQ(run("train one/config.toml --resume --set train.steps=32").code, 0);
  EXPECT_TRUE(metrics("one").back().contains("validation_loss.digits"));
  EXPECT_EQ(run("report one").code, 0);
  EXPECT_NE(base::read_file(folder / "one/report.html").find("digits</li>"), std::string::npos);
  // Another file under the same name is another run.
  EXPECT_NE(run("train one/config.toml --resume --set train.steps=33 "
                "'data.validation={lines = \"digits/validation\", digits = \"corpus/validation\"}'")
                .err.find("the data have changed: \"digits/validation\" has the fingerprint"),
            std::string::npos);
}

TEST_F(SafeRun, TheBestCheckpointIsNamed) {
  EXPECT_EQ(run("train run.toml --set train.steps=6 train.evaluate_every=2 checkpoint.keep=1").code, 0);
  // The second is the best, by construction.
  EXPECT_EQ(run("train run.toml --resume --set train.steps=8 train.evaluate_every=2 checkpoint.keep=9").code, 0);
  std::ofstream(folder / "run/best.json") << "{\"step\":6,\"validation_loss\":1}";
  const Ended evaluated = run("evaluate run --best");
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(evaluated.out.substr(0, evaluated.out.find('\n')), "checkpoint run/step_00000006");
  EXPECT_EQ(run("evaluate run").out.substr(0, 28), "checkpoint run/step_00000008");
  EXPECT_EQ(run("generate run --best --prompt Line --length 3").out,
            run("generate run/step_00000006 --prompt Line --length 3").out);
  std::ofstream(folder / "ids.txt") << "1 2 3 4\n";
  EXPECT_NE(run("evaluate run --best --ids ids.txt").out.find("run/step_00000006"), std::string::npos);
  fs::remove(folder / "run/best.json");
  EXPECT_EQ(run("evaluate run --best").err,
            "error: [evaluate] --best: \"run\" has no best checkpoint, which needs [data] validation; leave --best out "
            "to use the newest\n");
}

// The printed resume command works when pasted into a shell.
TEST_F(SafeRun, TheCommandThatGoesOnIsQuoted) {
  fs::rename(folder / "run.toml", folder / "my run's.toml");
  const std::string sets =
      "--set train.steps=1000000 'train.folder=my runs/$1' train.evaluate_every=0 train.warmup_steps=0";
  Process process(folder.path(), "train \"my run's.toml\" " + sets);
  ASSERT_TRUE(process.wait_for([&] { return metrics("my runs/$1").size() > 2; }));
  process.send(SIGINT);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  const std::string lead = "continue with: kintsugi ";
  ASSERT_NE(ended.out.find(lead), std::string::npos) << ended.out;
  const std::string command = ended.out.substr(ended.out.find(lead) + lead.size());
  EXPECT_EQ(command,
            "train 'my run'\\''s.toml' --resume --set train.steps=1000000 'train.folder=my runs/$1' "
            "train.evaluate_every=0 train.warmup_steps=0\n");
  const auto steps = static_cast<int64_t>(metrics("my runs/$1").size());
  const Ended on = run(command.substr(0, command.size() - 1) + fmt::format(" train.steps={}", steps + 1));
  EXPECT_EQ(on.code, 0) << on.err;
  EXPECT_NE(on.err.find("resumed at step "), std::string::npos) << on.err;
}

TEST_F(SafeRun, ShowTellsWhatARunIs) {
  EXPECT_EQ(run("show run.toml").out,
            "run          run.toml, the configuration of a run: 10 keys are given\n"
            "model        gpt: 1 layer, embed 16\n"
            "data         corpus/train, validation corpus/validation\n"
            "steps        40\n"
            "folder       run: no checkpoint yet\n"
            "see          `kintsugi check run.toml --all` prints every key, `kintsugi train\n"
            "             run.toml` trains\n");
  run("train run.toml --set train.steps=2");
  EXPECT_NE(run("show run.toml").out.find("\nfolder       run: 1 checkpoint, the newest of step 2\n"),
            std::string::npos);
  std::ofstream(folder / "bad.toml") << "[model]\nlayer = 3\n";
  EXPECT_EQ(run("show bad.toml").err, "error: [config] bad.toml:2: unknown key model.layer; did you mean layers?\n");
}

TEST_F(SafeRun, WhatIsShownFitsThePage) {
  EXPECT_EQ(run("train run.toml --set train.steps=2").code, 0);
  for (const std::string arguments :
       {"show run", "show corpus/train", "show run.toml", "show run/step_00000002/rank_00000.safetensors",
        "explain run.toml", "explain run.toml --set parallel.pipe=2 model.layers=2 parallel.data=2", "train --help",
        "train --keys", "generate --help", "evaluate --help", "plan --help", "explain --help", "plan run.toml",
        "compare run.toml --ranks 2 --steps 1"}) {
    std::istringstream lines(run(arguments).out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << arguments << ": " << line;
  }
  const std::string overview = run("explain run.toml").out;
  EXPECT_TRUE(overview.starts_with("model        gpt: 1 layer, embed 16, ")) << overview;
  for (const std::string pass : {"graph", "differentiate", "memory", "communication"})
    EXPECT_NE(overview.find("\n  " + pass + " "), std::string::npos) << overview;
  EXPECT_TRUE(run("explain run.toml --pass graph").out.starts_with("graph micro-batch\n"));
}

// Layers of GPT-3, with long numbers: in 8 stages of 3 chunks, on a cluster, and the result of a search there.
TEST_F(SafeRun, PlansOfLargeModelsFitThePage) {
  const std::string sets =
      " --set model.name=gpt3-175b model.layers=24 train.dtype=bf16 train.global_batch=64 train.micro_batch=1 "
      "parallel.tensor=8 parallel.pipe=8 parallel.schedule=interleaved parallel.chunks=3";
  const std::string cluster = " --cluster " + source_folder() + "/clusters/selene.toml";
  std::ofstream(folder / "gpt3.toml") << "[model]\nvocab = 51200\n";
  for (const std::string& arguments :
       {"plan gpt3.toml" + sets + cluster, "plan gpt3.toml" + sets + " parallel.offload=optimizer",
        "plan gpt3.toml" + sets + cluster + " --search --devices 16 --budget 1"}) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_FALSE(ended.out.empty()) << arguments;
    std::istringstream lines(ended.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << arguments << ": " << line;
  }
}

// A plan for another machine does not depend on the cores of this one.
TEST_F(SafeRun, PlansForManyRanksSayNothingOfThisMachine) {
  const std::string sets = " --ranks 64 --set train.global_batch=64";
  EXPECT_EQ(run("plan run.toml" + sets).err, "");
  EXPECT_EQ(run("explain run.toml --pass plan" + sets).err, "");
  EXPECT_NE(run("check run.toml" + sets).err.find("warning: --ranks: 64 ranks of 1 thread each on "),
            std::string::npos);
}

}  // namespace kintsugi::tests::safe_run_test
