#include "kintsugi/checkpoint/same.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "kintsugi/checkpoint/together.h"
#include "kintsugi/comm/run_ranks.h"

namespace kintsugi::checkpoint {
namespace {

// What f(group of all, rank) says on three ranks that are threads, each text once.
template <typename F>
std::set<std::string> said(const F& f) {
  const auto worlds = comm::thread_worlds(3, {.time_limit = std::chrono::seconds(20)});
  std::mutex mutex;
  std::set<std::string> texts;
  comm::run_ranks(worlds, [&](comm::World& world) {
    const auto all = everyone(world);
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

TEST(Everyone, IsAllRanksInTheirOrder) {
  EXPECT_EQ(
      said([](comm::Communicator& all, int rank) { return fmt::format("{} of {}", all.rank() - rank, all.size()); }),
      (std::set<std::string>{"0 of 3"}));
}

TEST(TextOfLeader, IsThatOfRank0) {
  const auto leader = [](const std::string& mine) {
    return said([&](comm::Communicator& all, int rank) { return text_of_leader(all, rank == 0 ? mine : "another"); });
  };
  EXPECT_EQ(leader("first"), (std::set<std::string>{"first"}));
  EXPECT_EQ(leader(""), (std::set<std::string>{""}));
}

TEST(RequireSame, NamesTheFirstRankAndTheFirstLineThatDiffer) {
  const auto compare = [](const std::string& first, const std::string& second, const std::string& third) {
    return said([&](comm::Communicator& all, int rank) {
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

}  // namespace kintsugi::checkpoint
