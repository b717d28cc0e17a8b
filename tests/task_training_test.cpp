// Evaluation tasks during training: the values of `evaluate --task`, in every layout; and linear probes of embeddings.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "kintsugi/base/file.h"
#include "tests/process.h"

namespace kintsugi::tests::task_training_test {
namespace {

using nlohmann::json;

class TaskTraining : public ::testing::Test {
 protected:
  TaskTraining() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 400; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    std::ofstream(folder / "run.toml")
        << "[model]\nlayers = 4\nembed = 32\nheads = 4\n[data]\ntrain = \"corpus/train\"\n[train]\nsteps = 8\n"
           "global_batch = 8\nsequence = 64\nlearning_rate = 1e-2\nfolder = \"run\"\n[parallel]\nthreads = 1\n"
           "[evaluate]\ntasks = [\"piqa\", \"lambada\"]\ntasks_folder = \"data\"\ntasks_every = 4\n";
    EXPECT_EQ(run("prepare text.txt --tokenizer bytes --output corpus").code, 0);
    for (const char* name : {"piqa", "lambada"}) fs::create_directories(folder / ("data/" + std::string(name)));
    std::ofstream piqa(folder / "data/piqa/valid.jsonl"), lambada(folder / "data/lambada/lambada_test.jsonl");
    for (int i = 0; i < 11; ++i) {
      piqa << json{{"goal", fmt::format("Line {}", i)},
                   {"sol1", "of a text that a model can learn."},
                   {"sol2", fmt::format("a {} that", std::string(static_cast<size_t>(i % 5), 'q'))},
                   {"label", i % 2}}
           << "\n";
      lambada << json{{"text", fmt::format("Line {} of a text that a model can learn.", i)}} << "\n";
    }
  }

  Ended run(const std::string& arguments) const { return run_kintsugi(folder.path(), arguments); }

  // The numbers of tasks by step and key.
  std::map<int, std::map<std::string, double>> tasks_of(const std::string& name) const {
    std::map<int, std::map<std::string, double>> found;
    std::ifstream in(folder / name / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) {
      const json m = json::parse(line);
      for (const auto& [key, value] : m.items())
        if (key.starts_with("task.")) found[m["step"].get<int>()][key.substr(5)] = value.get<double>();
    }
    return found;
  }

  TemporaryFolder folder;
};

}  // namespace

TEST_F(TaskTraining, HasTheValuesOfEvaluateInEveryLayout) {
  const Ended trained = run("train run.toml");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto whole = tasks_of("run");
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_TRUE(whole.contains(4) && whole.contains(8));
  for (const char* key : {"piqa.acc", "piqa.acc_norm", "piqa.acc_error", "lambada.acc", "lambada.perplexity"})
    EXPECT_TRUE(whole.at(8).contains(key)) << key;
  EXPECT_NE(whole.at(4).at("lambada.perplexity"), whole.at(8).at("lambada.perplexity"));
  for (const char* task : {"piqa", "lambada"}) {
    const Ended evaluated =
        run(fmt::format("evaluate run --task {} --data data/{} --sequence 64 --dump {}.jsonl", task, task, task));
    ASSERT_EQ(evaluated.code, 0) << evaluated.err;
    for (const auto& [key, value] : whole.at(8)) {
      if (!key.starts_with(std::string(task) + ".") || key.ends_with("_error")) continue;
      const std::string metric = key.substr(std::string(task).size() + 1);
      const size_t at = ("\n" + evaluated.out).find("\n" + metric + " ");
      ASSERT_NE(at, std::string::npos) << evaluated.out;
      EXPECT_NEAR(std::stod(evaluated.out.substr(at + metric.size())), value, 1e-4 * (1 + std::fabs(value))) << key;
    }
  }
  for (const char* layout : {"parallel.data=2", "parallel.tensor=2", "parallel.pipe=2", "parallel.context=2"}) {
    const std::string name = "split_" + std::string(layout).substr(9, 4);
    const Ended split = run(fmt::format("train run.toml --set train.folder={} {}", name, layout));
    ASSERT_EQ(split.code, 0) << layout << split.err;
    const auto found = tasks_of(name);
    ASSERT_EQ(found.size(), 2u) << layout;
    for (const auto& [key, value] : whole.at(8))
      EXPECT_NEAR(found.at(8).at(key), value, 2e-3 * (1 + std::fabs(value))) << layout << " " << key;
  }
  ASSERT_EQ(run("report run split_data --output report.html").code, 0);
  const std::string page = base::read_file(folder / "report.html");
  EXPECT_NE(page.find("<h3>Evaluation tasks: acc</h3>"), std::string::npos);
  EXPECT_NE(page.find("<h3>Evaluation tasks</h3>"), std::string::npos);
}

