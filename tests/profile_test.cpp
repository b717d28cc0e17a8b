// The verb `profile`, and the measurements of `train`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "kintsugi/base/file.h"
#include "kintsugi/profile/measure.h"
#include "tests/markup.h"
#include "tests/mpi_launch.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tests/ranks_folder.h"
#include "tests/small_model.h"

namespace kintsugi::tests::profile_test {
namespace {

bool has(const std::string& text, std::string_view word) {
  return text.find(word) != std::string::npos;
}

std::vector<std::vector<std::string>> rows_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string>& row = rows.emplace_back();
    for (size_t at = 0; at <= line.size();) {
      const size_t end = std::min(line.find(',', at), line.size());
      row.push_back(line.substr(at, end - at));
      at = end + 1;
    }
  }
  return rows;
}

// For each rank in profile.json: the step, and the sum of its parts.
struct Sums {
  double step = 0, parts = 0, between = 0;
};
std::vector<Sums> sums_of(const profile::StepProfile& step) {
  std::vector<Sums> sums;
  for (const profile::RankProfile& r : step.of_ranks) {
    Sums& s = sums.emplace_back(Sums{.step = r.seconds, .parts = r.inputs + r.between, .between = r.between});
    for (const profile::OperationTime& o : r.operations) s.parts += o.seconds;
  }
  return sums;
}

class ProfileVerb : public testing::Test, public RanksFolder {};
class ProfileUnderMpi : public UnderMpi, public RanksFolder {};

}  // namespace

// Measured with a separate clock around the step. On a busy machine a step may be suspended anywhere: take the best of
// several.
TEST(Recorder, InstructionsAndWaitsAddUpToTheStep) {
  Machine machine(small_model("gpt", "fp32"));
  profile::Recorder recorder(machine.executor.program(), program::Step::train);
  machine.step(0, 1e-3);
  machine.executor.recorder = &recorder;
  double best = 1;
  for (int step = 1; step < 40 && best > 0.01; ++step) {
    kernels::Numbers numbers = {
        .seed = 1, .step = step, .batch_rows = machine.s.train.micro_batch, .learning_rate = 1e-3};
    const int64_t begin = profile::now();
    machine.executor.run(program::Step::train, numbers,
                         [&](const run::Executor::Inputs& inputs) { machine.fill(step, inputs); });
    const auto outside = static_cast<double>(profile::now() - begin);
    const profile::StepTimes& times = recorder.times();
    double sum = 0;
    for (const profile::InstructionTimes& t : times.instructions) {
      ASSERT_GT(t.begin, begin);
      ASSERT_LE(t.begin, t.end);
      ASSERT_LE(t.end, t.progressed);
      sum += static_cast<double>(t.progressed - t.begin);
    }
    for (const profile::Interval& inputs : times.inputs) sum += static_cast<double>(inputs.length());
    ASSERT_LE(sum, static_cast<double>(times.whole.length()));
    ASSERT_LE(static_cast<double>(times.whole.length()), outside);
    best = std::min(best, 1 - sum / outside);
  }
  EXPECT_LE(best, 0.01);
  // Other lists are not recorded.
  const profile::StepTimes before = recorder.times();
  kernels::Numbers numbers = {.seed = 1, .batch_rows = machine.s.train.micro_batch};
  machine.executor.run(program::Step::evaluate, numbers,
                       [&](const run::Executor::Inputs& inputs) { machine.fill(0, inputs); });
  EXPECT_EQ(recorder.times().whole.end, before.whole.end);
}

TEST_F(ProfileVerb, OfAPipelineWithData) {
  const Ended ended =
      run_kintsugi(folder.path(),
                   "profile run.toml --steps 2 --warm-up 1 --trace t.pftrace --csv t.csv --set parallel.pipe=2 "
                   "parallel.data=2 parallel.transport=threads train.micro_batch=1");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(complaint(ended.err), "");
  EXPECT_TRUE(
      matches(ended.out.substr(0, ended.out.find("\n4 ranks")),
              "2 steps after 1 to warm up, fp[0-9]+, random samples:\n  [0-9.]+ m?s a step, [0-9.]+ k?tokens/s"))
      << ended.out;
  const std::string narrow = replaced(ended.out, " +", " ");  // how wide a column is depends on the numbers in it
  for (const char* text :
       {"4 ranks (pipe=2 data=2), 1 thread each\nthe limit of a rank: ", "where the time of a step went\n rank stage ",
        "\n compute\n", "\n communication\n", "the heaviest instructions of ", "\n all_reduce data ",
        "\n receive pipe ", "the bubble, idle over busy time", "\n stage planned with measured tasks as run waiting"})
    EXPECT_TRUE(has(narrow, text)) << text << "\n" << ended.out;
  for (size_t at = 0, end; (end = ended.out.find('\n', at)) != std::string::npos; at = end + 1)
    EXPECT_LE(end - at, 80u) << ended.out.substr(at, end - at);

  // For each rank, all rows add up to the step; the parts of the table have the same numbers.
  std::map<std::string, double> seconds, between;
  const auto rows = rows_of(base::read_file(folder / "t.csv"));
  ASSERT_GT(rows.size(), 100u);
  EXPECT_EQ(rows[0][9], "seconds");
  for (size_t i = 1; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), rows[0].size()) << i;
    seconds[rows[i][0]] += std::stod(rows[i][9]);
    if (rows[i][4] == "between instructions") between[rows[i][0]] = std::stod(rows[i][9]);
    const double waiting = rows[i][10].empty() ? 0 : std::stod(rows[i][10]);
    EXPECT_LE(waiting, std::stod(rows[i][9]) * 1.000001 + 1e-12);
  }
  EXPECT_EQ(seconds.size(), 4u);
  EXPECT_EQ(between.size(), 4u);
  for (const auto& [rank, sum] : seconds) {
    EXPECT_GT(sum, 0);
    EXPECT_GE(between[rank], 0);
  }
  EXPECT_GT(base::read_file(folder / "t.pftrace").size(), 10'000u);
}

