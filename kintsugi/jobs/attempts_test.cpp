#include "kintsugi/jobs/attempts.h"

#include <gtest/gtest.h>

#include <fstream>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"

namespace kintsugi::jobs::attempts_test {
namespace {

namespace fs = std::filesystem;

class Attempts : public testing::Test {
 protected:
  Attempts() { fs::remove_all(folder); }
  ~Attempts() override { fs::remove_all(folder); }

  void begin(int64_t number, int64_t from) { add_begin(folder, attempt(number, from)); }
  void end(int64_t number, Outcome outcome, int64_t to, bool given_up = false) {
    Attempt a = attempt(number, 0);
    a.outcome = outcome;
    a.ended = 200;
    a.to = to;
    a.why = "why not";
    a.given_up = given_up;
    add_end(folder, a);
  }
  static Attempt attempt(int64_t number, int64_t from) {
    Attempt a;
    a.number = number;
    a.job = "12";
    a.began = 100;
    a.from = from;
    return a;
  }
  std::string refused(int64_t step, int64_t max_restarts = 100) const {
    const auto refusal = jobs::refusal(read_attempts(folder), step, max_restarts);
    return refusal ? (refusal->no_progress ? "no progress: " : "") + refusal->why : "";
  }

  const fs::path folder =
      fs::path(testing::TempDir()) /
      ("jobs_attempts_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(Attempts, AreReadAsTheyWereWritten) {
  EXPECT_TRUE(read_attempts(folder).empty());
  begin(1, 0);
  end(1, Outcome::stopped, 57);
  begin(2, 57);
  std::ofstream(folder / kAttemptsFile, std::ios::app) << "{\"attempt\":2,\"en";  // killed as it wrote
  const std::vector<Attempt> read = read_attempts(folder);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].job, "12");
  EXPECT_EQ(read[0].outcome, Outcome::stopped);
  EXPECT_EQ(read[0].to, 57);
  EXPECT_EQ(read[0].why, "why not");
  EXPECT_EQ(read[1].from, 57);
  EXPECT_EQ(read[1].outcome, Outcome::unknown);
}

TEST_F(Attempts, ADamagedLineIsNamed) {
  begin(1, 0);
  std::ofstream(folder / kAttemptsFile, std::ios::app) << "nonsense\n";
  try {
    read_attempts(folder);
    FAIL();
  } catch (const base::UserError& e) {
    EXPECT_NE(std::string(e.what()).find("attempts.jsonl\":2"), std::string::npos) << e.what();
  }
}

TEST_F(Attempts, TwoWithoutProgressAreTheLast) {
  EXPECT_EQ(refused(0), "");
  begin(1, 0);
  end(1, Outcome::failed, 0);
  EXPECT_EQ(refused(0), "");
  begin(2, 0);  // and was killed with its launcher
  EXPECT_EQ(refused(5), "");
  EXPECT_EQ(refused(0), "no progress: two attempts in a row ended without a new checkpoint, at step 0");
  end(2, Outcome::failed, 0, true);
  EXPECT_EQ(refused(0), "");  // somebody has mended it, and starts it again
}

TEST_F(Attempts, AnAttemptBetweenThatSavedCounts) {
  begin(1, 0);
  end(1, Outcome::failed, 0);
  begin(2, 0);
  end(2, Outcome::stopped, 10);
  begin(3, 10);
  end(3, Outcome::failed, 10);
  EXPECT_EQ(refused(10), "");
}

TEST_F(Attempts, AreLimited) {
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(refused(i, 2), "");
    begin(i, i);
    end(i, Outcome::failed, i + 1);
  }
  EXPECT_EQ(refused(4, 2), "2 restarts were made; launch.max_restarts allows more");
  begin(4, 4);
  end(4, Outcome::finished, 9);
  EXPECT_EQ(refused(9, 2), "");
}

}  // namespace
}  // namespace kintsugi::jobs::attempts_test
