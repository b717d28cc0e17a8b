#include "kintsugi/comm/transports.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"

namespace kintsugi::comm::transports_test {

TEST(Transports, AreChosenByNameOrByWhoStartedTheProcess) {
  EXPECT_EQ(choose(transports(), "threads", true).name, "threads");
  EXPECT_EQ(choose(transports(), "mpi", false).name, "mpi");
  EXPECT_EQ(choose(transports(), "auto", false).name, "threads");
  EXPECT_EQ(choose(transports(), "auto", true).name, "mpi");
  try {
    choose(transports(), "tcp", false);
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(), "[comm] unknown transport \"tcp\"; known transports: auto, threads, mpi");
  }
}

TEST(Transports, OneRankNeedsNoThreads) {
  const Transport& threads = choose(transports(), "threads", false);
  const auto one = threads.make(1, {}), two = threads.make(2, {});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0]->backend().ranks, RankKind::single);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[1]->backend().ranks, RankKind::thread);
  EXPECT_EQ(two[1]->rank(), 1);
}

}  // namespace kintsugi::comm::transports_test
