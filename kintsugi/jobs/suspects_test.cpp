#include "kintsugi/jobs/suspects.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"

namespace kintsugi::jobs::suspects_test {
namespace {

namespace fs = std::filesystem;

class Suspects : public testing::Test {
 protected:
  Suspects() {
    fs::remove_all(folder);
    base::make_folders(folder);
  }
  ~Suspects() override { fs::remove_all(folder); }

  const fs::path folder = fs::path(testing::TempDir()) / ("jobs_suspects_" + std::to_string(getpid()));
};

TEST_F(Suspects, AreRememberedAcrossJobsUntilTheyExpire) {
  EXPECT_TRUE(read_suspects(folder).empty());
  add_suspect(folder, {.node = "n3", .since = 100, .until = 200, .job = "1", .why = "first", .excluded = true});
  add_suspect(folder, {.node = "n3", .since = 150, .until = 250, .job = "2", .why = "second", .excluded = true});
  add_suspect(folder, {.node = "n4", .since = 150, .until = 0, .job = "2", .why = "here", .excluded = true});
  std::ofstream(folder / kSuspectsFile, std::ios::app) << "{\"node\":\"n";  // killed as it wrote
  const auto all = read_suspects(folder);
  ASSERT_EQ(all.size(), 3u);
  const auto now = excluded(all, 210, "2");
  ASSERT_EQ(now.size(), 2u);
  EXPECT_EQ(now[0].node, "n3");
  EXPECT_EQ(now[0].why, "second");
  EXPECT_EQ(now[1].node, "n4");
  EXPECT_EQ(excluded(all, 210, "3").size(), 1u);
  EXPECT_TRUE(excluded(all, 250, "3").empty());
}

TEST_F(Suspects, ASecondFindingExcludes) {
  add_suspect(folder, {.node = "n3", .since = 100, .until = 200, .job = "", .why = "killed", .excluded = false});
  const auto all = read_suspects(folder);
  EXPECT_TRUE(excluded(all, 150, "").empty());
  EXPECT_TRUE(repeated(all, "n3", 150, ""));
  EXPECT_FALSE(repeated(all, "n3", 250, ""));
  EXPECT_FALSE(repeated(all, "n1", 150, ""));
}

TEST_F(Suspects, ADamagedLineIsNamed) {
  std::ofstream(folder / kSuspectsFile) << "nonsense\n";
  try {
    read_suspects(folder);
    FAIL();
  } catch (const base::UserError& e) {
    EXPECT_NE(std::string(e.what()).find("suspects.jsonl\":1"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace kintsugi::jobs::suspects_test
