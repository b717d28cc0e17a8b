#include "kintsugi/train/node_checks.h"

#include <gtest/gtest.h>

#include <thread>

#include "kintsugi/base/error.h"

namespace kintsugi::train::node_checks_test {
namespace {

std::vector<NodeReport> four() {
  std::vector<NodeReport> reports;
  for (int r = 0; r < 4; ++r)
    reports.push_back({.host = "n" + std::to_string(r + 1),
                       .flops = 4e9,
                       .memory = 8e9,
                       .disk = 1e8,
                       .clock = 1000.0 + r,
                       .links = {{.axis = "data", .peer = (r + 1) % 4, .bandwidth = 1e9}}});
  return reports;
}

std::string error_of(const std::vector<NodeReport>& reports) {
  try {
    judge_nodes(reports, 1);
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "";
}

TEST(NodeChecks, FindAnErrorOfArithmetic) {
  double flops = 0;
  EXPECT_TRUE(multiplies_correctly(multiply, 0, flops));
  EXPECT_GT(flops, 0);
  EXPECT_FALSE(multiplies_correctly(
      [](const float* a, const float* b, float* c, int64_t n) {
        multiply(a, b, c, n);
        c[n * n / 2 + 7] += 1;
      },
      0, flops));
}

TEST(NodeChecks, NameSlowRanksAndLinks) {
  EXPECT_EQ(judge_nodes(four(), 1.2),
            std::vector<std::string>{"checks: 4 ranks in 1.2s, arithmetic 4.00 GFLOP/s, memory 8.00 GB/s, the file "
                                     "system 100 MB/s, data links 1.00 GB/s"});
  std::vector<NodeReport> reports = four();
  reports[2].memory = 1.6e9;
  reports[1].links[0].bandwidth = 2e8;
  const auto lines = judge_nodes(reports, 1.2);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], "warning: rank 2 on n3: memory at 1.60 GB/s, 5.0 times slower than the median of 8.00 GB/s");
  EXPECT_EQ(lines[2],
            "warning: the data link from rank 1 on n2 to rank 2 on n3: 200 MB/s, 5.0 times slower than the median of "
            "1.00 GB/s");
}

TEST(NodeChecks, RefuseWrongResultsAndClocks) {
  std::vector<NodeReport> reports = four();
  reports[3].clock += 60;
  EXPECT_EQ(error_of(reports),
            "[launch] the clock of n4 (rank 3) is 63 s ahead of that of n1; set both by NTP: chronyc makestep");
  reports[2].correct = false;
  reports[2].wrong = "a product of 192 x 192 matrices";
  EXPECT_EQ(error_of(reports),
            "[launch] rank 2 on n3 computes wrong results: a product of 192 x 192 matrices is not right; use another "
            "node");
}

TEST(NodeChecks, MeasureEachAxisOfTheMesh) {
  config::Settings s;
  s.parallel.ranks = 4;
  s.parallel.data = 2;
  s.parallel.tensor = 2;
  s.train.folder = testing::TempDir() + "no_such_run";
  const auto worlds = comm::thread_worlds(4);
  std::vector<std::string> lines;
  std::vector<std::thread> threads;
  for (int r = 0; r < 4; ++r)
    threads.emplace_back([&, r] {
      const auto mine = check_nodes(*worlds[static_cast<size_t>(r)], s, "n1");
      if (r == 0) lines = mine;
    });
  for (std::thread& t : threads) t.join();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0].rfind("checks: 4 ranks in ", 0), 0u) << lines[0];
  EXPECT_NE(lines[0].find(", data links "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find(", tensor links "), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace kintsugi::train::node_checks_test