// By the device's clock: the parts add up to the step there too, and kernels dominate.
TEST_F(ProfileVerb, OfADevice) {
  const std::string small = " --set model.layers=1 train.global_batch=2 parallel.device=emulated parallel.data=2";
  const Ended ended = run_kintsugi(folder.path(), "profile run.toml --steps 2 --trace t.pftrace --csv t.csv" + small);
  ASSERT_EQ(ended.code, 0) << ended.err;
  for (const char* text : {"2 ranks (data=2), on device emulated\n", "\n    contract ", "\n  all_reduce "})
    EXPECT_TRUE(has(ended.out, text)) << text << "\n" << ended.out;
  std::map<std::string, double> kernels, all;
  const auto rows = rows_of(base::read_file(folder / "t.csv"));
  for (size_t i = 1; i < rows.size(); ++i) {
    const double seconds = std::stod(rows[i][9]);
    EXPECT_GT(seconds, -1e-12) << rows[i][4];  // the rest of a sum is rounded
    all[rows[i][0]] += seconds;
    if (!rows[i][11].empty() && std::stod(rows[i][11]) > 0) kernels[rows[i][0]] += seconds;
  }
  EXPECT_EQ(all.size(), 2u);
  for (const auto& [rank, sum] : all) EXPECT_GT(kernels[rank], 0.05 * sum) << rank;

  ASSERT_EQ(run_kintsugi(folder.path(),
                         "train run.toml --set train.folder=device train.steps=3 model.layers=1 "
                         "train.global_batch=2 parallel.device=emulated")
                .code,
            0);
  const profile::StepProfile step = profile::step_profile_of(base::read_file(folder / "device/profile.json"), "json");
  EXPECT_EQ(step.step, 3);
  for (const Sums& sums : sums_of(step)) EXPECT_NEAR(sums.parts, sums.step, 1e-9);
}

TEST_F(ProfileVerb, ProductsInBf16HaveALimitOfTheirOwn) {
  const auto limit_line = [&](const std::string& dtype) {
    const Ended ended =
        run_kintsugi(folder.path(), "profile run.toml --steps 1 --warm-up 1 --set train.dtype=" + dtype);
    EXPECT_EQ(ended.code, 0) << ended.err;
    const size_t at = ended.out.find("the limit of a rank");
    return ended.out.substr(at, ended.out.find('\n', at) - at);
  };
  const std::string begin = "the limit of a rank: ", rate = "[0-9.]+ [GTMP]?FLOP/s ";
  EXPECT_TRUE(matches(limit_line("fp32"), begin + rate + "\\(fp32\\), [0-9.]+ [GTMP]?B/s of memory"));
  EXPECT_TRUE(matches(limit_line("bf16"),
                      begin + rate + "\\(fp32\\), " + rate + "\\(products in bf16\\), [0-9.]+ [GTMP]?B/s of memory"));
}

TEST_F(ProfileVerb, RefusesWhatItCannotDo) {
  const auto error_of = [&](const std::string& arguments) {
    return complaint(run_kintsugi(folder.path(), "profile run.toml " + arguments).err);
  };
  EXPECT_EQ(error_of("--steps 0"), "error: [profile] --steps 0 is not an integer from 1 to 1,000,000\n");
  EXPECT_EQ(error_of("--csv run.toml"), "error: [profile] --csv \"run.toml\" is a file of this run; name another\n");
  EXPECT_EQ(error_of("--csv x --trace x"), "error: [profile] --trace and --csv are one file, \"x\"; name two\n");
}

