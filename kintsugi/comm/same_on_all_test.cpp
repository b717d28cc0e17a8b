#include "kintsugi/comm/same_on_all.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/run_ranks.h"

namespace kintsugi::comm::same_on_all_test {
namespace {

// The result of f(group of all, rank) on three ranks as threads, each text once.
template <typename F>
std::set<std::string> said(const F& f) {
  const auto worlds = thread_worlds(3, {.time_limit = std::chrono::seconds(20)});
  std::mutex mutex;
  std::set<std::string> texts;
  run_ranks(worlds, [&](World& world) {
    const auto all = group_of_all(world);
    std::string text;
    try {
      text = f(*all, world.rank());
    } catch (const SharedError& error) {
      text = error.what();
    }
    const std::lock_guard lock(mutex);
    texts.insert(text);
  });
  return texts;
}

}  // namespace

TEST(GroupOfAll, IsAllRanksInTheirOrder) {
  EXPECT_EQ(said([](Communicator& all, int rank) { return fmt::format("{} of {}", all.rank() - rank, all.size()); }),
            (std::set<std::string>{"0 of 3"}));
}

TEST(TextOfRank0, IsTheSameOnAll) {
  const auto text_of_first = [](const std::string& mine) {
    return said([&](Communicator& all, int rank) { return text_of_rank_0(all, rank == 0 ? mine : "another"); });
  };
  EXPECT_EQ(text_of_first("first"), (std::set<std::string>{"first"}));
  EXPECT_EQ(text_of_first(""), (std::set<std::string>{""}));
}

TEST(RequireSame, NamesTheFirstRankAndTheFirstLineThatDiffer) {
  const auto compare = [](const std::string& first, const std::string& second, const std::string& third) {
    return said([&](Communicator& all, int rank) {
      require_same(all, "here", "plan", rank == 0 ? first : rank == 1 ? second : third);
      return std::string("the same");
    });
  };
  const auto error = [](const std::string& what) {
    return std::set<std::string>{"[here] " + what + "; start all ranks with one"};
  };
  EXPECT_EQ(compare("a\nb\n", "a\nb\n", "a\nb\n"), (std::set<std::string>{"the same"}));
  EXPECT_EQ(compare("a\nb\n", "a\nb\n", "a\nc\n"),
            error("rank 2 has another plan than rank 0: \"c\" instead of \"b\""));
  EXPECT_EQ(compare("a", "x", "y"), error("rank 1 has another plan than rank 0: \"x\" instead of \"a\""));
  EXPECT_EQ(compare("a\nb", "a", "a"), error("rank 1 has another plan than rank 0: \"\" instead of \"b\""));
}

}  // namespace kintsugi::comm::same_on_all_test
