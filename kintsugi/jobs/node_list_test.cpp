#include "kintsugi/jobs/node_list.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kintsugi/base/error.h"

namespace kintsugi::jobs::node_list_test {
namespace {

using Names = std::vector<std::string>;

TEST(NodeList, IsExpanded) {
  EXPECT_EQ(expand_nodes("n[1-3]"), (Names{"n1", "n2", "n3"}));
  EXPECT_EQ(expand_nodes("nid[008-010,20],gpu4"), (Names{"nid008", "nid009", "nid010", "nid20", "gpu4"}));
  EXPECT_EQ(expand_nodes("r[1-2]n[1-2]-x"), (Names{"r1n1-x", "r1n2-x", "r2n1-x", "r2n2-x"}));
  EXPECT_EQ(expand_nodes("a,b,a"), (Names{"a", "b"}));
  EXPECT_EQ(expand_nodes(""), Names{});
}

TEST(NodeList, ThatIsNoneIsRefused) {
  for (const char* bad : {"n[1-", "n]1[", "n[3-1]", "n[x]", "n[[1]]", "n[0-999999999]"})
    EXPECT_THROW(expand_nodes(bad), base::UserError) << bad;
}

TEST(NodeList, AHostThatIsThereTwiceIsRefused) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "jobs_hosts";
  const std::string path = file.string();
  const auto error = [&](const std::string& command) -> std::string {
    try {
      require_distinct_hosts("launch", command);
      return "";
    } catch (const base::UserError& e) {
      return e.what();
    }
  };
  std::ofstream(file) << "# two nodes\nn1 slots=2\n\n n2:2 # the second\nn3\n";
  EXPECT_EQ(error("mpirun -n 4 --hostfile " + path), "");
  std::ofstream(file) << "n1\nn2\nn1 slots=2\n";
  const std::string twice = "[launch] " + path + ":3: host n1 is there already, in line 1; give it once, with slots=2";
  for (const char* option : {"--hostfile ", "-hostfile ", "--machinefile=", "-f "})
    EXPECT_EQ(error("mpiexec " + std::string(option) + path + " -n 4"), twice) << option;
  EXPECT_EQ(error("mpirun --hostfile $PBS_NODEFILE -n 4"), "");
  EXPECT_NE(error("mpirun --hostfile /nowhere -n 4").find("/nowhere"), std::string::npos);
  EXPECT_EQ(error("srun --nodelist=n[1-3],m1 -n 4"), "");
  EXPECT_EQ(error("srun --nodelist=n[1-3],n2 -n 4"), "[launch] --nodelist n[1-3],n2: host n2 is there twice");
  EXPECT_EQ(error("-w n1,n1"), "[launch] -w n1,n1: host n1 is there twice");
  std::filesystem::remove(file);
}

TEST(NodeList, OutputOfACommandThatFailsIsNone) {
  EXPECT_EQ(output_of("echo n1"), "n1\n");
  EXPECT_EQ(output_of("echo n1; exit 3"), "");
}

}  // namespace
}  // namespace kintsugi::jobs::node_list_test
