#include "kintsugi/train/reward.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "kintsugi/base/error.h"

namespace kintsugi::train::reward_test {
namespace {

config::Grpo rewarding(std::string reward, std::string pattern = "", std::vector<std::string> program = {}) {
  config::Grpo grpo;
  grpo.reward = std::move(reward);
  grpo.pattern = std::move(pattern);
  grpo.program = std::move(program);
  return grpo;
}

config::Grpo by_program(const std::string& script, double timeout_seconds = 10) {
  config::Grpo grpo = rewarding("program", "", {"sh", "-c", script});
  grpo.timeout_seconds = timeout_seconds;
  return grpo;
}

std::string failure_of_program(const std::string& script, double timeout_seconds = 10) {
  try {
    const config::Grpo grpo = by_program(script, timeout_seconds);
    Reward reward(grpo);
    for (int i = 0; i < 3; ++i) reward.of("p", "a", "c");
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(Reward, ExactComparesTextsWithoutSpaceAround) {
  const config::Grpo grpo;
  Reward reward(grpo);
  EXPECT_EQ(reward.of("", "42", " 42\n"), 1);
  EXPECT_EQ(reward.of("", "42", "4 2"), 0);
  EXPECT_EQ(reward.of("", "", "  "), 1);
}

TEST(Reward, NumberComparesTheLastNumber) {
  EXPECT_EQ(last_number("it is 3 or 1,234.50."), 1234.5);
  EXPECT_EQ(last_number("x = -7"), -7);
  EXPECT_EQ(last_number("12, 13"), 13);
  EXPECT_EQ(last_number("no number, none."), std::nullopt);
  EXPECT_EQ(last_number(""), std::nullopt);
  const config::Grpo grpo = rewarding("number");
  Reward reward(grpo);
  EXPECT_EQ(reward.of("", "#### 1,080", "so we have 1080 eggs"), 1);
  EXPECT_EQ(reward.of("", "5", "5 then 6"), 0);
  EXPECT_EQ(reward.of("", "none", "none"), 0);
}

TEST(Reward, PatternHoldsTheRightAnswer) {
  const config::Grpo grpo = rewarding("pattern", "\\bis {answer}$");
  Reward reward(grpo);
  EXPECT_EQ(reward.of("", "3.5", "it is 3.5"), 1);
  EXPECT_EQ(reward.of("", "3.5", "it is 345"), 0);  // the point is a point
  EXPECT_EQ(reward.of("", "(", "it is ("), 1);
  EXPECT_EQ(reward.of("", "3", "it is \xff 3"), 0);  // not UTF-8
  const config::Grpo bad = rewarding("pattern", "(");
  EXPECT_THROW(Reward{bad}, base::UserError);
}

TEST(Reward, ProgramReadsALineAndPrintsANumber) {
  const config::Grpo grpo =
      by_program("n=0; while read -r line; do n=$((n + 1)); echo \"$n.5 \"; echo \"$line\" >&2; done");
  Reward reward(grpo);
  EXPECT_EQ(reward.of("p", "a", "c"), 1.5);
  EXPECT_EQ(reward.of("p\n\"", "a", "\xff"), 2.5);
  const config::Grpo parses = by_program(
      "while read -r line; do case $line in '{\"prompt\":\"p\",\"answer\":\"a\",\"completion\":\"c\\n\"}') echo 1;; "
      "*) echo -2e-1;; esac; done");
  Reward compares(parses);
  EXPECT_EQ(compares.of("p", "a", "c\n"), 1);
  EXPECT_EQ(compares.of("p", "a", "d"), -0.2);
}

TEST(Reward, ProgramThatFailsIsOneLine) {
  EXPECT_EQ(failure_of_program("read line; echo 1; read line; exit 3"),
            "[reward] grpo.program \"sh\" ended with code 3");
  EXPECT_EQ(failure_of_program("read line; kill -9 $$"), "[reward] grpo.program \"sh\" was ended by signal 9");
  EXPECT_EQ(failure_of_program("read line; echo nan; cat"),
            "[reward] grpo.program \"sh\" printed \"nan\" instead of a number");
  EXPECT_EQ(failure_of_program("read line; echo; cat"),
            "[reward] grpo.program \"sh\" printed \"\" instead of a number");
  EXPECT_EQ(failure_of_program("read line; echo 1 2; cat"),
            "[reward] grpo.program \"sh\" printed \"1 2\" instead of a number");
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(
      failure_of_program("read line; sleep 60", 0.2),
      "[reward] grpo.program \"sh\" printed no reward within 0.2 s (grpo.timeout_seconds); does it write each line "
      "at once?");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
  const config::Grpo missing = rewarding("program", "", {"no_such_program_here"});
  try {
    const Reward reward(missing);
    ADD_FAILURE();
  } catch (const base::UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              "[reward] grpo.program cannot start \"no_such_program_here\": No such file or directory");
  }
}

}  // namespace kintsugi::train::reward_test
