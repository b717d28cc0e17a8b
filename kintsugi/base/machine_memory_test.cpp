#include "kintsugi/base/machine_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace kintsugi::base::machine_memory_test {
namespace {

namespace fs = std::filesystem;

class ControlGroups : public testing::Test {
 protected:
  ControlGroups() {
    std::string name = (fs::temp_directory_path() / "kintsugi_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~ControlGroups() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  fs::path root_;
};

TEST_F(ControlGroups, TheLeastOfAGroupAndThoseAboveIt) {
  write("a/memory.max", "5000000\n");
  write("a/b/memory.max", "max\n");
  write("a/b/c/memory.max", "7000000\n");
  EXPECT_EQ(group_limit(root_, "0::/a/b/c\n"), 5000000);
  EXPECT_EQ(group_limit(root_, "0::/a/b\n"), 5000000);
  EXPECT_EQ(group_limit(root_, "0::/d\n"), 0);
  EXPECT_EQ(group_limit(root_, "0::/\n"), 0);
  EXPECT_EQ(group_limit(root_, "0::/../../a\n"), 0);
  EXPECT_EQ(group_limit(root_, ""), 0);
  EXPECT_EQ(group_limit(root_, "no colons\n"), 0);
}

TEST_F(ControlGroups, VersionOne) {
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");  // what it writes for none
  write("memory/job/memory.limit_in_bytes", "3000000\n");
  write("cpu/job/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(group_limit(root_, "3:cpu,cpuacct:/job\n2:memory:/job/step\n"), 3000000);
  EXPECT_EQ(group_limit(root_, "2:pids,memory:/job\n"), 3000000);
  EXPECT_EQ(group_limit(root_, "2:memory:/\n"), 0);
}

TEST(MachineMemory, IsKnown) {
  EXPECT_GT(machine_memory().machine, int64_t{1} << 28);
}

}  // namespace
}  // namespace kintsugi::base::machine_memory_test
