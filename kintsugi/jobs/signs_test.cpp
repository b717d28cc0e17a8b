#include "kintsugi/jobs/signs.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <optional>

#include "kintsugi/base/file.h"

namespace kintsugi::jobs::signs_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Signs : public testing::Test {
 protected:
  Signs() {
    fs::remove_all(folder);
    base::make_folders(folder);
  }
  ~Signs() override { fs::remove_all(folder); }

  template <typename F>
  static bool within(std::chrono::seconds limit, const F& f) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
      if (f()) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }
  void write(int rank, const std::string& text) const { std::ofstream(folder / rank_sign(rank)) << text; }

  const fs::path folder = fs::path(testing::TempDir()) / ("jobs_signs_" + std::to_string(getpid()));
};

TEST_F(Signs, AreRewrittenAndRemoved) {
  const fs::path path = folder / rank_sign(3);
  {
    const SignWriter writer({.path = path, .host = "n1"});
    ASSERT_TRUE(within(10s, [&] { return fs::exists(path); }));
    const std::string first = base::read_file(path);
    EXPECT_TRUE(within(10s, [&] { return base::read_file(path) != first; }));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(Signs, ARankThatStopsIsNamed) {
  SignWatch watch(folder, 300ms);
  write(0, "000000000001 n1\n");
  write(1, "000000000001 n2\n");
  write(2, "000000000001 n2\n");
  EXPECT_EQ(watch.look(), "");
  int count = 1;
  std::string line;
  ASSERT_TRUE(within(10s, [&] {
    write(0, std::to_string(1'000'000'000'000 + ++count) + " n1\n");
    write(1, std::to_string(1'000'000'000'000 + count) + " n2\n");
    line = watch.look();
    return !line.empty();
  }));
  EXPECT_EQ(line.rfind("no sign of life from rank 2 on n2 for ", 0), 0u) << line;
}

TEST_F(Signs, ANodeOfWhichAllRanksStopIsNamed) {
  SignWatch watch(folder, 300ms);
  write(0, "000000000001 n1\n");
  write(1, "000000000001 n2\n");
  write(2, "000000000001 n2\n");
  int count = 1;
  std::string line;
  ASSERT_TRUE(within(10s, [&] {
    write(0, std::to_string(1'000'000'000'000 + ++count) + " n1\n");
    line = watch.look();
    return !line.empty();
  }));
  EXPECT_EQ(line.rfind("no sign of life from any rank on n2 for ", 0), 0u) << line;
  EXPECT_NE(line.find(" (ranks 1 2)"), std::string::npos) << line;
  remove_signs(folder);
  EXPECT_EQ(watch.look(), "");
}

// A node that is down is reported long before the limit, and one that responds is not.
TEST_F(Signs, ANodeThatDoesNotRespondIsNamedSoon) {
  std::atomic<bool> up = true;
  const auto responds = [&](const std::string& address, auto) { return address == "10.0.0.1" || up; };
  SignWatch watch(folder, 60s, responds);
  int count = 1;
  const auto sign = [&](int rank, const char* node, const char* address) {
    write(rank, std::to_string(1'000'000'000'000 + ++count) + " " + node + " " + address + " 000000000001\n");
  };
  sign(1, "n2", "10.0.0.2");
  sign(2, "n2", "10.0.0.2");
  sign(3, "n3", "10.0.0.3");
  const auto looks = [&](std::chrono::seconds limit) {
    std::string line;
    within(limit, [&] {
      sign(0, "n1", "10.0.0.1");
      sign(3, "n3", "10.0.0.3");
      line = watch.look();
      return !line.empty();
    });
    return line;
  };
  EXPECT_EQ(looks(5s), "");
  up = false;
  const std::string line = looks(20s);
  EXPECT_EQ(line.rfind("no sign of life from any rank on n2 for ", 0), 0u) << line;
  EXPECT_NE(line.find(" s (ranks 1 2), and the node does not respond"), std::string::npos) << line;
}

TEST_F(Signs, ALauncherThatIsGoneIsNoticed) {
  std::ofstream(folder / kLauncherSign) << "000000000001 \n";
  std::atomic<int> lost = 0;
  const SignWriter writer({.path = folder / rank_sign(0),
                           .host = "n1",
                           .watched = folder / kLauncherSign,
                           .limit = 500ms,
                           .lost = [&](double) { ++lost; }});
  EXPECT_TRUE(within(20s, [&] { return lost == 1; }));
}

// A rank learns that the launcher ended its attempt, and not that it ended an earlier one.
TEST_F(Signs, AnAttemptIsEnded) {
  SignWriter launcher({.path = folder / kLauncherSign, .host = ""});
  launcher.end_attempt(1);
  std::atomic<int> ended = 0;
  const SignWriter rank({.path = folder / rank_sign(0),
                         .host = "n1",
                         .watched = folder / kLauncherSign,
                         .limit = 60s,
                         .attempt = 2,
                         .ended = [&] { ++ended; }});
  const auto written = [&] { return base::read_file(folder / rank_sign(0)).substr(0, 12); };
  ASSERT_TRUE(within(10s, [&] { return fs::exists(folder / rank_sign(0)) && written() > "000000000000"; }));
  EXPECT_EQ(ended, 0);
  launcher.end_attempt(2);
  EXPECT_TRUE(within(10s, [&] { return ended == 1; }));
  SignWatch watch(folder, 60s);
  EXPECT_EQ(watch.look(), "");
  EXPECT_EQ(watch.node_of(0), "n1");
}

}  // namespace
}  // namespace kintsugi::jobs::signs_test