// The first documents only, at the end; and what is refused before the first step.
TEST_F(TaskTraining, TakesTheFirstDocumentsAndRefusesWrongData) {
  ASSERT_EQ(run("train run.toml --set evaluate.tasks_documents=3 evaluate.tasks_every=0 train.steps=2").code, 0);
  const auto found = tasks_of("run");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(std::fmod(3 * found.at(2).at("piqa.acc"), 1), 0, 1e-9);
  const auto expect_error = [&](const std::string& sets, const std::string& text) {
    const Ended ended = run("train run.toml --set train.folder=other " + sets);
    EXPECT_EQ(ended.code, 1) << sets;
    EXPECT_NE(ended.err.find(text), std::string::npos) << sets << "\n" << ended.err;
  };
  expect_error("evaluate.tasks_folder=nothing", "nothing");
  expect_error("evaluate.tasks_folder=", "evaluate.tasks needs evaluate.tasks_folder, the folder of their data");
  expect_error("evaluate.tasks='[\"juggling\"]'", "juggling");
  expect_error("evaluate.tasks='[\"piqa\", \"piqa\"]'", "evaluate.tasks names the task piqa twice");
  std::ofstream(folder / "data/piqa/valid.jsonl", std::ios::app) << "{\"goal\": \"x\"}\n";
  expect_error("train.steps=2", "data/piqa/valid.jsonl\":12: \"sol1\" is missing");
}

// One rank reads what the requests of a document share once, ranks along "data" read all of each.
TEST_F(TaskTraining, AGroupReadsSharedBeginningsOnce) {
  std::ofstream questions(folder / "data/questions.jsonl");
  for (int i = 0; i < 9; ++i)
    questions << json{{"query", fmt::format("Line {} of a text", i)},
                      {"choices", {"can", fmt::format("c{}n", i), "learns."}},
                      {"gold", i % 3}}
              << "\n";
  questions.close();
  std::ofstream(folder / "group.json") << R"({"name": "both", "tasks": [
    {"name": "none", "like": "query_choices", "file": "questions.jsonl", "chance": 0.25},
    {"name": "one", "like": "query_choices", "file": "questions.jsonl", "shots": 1, "delimiter": "\nAnswer: ", "chance": 0.5}]})";
  const Ended trained = run("train run.toml --set evaluate.tasks='[\"group.json\"]' train.steps=4");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto dump = [&](const std::string& name, const std::string& options) {
    const Ended ended = run("evaluate run --task group.json --data data --dump " + name + " " + options);
    EXPECT_EQ(ended.code, 0) << ended.err;
    std::vector<json> lines;
    std::ifstream in(folder / name);
    for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
    return lines;
  };
  const std::vector<json> whole = dump("a", ""), plain = dump("b", "--set parallel.data=2"),
                          split = dump("c", "--set parallel.tensor=2 --batch 2");
  ASSERT_EQ(whole.size(), 18u);
  ASSERT_EQ(plain.size(), 18u);
  ASSERT_EQ(split.size(), 18u);
  for (size_t i = 0; i < whole.size(); ++i)
    for (const auto& other : {plain[i], split[i]}) {
      EXPECT_EQ(whole[i]["task"], other["task"]);
      EXPECT_EQ(whole[i]["tokens"], other["tokens"]);
      EXPECT_EQ(whole[i]["greedy"], other["greedy"]);
      for (size_t r = 0; r < 3; ++r) {
        const auto p = whole[i]["log_likelihoods"][r].get<double>();
        EXPECT_NEAR(p, other["log_likelihoods"][r].get<double>(), 1e-5 * (1 + std::fabs(p))) << i << " " << r;
      }
    }
  const std::map<std::string, double> found = tasks_of("run").at(4);
  EXPECT_NEAR(found.at("none.centered"), (found.at("none.acc_token") - 0.25) / 0.75, 1e-12);
  EXPECT_NEAR(found.at("both.centered"), (found.at("none.centered") + found.at("one.centered")) / 2, 1e-12);
  const Ended table = run("evaluate run --task group.json --data data --also run/step_00000004");
  ASSERT_EQ(table.code, 0) << table.err;
  const size_t mean = table.out.find("\nboth  centered   ");
  ASSERT_NE(mean, std::string::npos) << table.out;
  EXPECT_NE(table.out.find("task  metric     run "), std::string::npos) << table.out;
  EXPECT_EQ(run("evaluate run --task group.json --data data --also run --dump d").code, 1);
}

