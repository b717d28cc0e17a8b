// Layouts over MPI give the loss and gradients of one rank: runs mpi_layouts (mpi_layouts_program.cpp).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "tests/mpi_launch.h"

namespace kintsugi::tests::mpi_layouts_test {
namespace {

using Lines = std::vector<std::string>;

class LayoutsOverMpi : public UnderMpi {
 protected:
  // The output of the ranks, sorted.
  static Lines said(int ranks, const std::string& argument = "") {
    const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "mpi_layouts";
    const std::string command =
        "timeout -k 1 250 " + GetParam().run + " -n " + std::to_string(ranks) + " " + program.string() + " " + argument;
    Lines lines;
    FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> line;
    while (fgets(line.data(), line.size(), pipe) != nullptr) lines.emplace_back(line.data());
    EXPECT_EQ(pclose(pipe), 0) << command;
    std::sort(lines.begin(), lines.end());
    return lines;
  }
};

}  // namespace

TEST_P(LayoutsOverMpi, TwoRanks) {
  EXPECT_EQ(said(2), (Lines{"rank 0: 18 layouts agree\n", "rank 1: 18 layouts agree\n"}));
}

TEST_P(LayoutsOverMpi, FourRanks) {
  EXPECT_EQ(said(4), (Lines{"rank 0: 13 layouts agree\n", "rank 1: 13 layouts agree\n", "rank 2: 13 layouts agree\n",
                            "rank 3: 13 layouts agree\n"}));
}

// A changed initial weight on one rank is detected by every rank.
TEST_P(LayoutsOverMpi, ADifferenceIsSeen) {
  const std::string where = "gpt: data=2: step 0: the loss differs\n";
  EXPECT_EQ(said(2, "damaged"),
            (Lines{"rank 0: 0 layouts agree\n", "rank 0: " + where, "rank 1: 0 layouts agree\n", "rank 1: " + where}));
}

INSTANTIATE_TEST_SUITE_P(Mpi, LayoutsOverMpi, testing::ValuesIn(kMpis), name_of_mpi);

}  // namespace kintsugi::tests::mpi_layouts_test