TEST_F(ProfileVerb, ARunMeasuresItsThirdStep) {
  ASSERT_EQ(run_kintsugi(folder.path(), arguments("pipe", "pipe=2 transport=threads", "train.micro_batch=1")).code, 0);
  const std::string json = base::read_file(folder / "pipe/profile.json");
  const profile::StepProfile step = profile::step_profile_of(json, "profile.json");
  EXPECT_GE(step.step, 3);  // on a busy machine one that is later
  EXPECT_EQ(step.ranks, 2);
  ASSERT_EQ(step.of_ranks.size(), 2u);
  for (const Sums& sums : sums_of(step)) {
    EXPECT_GT(sums.step, 0);
    EXPECT_NEAR(sums.parts, sums.step, 1e-9);
    EXPECT_GE(sums.between, 0);
  }
  EXPECT_LT(json.size(), 200'000u);

  const auto report = [&] { return run_kintsugi(folder.path(), "report pipe"); };
  EXPECT_EQ(report().err, "");
  std::string page = base::read_file(folder / "pipe/report.html");
  EXPECT_EQ(markup_fault(page), "");
  for (const char* text :
       {"<h2>Where the time of a step went</h2>", ", as it was measured.</p>", "<h3>Schedule, as planned</h3>",
        "<h3>Schedule, as run</h3>", "forward of chunk 1, micro-batch 0: ", "<h3>Bubble, idle over busy time</h3>",
        "<h3>Transfers of a rank</h3>", "<td>receive</td><td>pipe</td>"})
    EXPECT_TRUE(has(page, text)) << text;

  // A run of an older version, and one with a corrupt file; neither affects the rest, or a resume.
  std::ofstream(folder / "pipe/profile.json") << json.substr(0, json.size() / 2);
  const Ended torn = report();
  EXPECT_EQ(torn.code, 0);
  EXPECT_TRUE(has(torn.err, "warning: pipe: the time of a step cannot be shown: [profile] \"pipe/profile.json\":"))
      << torn.err;
  EXPECT_EQ(
      run_kintsugi(folder.path(),
                   arguments("pipe", "pipe=2 transport=threads", "train.micro_batch=1 train.steps=14") + " --resume")
          .code,
      0);
  fs::remove(folder / "pipe/profile.json");
  EXPECT_EQ(report().err, "");
  page = base::read_file(folder / "pipe/report.html");
  EXPECT_EQ(markup_fault(page), "");
  EXPECT_FALSE(has(page, "Where the time of a step went"));
  EXPECT_TRUE(has(page, "<h3>Schedule, as planned</h3>"));
}

INSTANTIATE_TEST_SUITE_P(Mpi, ProfileUnderMpi, testing::ValuesIn(kMpis), name_of_mpi);

// As on two machines booted a day apart: rank 1 runs with another clock.
TEST_P(ProfileUnderMpi, RanksWhoseClocksDiffer) {
  const std::string other = "unshare --time --monotonic 100000 --fork ";
  if (std::system((other + "true > /dev/null 2>&1").c_str()) != 0) GTEST_SKIP() << "no time namespaces here";
  std::ofstream(folder / "clock.sh") << "case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in 1) exec " << other
                                     << "\"$@\" ;; esac\nexec \"$@\"\n";
  // Stages of a pipeline wait for each other; with unsynchronized clocks one of them never would. On a busy machine one
  // may be so late that everything it waits for is there: try again then.
  std::map<std::string, double> waiting;
  Ended ended;
  for (int i = 0; i < 5 && (waiting["0"] <= 0 || waiting["1"] <= 0); ++i) {
    ended = run_kintsugi(folder.path(), "profile run.toml --steps 2 --csv t.csv --set parallel.pipe=2", ":",
                         GetParam().run + " -n 2 sh clock.sh");
    ASSERT_EQ(ended.code, 0) << ended.err;
    std::smatch within;
    ASSERT_TRUE(std::regex_search(ended.out, within, std::regex("clocks of ranks agree within ([0-9.]+) us")))
        << ended.out;
    EXPECT_LT(std::stod(within[1]), 1e6);
    waiting.clear();
    const auto rows = rows_of(base::read_file(folder / "t.csv"));
    for (size_t row = 1; row < rows.size(); ++row)
      if (!rows[row][10].empty()) waiting[rows[row][0]] += std::stod(rows[row][10]);
  }
  EXPECT_GT(waiting["0"], 0) << ended.out;
  EXPECT_GT(waiting["1"], 0) << ended.out;
}

TEST_P(ProfileUnderMpi, RanksThatAreProcesses) {
  const Ended ended = run_kintsugi(folder.path(), "profile run.toml --steps 2 --trace t.pftrace --set parallel.pipe=2",
                                   ":", GetParam().run + " -n 2");
  ASSERT_EQ(ended.code, 0) << ended.err;
  for (const char* text : {"2 ranks (pipe=2)", "clocks of ranks agree within ", "the bubble, idle over busy time"})
    EXPECT_TRUE(has(ended.out, text)) << text << "\n" << ended.out;
  const std::string trace = base::read_file(folder / "t.pftrace");
  EXPECT_TRUE(has(trace, "rank 0 (stage 0)"));
  EXPECT_TRUE(has(trace, "rank 1 (stage 1)"));
}

}  // namespace kintsugi::tests::profile_test
