// `kintsugi explain --bytes`: bytes and FLOPs of each instruction, and the lower bound of a step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "kintsugi/base/file.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/train/limits.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tests/ranks_folder.h"
#include "tests/small_model.h"

namespace kintsugi::tests::explain_bytes_test {
namespace {

struct Row {
  std::string operation;
  double calls = 0, bytes = 0, flops = 0, floor = 0, measured = -1;
};

class ExplainBytes : public testing::Test, public RanksFolder {
 protected:
  std::string explain(const std::string& arguments) {
    const Ended ended = run_kintsugi(folder.path(), "explain run.toml " + arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(complaint(ended.err), "");
    return ended.out;
  }
  std::string error_of(const std::string& arguments) {
    const Ended ended = run_kintsugi(folder.path(), "explain run.toml " + arguments);
    EXPECT_EQ(ended.code, 1) << arguments;
    return complaint(ended.err);
  }

  std::vector<Row> rows() const {
    std::vector<Row> list;
    std::istringstream lines(base::read_file(folder / "bytes.csv"));
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(line,
              "stage,body,instruction,operation,phase,layer,value,calls,bytes,flops,floor_seconds,measured_seconds");
    while (std::getline(lines, line)) {
      std::vector<std::string> cells;
      std::istringstream in(line + ",");
      for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
      EXPECT_EQ(cells.size(), 12u) << line;
      list.push_back({.operation = cells[3],
                      .calls = std::stod(cells[7]),
                      .bytes = std::stod(cells[8]),
                      .flops = std::stod(cells[9]),
                      .floor = std::stod(cells[10])});
      if (!cells[11].empty()) list.back().measured = std::stod(cells[11]);
    }
    return list;
  }
};

// The groups of the only match in the text.
std::vector<std::string> only(const std::string& text, const std::string& pattern) {
  const std::vector<Match> found = find_all(text, pattern);
  return found.size() == 1 ? found[0].groups : std::vector<std::string>();
}

// The row of stage 0 in the last table, as one line: columns that exceed the width continue below.
std::string joined(const std::string& page) {
  std::istringstream lines(page.substr(std::min(page.size(), page.find("the floor of a step"))));
  std::string row = "\n  0";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  0 ")) row += " " + line.substr(4);
  return row + "\n";
}

// "1.5 GFLOP/s", "12 MB/s"
double rate_of(const std::string& number, const std::string& prefix) {
  return std::stod(number) * std::map<std::string, double>{{"", 1}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}.at(prefix);
}

// "1.23 ms"
double seconds_of(const std::string& number, const std::string& unit) {
  return std::stod(number) * std::map<std::string, double>{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}.at(unit);
}

// Limits in fp32, of matmuls and of memory, as printed.
std::vector<double> limits_of(const std::string& page) {
  const std::string rate = "([0-9.]+) ([GTM]?)";
  const std::vector<std::string> found = only(page, "the limit of a rank: " + rate + "FLOP/s \\(fp32\\), (?:" + rate +
                                                        "FLOP/s \\(products in bf16\\), )?" + rate + "B/s of memory\n");
  if (found.size() != 7) return {};
  const double wide = rate_of(found[1], found[2]);
  return {wide, found[3].empty() ? wide : rate_of(found[3], found[4]), rate_of(found[5], found[6])};
}

}  // namespace

TEST_F(ExplainBytes, TheFloorOfEachInstructionIsThatOfItsBytesOrItsFlops) {
  for (const std::string dtype : {"fp32", "bf16"}) {
    const std::string page =
        explain("--bytes --steps 2 --csv bytes.csv --set train.micro_batch=2 train.dtype=" + dtype);
    const std::vector<double> limits = limits_of(page);
    ASSERT_EQ(limits.size(), 3u) << page;
    double flops = 0, floor = 0, measured = 0, products = 0;
    for (const Row& row : rows()) {
      const bool product = train::is_product(row.operation);
      const double want = std::max(row.bytes / limits[2], row.flops / limits[product ? 1 : 0]);
      EXPECT_NEAR(row.floor, want, 0.01 * want) << row.operation;  // the page has three digits
      EXPECT_GT(row.measured, 0) << row.operation;
      EXPECT_GE(row.calls, 1);
      flops += row.flops, floor += row.floor, measured += row.measured;
      if (product) products += row.flops;
    }
    EXPECT_GT(products, 0.5 * flops);
    // For a stage: bytes, FLOPs, lower bound, matmuls, kernels, step, and the step over both.
    const std::string time = " +([0-9.]+) ([mu]?s)";
    const std::vector<std::string> sums = only(
        joined(page), "\n  0 +\\S+ \\S+ +([0-9.]+) MFLOP" + time + time + time + time + " +([0-9.]+)x +([0-9.]+)x\n");
    ASSERT_EQ(sums.size(), 12u) << page;
    const auto seconds = [&](size_t at) { return seconds_of(sums[at], sums[at + 1]); };
    EXPECT_NEAR(std::stod(sums[1]) * 1e6, flops, 0.01 * flops);
    EXPECT_NEAR(seconds(2), floor, 0.01 * floor);
    EXPECT_NEAR(seconds(4), products / limits[1], 0.02 * products / limits[1]);
    EXPECT_NEAR(seconds(6), measured, 0.01 * measured);
    EXPECT_GT(seconds(8), 0.98 * measured);
    EXPECT_NEAR(std::stod(sums[10]), seconds(8) / floor, 0.02 * seconds(8) / floor);
    for (size_t at = 0, end; (end = page.find('\n', at)) != std::string::npos; at = end + 1)
      EXPECT_LE(end - at, 100u) << page.substr(at, end - at);
  }
}

// The program's own count, over all micro-batches.
TEST_F(ExplainBytes, CountsEveryCallOfAStep) {
  const std::string sets = "--set train.micro_batch=2";
  const std::string page = explain("--bytes --steps 0 --csv bytes.csv " + sets);
  EXPECT_NE(page.find("no step was measured, fp32, 1 thread a rank\n"), std::string::npos) << page;
  EXPECT_EQ(page.find("measured  / floor"), std::string::npos) << page;
  double flops = 0;
  for (const Row& row : rows()) {
    flops += row.flops;
    EXPECT_EQ(row.measured, -1);
  }
  const std::vector<std::string> total = only(explain("--pass memory " + sets), "\n  train +(\\S+) flops\n");
  ASSERT_EQ(total.size(), 2u);
  EXPECT_NEAR(flops, std::stod(total[1]), 1e-4 * flops);
}

TEST_F(ExplainBytes, OfSeveralRanks) {
  const std::string page = explain("--bytes --steps 1 --set parallel.pipe=2 parallel.data=2 train.micro_batch=2");
  EXPECT_NE(page.find("in a step of a rank, the mean of all stages\n"), std::string::npos) << page;
  EXPECT_EQ(only(page, "\n  stage +bytes .*\n  0 .*x\n  1 .*x\n").size(), 1u) << page;
}

TEST_F(ExplainBytes, RefusesWhatItCannotDo) {
  EXPECT_EQ(error_of("--bytes --pass memory"), "error: [explain] --bytes cannot be combined with --pass or --svg\n");
  EXPECT_EQ(error_of("--steps 2"), "error: [kintsugi explain] --steps requires --bytes; see kintsugi explain --help\n");
  EXPECT_EQ(error_of("--bytes --steps -1"), "error: [explain] --steps -1 is not an integer from 0 to 1,000,000\n");
  EXPECT_EQ(error_of("--bytes --csv run.toml"),
            "error: [explain] --csv \"run.toml\" is a file of this run; name another\n");
  EXPECT_EQ(error_of("--bytes --set parallel.device=emulated"),
            "error: [explain] --bytes: parallel.device = \"emulated\" is not supported; use --set "
            "parallel.device=cpu\n");
}

// Limits depend on the kernel: its operands have the dtype of the run.
TEST(Products, AreOfTheDtypeOfTheRun) {
  for (const std::string family : {"gpt", "llama", "bert:classes"}) {
    const config::Settings s = small_model(family, "bf16");
    int products = 0;
    for (const program::Program& p : compile::compile({.settings = s, .kernels = *compile::kernels_of(s)}))
      for (const program::Body& body : p.bodies)
        for (const program::Instruction& i : body.instructions)
          if (i.kind == program::Kind::compute && train::is_product(i.kernel)) {
            ++products;
            EXPECT_EQ(p.buffer(i.ins[0]).type.dtype, tensor::DType::bf16) << family << " " << i.kernel;
          }
    EXPECT_GT(products, 20);
  }
}

}  // namespace kintsugi::tests::explain_bytes_test
