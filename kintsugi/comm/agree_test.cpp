// Ranks that fail, and the errors of the others.
#include "kintsugi/comm/agree.h"

#include <gtest/gtest.h>

#include <new>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/run_ranks.h"

namespace kintsugi::comm::agree_test {
namespace {

// The errors of 3 ranks that run `f` together, by rank.
template <typename F>
std::vector<std::string> errors(const F& f) {
  std::vector<std::string> texts(3);
  const auto worlds = thread_worlds(3, {.time_limit = std::chrono::seconds(20)});
  run_ranks(worlds, [&](World& world) {
    const auto all = world.group(std::vector<int>{0, 1, 2});
    try {
      together(*all, [&] { f(world.rank()); });
    } catch (const base::UserError& error) {
      texts[static_cast<size_t>(world.rank())] = error.what();
    }
    together(*all, [] {});  // they go on together
  });
  return texts;
}

std::vector<std::string> three(const std::string& text) {
  return {text, text, text};
}

}  // namespace

TEST(Together, AllOrOneErrorForAll) {
  EXPECT_EQ(errors([](int) {}), three(""));
  EXPECT_EQ(errors([](int rank) {
              if (rank > 0) throw base::UserError("file", "cannot write {}", rank);
            }),
            three("[file] rank 1: cannot write 1"));
  EXPECT_EQ(errors([](int) { throw base::UserError("file", "there is no \"a\""); }), three("[file] there is no \"a\""));
  EXPECT_EQ(
      errors([](int rank) {
        if (rank == 2) throw std::bad_alloc();
      }),
      three("[memory] rank 2: the system has no more memory; a smaller model, micro_batch or sequence needs less"));
}

TEST(Together, OneRankSaysItAsItIs) {
  const auto all = self_communicator();
  try {
    together(*all, [] { throw base::UserError("file", "{{}}"); });
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(), "[file] {}");
  }
}

TEST(OfRank0, IsTheSameOnAll) {
  const auto worlds = thread_worlds(3, {.time_limit = std::chrono::seconds(20)});
  std::vector<int64_t> got(3);
  run_ranks(worlds, [&](World& world) {
    const auto all = world.group(std::vector<int>{0, 1, 2});
    got[static_cast<size_t>(world.rank())] = of_rank_0(*all, 7 + world.rank());
  });
  EXPECT_EQ(got, (std::vector<int64_t>{7, 7, 7}));
}

}  // namespace kintsugi::comm::agree_test
