// The verb `plan`, the memory table of real programs, and what train refuses before it starts.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/compile/fit.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "kintsugi/program/memory_table.h"
#include "tests/layouts.h"
#include "tests/ranks_folder.h"

namespace kintsugi::tests::plan_verb_test {
namespace {

std::vector<program::Program> programs(const config::Settings& s) {
  return compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
}

config::Settings model_of(const std::string& family, const std::string& layout, int64_t layers = 4) {
  config::Settings s = small_model(family, "fp32");
  s.model.layers = layers;
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 1;
  set_layout(s, layout);
  return s;
}

class MemoryOfLayouts : public testing::TestWithParam<const char*> {};

// To the byte: the table equals the run's allocation, and no packing is smaller than what is live at its peak.
TEST_P(MemoryOfLayouts, AddsUp) {
  for (const char* family : {"gpt", "llama"}) {
    const config::Settings s = model_of(family, GetParam());
    std::vector<int> layers;
    int64_t parameters = 0;
    for (const program::Program& p : programs(s)) {
      const program::MemoryTable t = program::memory_table(p);
      EXPECT_EQ(t.total(), p.bytes()) << family << ", stage " << p.stage;
      EXPECT_EQ(t.peak.live.aligned, p.list(program::Step::train).lower_bound_bytes) << family << ", stage " << p.stage;
      EXPECT_GE(t.packing, 0);
      EXPECT_GE(t.others, 0);
      for (int64_t bytes : {t.weights, t.gradients, t.optimizer, t.activations}) EXPECT_GT(bytes, 0);
      EXPECT_TRUE(t.communication == 0 || s.parallel.ranks > 1);
      const program::ModelShare h = program::model_share(p);
      layers.insert(layers.end(), h.layers.begin(), h.layers.end());
      parameters += h.parameters;
    }
    std::sort(layers.begin(), layers.end());
    std::vector<int> all(static_cast<size_t>(s.model.layers) + 2);
    std::iota(all.begin(), all.end(), -1);
    EXPECT_EQ(layers, all) << family;
    EXPECT_EQ(parameters, program::model_share(programs(model_of(family, ""))[0]).parameters) << family;
  }
}

INSTANTIATE_TEST_SUITE_P(All, MemoryOfLayouts,
                         testing::Values("", "data=2", "data=4 zero=1", "data=4 zero=2", "data=4 zero=3", "tensor=2",
                                         "tensor=2 sequence_parallel", "context=2", "context=2 method=ring",
                                         "recompute=full", "pipe=2", "pipe=4", "pipe=2 schedule=gpipe",
                                         "pipe=2 schedule=interleaved chunks=2", "pipe=2 data=2 zero=3",
                                         "pipe=2 data=2 tensor=2 zero=1 sequence_parallel",
                                         "pipe=2 recompute=selective"));

class PlanVerb : public testing::Test, public RanksFolder {
 protected:
  std::string sets =
      "model.vocab=300 model.layers=4 train.micro_batch=1 parallel.pipe=2 parallel.tensor=2 parallel.transport=threads";

  config::Settings settings(const std::string& more = "") const {
    std::istringstream words(sets + " " + more);
    std::vector<std::string> list;
    for (std::string word; words >> word;) list.push_back(word);
    return config::load(folder / "run.toml", models::catalog(), list, 4).settings;
  }
};

std::string lines_with(const std::string& text, const std::string& word) {
  std::string kept;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.find(word) != std::string::npos) kept += line + "\n";
  return kept;
}

TEST_F(PlanVerb, PrintsEachStageToTheByte) {
  const Ended e = run_kintsugi(folder.path(), "plan run.toml --set " + sets);
  EXPECT_EQ(e.code, 0) << e.err;
  EXPECT_EQ(complaint(e.err), "");
  EXPECT_EQ(lines_with(e.out, "ranks"),
            "  0   ranks 0 1           35,520 parameters  embedding, layers 0-1\n"
            "  1   ranks 2 3           25,472 parameters  layers 2-3, head\n");
  EXPECT_EQ(lines_with(e.out, "  all"), "  all                     60,992 parameters  embedding, layers 0-3, head\n");
  for (const program::Program& p : programs(settings())) {
    const program::MemoryTable t = program::memory_table(p);
    const int64_t states = t.weights + t.gradients + t.optimizer + t.statistics;
    std::string row;
    for (int64_t n : {t.weights, t.gradients, t.optimizer, t.statistics, states, t.activations, t.communication,
                      t.workspace, t.packing, t.total()})
      row += " " + base::group_digits(n);
    std::string found;
    const size_t from = e.out.find("memory of a rank, in bytes: states\n");
    std::istringstream in(e.out.substr(from, e.out.find("\npacking\n") - from));
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string word;
      if (words >> word && word == std::to_string(p.stage))
        while (words >> word) found += " " + word;
    }
    EXPECT_EQ(found, row) << e.out;
  }
  EXPECT_NE(e.out.find("\nschedule\n1f1b: 2 stages, 8 micro-batches; 27 units, bubble 12.5%\nstage 0 |F0F1. . "),
            std::string::npos)
      << e.out;
  EXPECT_NE(e.out.find("bubble\n  12.50% if every forward, input gradient and weight gradient costs the same\n  "
                       "(12.50% as published)\n"),
            std::string::npos)
      << e.out;
}

