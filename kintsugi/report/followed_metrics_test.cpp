#include "kintsugi/report/followed_metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"

namespace kintsugi::report::followed_metrics_test {
namespace {

namespace fs = std::filesystem;

class Followed : public ::testing::Test {
 protected:
  Followed() {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  ~Followed() override { fs::remove_all(folder); }

  void append(const std::string& text) const { std::ofstream(path, std::ios::app) << text; }

  fs::path folder = fs::temp_directory_path() / ("kintsugi_followed_" + std::to_string(::getpid()));
  fs::path path = folder / "metrics.jsonl";
  FollowedMetrics metrics{path};
};

}  // namespace

TEST_F(Followed, WhatIsNewIsRead) {
  EXPECT_FALSE(metrics.read());
  EXPECT_FALSE(metrics.exists());
  append("{\"step\":1}\n{\"step\":2}\n{\"st");
  EXPECT_TRUE(metrics.read());
  EXPECT_TRUE(metrics.exists());
  EXPECT_EQ(metrics.table().last_step, 2);
  EXPECT_FALSE(metrics.read());
  append("ep\":3}\n");
  EXPECT_TRUE(metrics.read());
  EXPECT_EQ(metrics.table().last_step, 3);
}

// As a resumed run does: replaces the file, without the last steps.
TEST_F(Followed, AFileInItsPlaceIsReadAnew) {
  append("{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":3}\n");
  EXPECT_TRUE(metrics.read());
  base::write_file_atomically(path, "{\"step\":1,\"loss\":1}\n");
  append("{\"step\":2,\"loss\":7}\n{\"step\":3,\"loss\":8}\n{\"step\":4,\"loss\":9}\n");
  EXPECT_TRUE(metrics.read());
  EXPECT_EQ(metrics.table().measure("loss").values, (std::vector<double>{1, 7, 8, 9}));
}

TEST_F(Followed, AFileThatWasCutIsReadAnew) {
  append("{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":3}\n");
  EXPECT_TRUE(metrics.read());
  fs::resize_file(path, 20);
  EXPECT_TRUE(metrics.read());
  EXPECT_EQ(metrics.table().last_step, 1);
  append("{\"step\":2,\"loss\":7}\n");
  EXPECT_TRUE(metrics.read());
  EXPECT_EQ(metrics.table().measure("loss").values, (std::vector<double>{1, 7}));
  // Truncated, and longer than before at the next look.
  append("{\"step\":3,\"loss\":3}\n");
  EXPECT_TRUE(metrics.read());
  fs::resize_file(path, 20);
  append("{\"step\":2,\"loss\":5}\n{\"step\":3,\"loss\":6}\n{\"step\":3,\"loss\":6}\n{\"step\":4,\"loss\":4}\n");
  EXPECT_TRUE(metrics.read());
  EXPECT_EQ(metrics.table().measure("loss").values, (std::vector<double>{1, 5, 6, 4}));
  EXPECT_FALSE(metrics.read());
}

TEST_F(Followed, WhatCannotBeReadIsAnError) {
  fs::create_directory(path);
  try {
    metrics.read();
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_EQ(std::string(error.what()), "[metrics] \"" + path.string() + "\" is not a regular file; move it away");
  }
}

}  // namespace kintsugi::report::followed_metrics_test