TEST_F(TaskTraining, ALayerOfEmbeddingsIsTheResidualStreamAfterIt) {
  ASSERT_EQ(run("train run.toml --set evaluate.tasks=[] train.steps=2").code, 0);
  std::ofstream(folder / "texts.txt") << "Line 4 of a text\na model can learn\nthat\n";
  const auto vectors = [&](const std::string& options) {
    const Ended ended = run("embed run --texts texts.txt --output v.csv " + options);
    EXPECT_EQ(ended.code, 0) << ended.err;
    std::vector<double> values;
    std::ifstream in(folder / "v.csv");
    for (std::string cell; std::getline(in, cell, ',');)
      for (size_t at = 0; at < cell.size();) {
        size_t used = 0;
        values.push_back(std::stod(cell.substr(at), &used));
        at += used + 1;
      }
    return values;
  };
  const std::vector<double> last = vectors("");
  ASSERT_EQ(last.size(), 3u * 32u);
  EXPECT_EQ(vectors("--layer 4"), last);
  std::vector<std::vector<double>> layers;
  for (const int layer : {0, 1, 3}) {
    layers.push_back(vectors(fmt::format("--layer {}", layer)));
    EXPECT_NE(layers.back(), last);
    for (const char* layout : {"parallel.tensor=2", "parallel.data=2", "parallel.pipe=2"}) {
      if (layer < 2 && layout == std::string("parallel.pipe=2")) continue;  // fewer blocks than stages
      const std::vector<double> split = vectors(fmt::format("--layer {} --set {}", layer, layout));
      ASSERT_EQ(split.size(), layers.back().size());
      for (size_t i = 0; i < split.size(); ++i) EXPECT_NEAR(split[i], layers.back()[i], 1e-5) << layout;
    }
  }
  EXPECT_NE(layers[0], layers[1]);
  // The embedding of a token depends on the token and its position alone.
  std::ofstream(folder / "texts.txt") << "L\nLine\nx\n";
  const std::vector<double> first = vectors("--layer 0 --pooling first");
  EXPECT_EQ(std::vector<double>(first.begin(), first.begin() + 32),
            std::vector<double>(first.begin() + 32, first.begin() + 64));
  const Ended wrong = run("embed run --texts texts.txt --output v.csv --layer 5");
  EXPECT_EQ(wrong.err, "error: [embed] --layer 5 of a model with 4 layers\n");
}

TEST_F(TaskTraining, AProbeFitsFeatures) {
  std::ofstream table(folder / "table.csv"), other(folder / "other.csv"), labels(folder / "labels.csv");
  table << "key,a,b,y\n";
  other << "key,c\n";
  labels << "text,kind\n";
  for (int i = 0; i < 60; ++i) {
    const double a = std::sin(3 * i), b = std::cos(5 * i);
    table << i % 6 << ',' << a << ',' << b << ',' << 2 * a - b + (i % 6) * (i % 6) << '\n';
    labels << "\"t, " << i << "\"," << (a > 0 ? "up" : "down") << '\n';
  }
  for (int k = 0; k < 5; ++k) other << k << ".0," << k * k << '\n';  // none for the key 5
  table.close(), other.close(), labels.close();
  const auto value = [](const Ended& ended, const std::string& line) {
    EXPECT_EQ(ended.code, 0) << ended.err;
    const size_t at = ended.out.find("\n" + line + " ");
    EXPECT_NE(at, std::string::npos) << ended.out;
    return std::stod(ended.out.substr(at + line.size() + 2));
  };
  const double without = value(run("probe table.csv --target y --task regress"), "test       mse");
  const Ended joined = run("probe table.csv --target y --task regress --join other.csv --on key");
  EXPECT_GT(without, 1.0);
  EXPECT_LT(value(joined, "test       mse"), 1e-4);
  EXPECT_NE(joined.out.find("left out   10 rows, with a key that other.csv lacks"), std::string::npos) << joined.out;
  const Ended classified = run(
      "probe table.csv --columns a b --labels labels.csv --target kind --task classify --predictions predictions.csv");
  EXPECT_GT(value(classified, "test       accuracy"), 0.8);
  EXPECT_NE(classified.out.find("\nclasses    down "), std::string::npos) << classified.out;
  EXPECT_NE(classified.out.find("\nsplit      48 to train, 6 to validate, 6 to test, seed 1\n"), std::string::npos);
  EXPECT_EQ(run("probe table.csv --target y --task regress --predictions predictions.csv").code,
            0);  // over the old ones
  EXPECT_TRUE(base::read_file(folder / "predictions.csv").starts_with("row,label,predicted\n"));
  EXPECT_EQ(run("probe table.csv --target y --task regress --pca 2 --folds 3").code, 0);
  const auto expect_error = [&](const std::string& arguments, const std::string& text) {
    const Ended ended = run("probe " + arguments);
    EXPECT_EQ(ended.code, 1) << arguments;
    EXPECT_EQ(ended.err, "error: [probe] " + text + "\n");
  };
  expect_error("table.csv --target z --task regress", "\"table.csv\" has no column \"z\"; it has key, a, b, y");
  expect_error("labels.csv --target kind --task classify",
               "\"labels.csv\":2: \"t, 0\" of column \"text\" is not a finite number");
  expect_error("table.csv --task classify --labels labels.csv --target text --split 80/20/10",
               "--split 80/20/10 is not three shares that sum to 100, such as 80/10/10");
  expect_error("table.csv --task regress --join other.csv",
               "--join and --on, the column that both files have, belong together");
  expect_error("other.csv --labels table.csv --task regress", "\"other.csv\" has 5 rows, and \"table.csv\" has 60");
  std::ofstream(folder / "bad.npy") << "\x93NUMPY\x01";
  expect_error("bad.npy --labels table.csv --task regress",
               "\"bad.npy\" is not an array of fp32 or fp64 numbers [rows columns]: it does not begin as a .npy file "
               "does");
}

}  // namespace kintsugi::tests::task_training_test