TEST_F(PlanVerb, ListsTheStepsOfTheBatchWarmUp) {
  const Ended e = run_kintsugi(folder.path(), "plan run.toml --set 'train.batch_warmup=[\"2 3\",\"4 1\"]' " + sets);
  ASSERT_EQ(e.code, 0) << e.err;
  config::Settings s = settings();
  s.train.batch_warmup = {"2 3", "4 1"};
  std::map<int64_t, int64_t> most;  // [micro-batches, 0 for all]
  for (const program::Program& p : programs(s))
    for (const program::CallList& list : p.lists)
      if (list.step == program::Step::train)
        most[list.micro_batches] = std::max(most[list.micro_batches], list.lower_bound_bytes);
  std::string found;
  const size_t from = e.out.find("batch warm-up, in the memory of the full step\n");
  ASSERT_NE(from, std::string::npos) << e.out;
  std::istringstream in(e.out.substr(from, e.out.find("\nbubble\n") - from));
  for (std::string word; in >> word;) found += word + " ";
  EXPECT_EQ(found, fmt::format(
                       "batch warm-up, in the memory of the full step steps samples micro-batches bytes live at "
                       "the peak 1 to 3 2 2 {} 4 4 4 {} from 5 8 8 {} ",
                       base::group_digits(most.at(2)), base::group_digits(most.at(4)), base::group_digits(most.at(0))));
  EXPECT_LE(most.at(2), most.at(0));
}

TEST_F(PlanVerb, ATableOfAllRanksAndAPicture) {
  const Ended e =
      run_kintsugi(folder.path(), "plan run.toml --csv memory.csv --svg memory.svg --stage 1 --set " + sets);
  ASSERT_EQ(e.code, 0) << e.err;
  std::string expected =
      "rank,stage,layers,parameters_of_stage,weights,gradients,optimizer,statistics,caches,live_gradients,"
      "activations,communication,workspace,sums_in_order,staging,packing,other_lists,total,states,arena,arena_of_train,"
      "lower_bound_of_train\n";
  const auto list = programs(settings());
  for (int rank = 0; rank < 4; ++rank) {
    const program::Program& p = list[static_cast<size_t>(rank / 2)];
    const program::MemoryTable t = program::memory_table(p);
    const program::CallList& l = p.list(program::Step::train);
    const std::vector<int64_t> numbers = {
        t.weights,     t.gradients,     t.optimizer,   t.statistics,  t.caches,      t.live_gradients,
        t.activations, t.communication, t.workspace,   t.sums,        t.staging,     t.packing,
        t.others,      p.bytes(),       p.state_bytes, p.arena_bytes, l.arena_bytes, l.lower_bound_bytes};
    expected +=
        fmt::format("{},{},\"{}\",{},{}\n", rank, rank / 2, rank < 2 ? "embedding, layers 0-1" : "layers 2-3, head",
                    program::model_share(p).parameters, fmt::join(numbers, ","));
  }
  EXPECT_EQ(base::read_file(folder / "memory.csv"), expected);
  const std::string svg = base::read_file(folder / "memory.svg");
  EXPECT_NE(svg.find(". Memory over a step, stage 1 of 2</text>"), std::string::npos);
  EXPECT_NE(svg.find("(" + base::group_digits(list[1].bytes()) + " bytes)</text>"), std::string::npos);
}

