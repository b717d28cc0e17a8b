#include "app/fold.h"

#include <gtest/gtest.h>

#include "app/shell_word.h"

namespace kintsugi::app::fold_test {

TEST(Fold, BreaksAtSpaces) {
  EXPECT_EQ(fold("", 10, 2), "");
  EXPECT_EQ(fold("one two three four", 11, 2), "one two\n  three\n  four");
  EXPECT_EQ(fold("one two three four", 80, 2), "one two three four");
  EXPECT_EQ(fold("a = 1, b = 2, c = 3", 15, 2, FoldAt::commas), "a = 1, b = 2,\n  c = 3");
  EXPECT_EQ(fold("a = 1, b = 2, c = 3", 9, 2, FoldAt::commas), "a = 1,\n  b = 2,\n  c = 3");
  EXPECT_EQ(fold("averylongwordthatstays whole", 8, 2), "averylongwordthatstays\n  whole");
  EXPECT_EQ(fold("äöü äöü", 9, 2), "äöü äöü");  // seven characters
  EXPECT_EQ(fold("äöü äöü", 8, 2), "äöü\n  äöü");
}

TEST(ShellWord, IsQuotedWhereItMustBe) {
  EXPECT_EQ(shell_word("runs/first.toml"), "runs/first.toml");
  EXPECT_EQ(shell_word("train.betas=0.9,0.95"), "train.betas=0.9,0.95");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("my runs/a.toml"), "'my runs/a.toml'");
  EXPECT_EQ(shell_word("parallel.rules=embed in contract -> tensor"), "'parallel.rules=embed in contract -> tensor'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$HOME;ls"), "'$HOME;ls'");
  EXPECT_EQ(shell_word("~/run.toml"), "'~/run.toml'");
}

}  // namespace kintsugi::app::fold_test