TEST_F(PlanVerb, BadInput) {
  EXPECT_EQ(complaint(run_kintsugi(folder.path(), "plan run.toml --stage 2 --set " + sets).err),
            "error: [plan] --stage 2: there are 2 stages, from 0 on\n");
  EXPECT_EQ(complaint(run_kintsugi(folder.path(), "plan run.toml --stage 1 --set model.vocab=300").err),
            "error: [plan] --stage 1: there is 1 stage, from 0 on\n");
  EXPECT_EQ(
      complaint(run_kintsugi(folder.path(), "plan run.toml --set parallel.memory_per_rank=3G").err),
      "error: [config] --set: parallel.memory_per_rank = \"3G\" is not a size of memory; write a number and its unit "
      "(B, kB, MB, GB, TB, KiB, MiB, GiB, TiB), as \"16 GiB\"\n");
}

// train refuses what plan warns about, with the same text, and leaves no files.
TEST_F(PlanVerb, TooLittleMemory) {
  const auto list = programs(settings());
  const int64_t most = std::max(list[0].bytes(), list[1].bytes());
  const std::string per_rank = fmt::format("parallel.memory_per_rank={}B", most - 1);
  const auto excess = compile::excess(settings(per_rank), list, {});
  ASSERT_TRUE(excess);
  EXPECT_FALSE(excess->fitting.empty());
  const Ended planned = run_kintsugi(folder.path(), "plan run.toml --set " + sets + " " + per_rank);
  EXPECT_EQ(planned.code, 0);
  const std::string warning =
      fmt::format("warning: train would refuse this: {}\n", fmt::join(compile::describe(*excess), "\n  "));
  EXPECT_EQ(planned.err.substr(planned.err.size() - std::min(planned.err.size(), warning.size())), warning);
  const std::string trained =
      "parallel.pipe=2 parallel.tensor=2 parallel.transport=threads model.layers=4 train.micro_batch=1";
  sets = trained + " model.vocab=257";  // that of bytes
  const auto small = programs(settings());
  const auto refused = compile::excess(settings("parallel.memory_per_rank=10kB"), small, {});
  const Ended e = run_kintsugi(folder.path(),
                               "train run.toml --set " + trained + " train.folder=out parallel.memory_per_rank=10kB");
  EXPECT_EQ(e.code, 1);
  EXPECT_EQ(complaint(e.err), "error: [memory] " + compile::one_line(*refused) + "\n");
  EXPECT_FALSE(fs::exists(folder / "out" / "metrics.jsonl"));
}

// GPT-3 175B on 64 ranks, in a process limited to 1 GiB, libraries included.
TEST_F(PlanVerb, AVeryLargeModelTakesSecondsAndLittleMemory) {
  std::ofstream(folder / "gpt3.toml")
      << "[model]\nlayers = 96\nembed = 12288\nheads = 96\nvocab = 51200\n"
         "[train]\nsequence = 2048\nglobal_batch = 64\nmicro_batch = 1\ndtype = \"bf16\"\n"
         "[parallel]\ntensor = 8\npipe = 8\nschedule = \"interleaved\"\nchunks = 3\nmemory_per_rank = \"96 GiB\"\n";
  rusage before = {}, after = {};
  getrusage(RUSAGE_CHILDREN, &before);
  const auto start = std::chrono::steady_clock::now();
  const Ended e = run_kintsugi(folder.path(), "plan gpt3.toml --csv gpt3.csv --svg gpt3.svg", "ulimit -v 1048576");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  getrusage(RUSAGE_CHILDREN, &after);
  const auto time = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  const double used = time(after.ru_utime) + time(after.ru_stime) - time(before.ru_utime) - time(before.ru_stime);
  fmt::print("plan of GPT-3: {:.2f} s, {:.2f} s of a processor, at most {} KiB resident\n", seconds, used,
             after.ru_maxrss);
  EXPECT_EQ(e.code, 0) << e.err;
  EXPECT_EQ(complaint(e.err), "");
  EXPECT_LT(used, 10);
  EXPECT_LT(after.ru_maxrss, 1 << 20);
  EXPECT_EQ(lines_with(e.out, "  all"), "  all                                174,615,846,912 parameters\n");
  EXPECT_NE(e.out.find("\n      embedding, layers 0-95, head\n"), std::string::npos);
  EXPECT_NE(e.out.find("interleaved: 8 stages, 3 chunks on each, 64 micro-batches; 597 units, bubble 3.65%"),
            std::string::npos);
  const std::string csv = base::read_file(folder / "gpt3.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 65);
  EXPECT_LT(fs::file_size(folder / "gpt3.svg"), 200'000u);
}

}  // namespace
}  // namespace kintsugi::tests::plan_verb_test
