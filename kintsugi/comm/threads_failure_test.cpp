#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/collective_cases.h"
#include "kintsugi/comm/thread_harness.h"

namespace kintsugi::comm::threads_failure_test {
namespace {

using Texts = std::vector<std::string>;
using std::chrono::milliseconds;

const WorldOptions kShort = {.time_limit = milliseconds(600)};

std::unique_ptr<Communicator> everyone(World& world) {
  return world.group(cases::all_ranks(world.size()));
}

}  // namespace

TEST(ThreadsFail, ACollectiveThatOneRankDoesNotReach) {
  std::atomic<int> right = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto said = on_ranks(
      4,
      [&](World& world) -> std::string {
        const auto comm = everyone(world);
        if (world.rank() == 2) {
          std::this_thread::sleep_for(milliseconds(1500));  // too late: what the others posted may be gone
        }
        std::vector<std::byte> x(4096);
        try {
          comm->wait(comm->all_reduce(x, x, tensor::DType::f32, Reduction::sum));
        } catch (const Timeout& error) {
          right += error.arrived == std::vector{0, 1, 3} && error.missing == std::vector{2};
          return error.what();
        }
        return "done";
      },
      kShort);
  EXPECT_EQ(said, Texts(4,
                        "[comm] all_reduce of 4096 bytes among ranks 0 1 2 3 did not end within 0.6 s: ranks 0 1 3 "
                        "arrived, rank 2 did not"));
  EXPECT_EQ(right, 4);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(ThreadsFail, AGroupIsNamedByRanksOfTheWorld) {
  const auto said = on_ranks(
      4,
      [&](World& world) -> std::string {
        if (world.rank() == 0 || world.rank() == 2) return "";
        const auto comm = world.group(std::vector{3, 1});
        if (comm->rank() == 0) comm->wait(comm->barrier());
        std::this_thread::sleep_for(milliseconds(900));
        return "";
      },
      kShort);
  EXPECT_EQ(said[3], "[comm] barrier among ranks 3 1 did not end within 0.6 s: rank 3 arrived, rank 1 did not");
}

TEST(ThreadsFail, AMessageThatNobodyTakesOrSends) {
  for (const bool send : {true, false}) {
    const auto said = on_ranks(
        3,
        [&](World& world) -> std::string {
          const auto comm = everyone(world);
          std::vector<std::byte> x(12);
          if (world.rank() == 1) comm->wait(send ? comm->send(x, 2) : comm->receive(x, 2));
          comm->wait(comm->barrier());
          return "";
        },
        kShort);
    const std::string barrier =
        "[comm] barrier among ranks 0 1 2 did not end within 0.6 s: ranks 0 2 arrived, rank 1 did not";
    const std::string message =
        send ? "[comm] send of 12 bytes from rank 1 to rank 2" : "[comm] receive of 12 bytes from rank 2 to rank 1";
    EXPECT_EQ(said, (Texts{barrier, message + " did not end within 0.6 s: rank 1 arrived, rank 2 did not", barrier}));
  }
}

TEST(ThreadsFail, AnExchangeThatOneRankDoesNotJoin) {
  const auto said = on_ranks(
      3,
      [&](World& world) -> std::string {
        const auto comm = everyone(world);
        std::vector<std::byte> x(12), y(12);
        if (world.rank() == 0) comm->wait(comm->exchange(std::array{Message::to(1, x)}));
        if (world.rank() == 1) comm->wait(comm->exchange(std::array{Message::from(0, x), Message::from(2, y)}));
        comm->wait(comm->barrier());
        return "";
      },
      kShort);
  const std::string barrier =
      "[comm] barrier among ranks 0 1 2 did not end within 0.6 s: ranks 0 2 arrived, rank 1 did not";
  EXPECT_EQ(said, (Texts{barrier,
                         "[comm] receive of 12 bytes from rank 2 to rank 1 did not end within 0.6 s: rank 1 arrived, "
                         "rank 2 did not",
                         barrier}));
}

TEST(ThreadsFail, TooManyOpenOperationsForARankThatNeverComes) {
  const auto said = on_ranks(
      2,
      [&](World& world) -> std::string {
        const auto comm = everyone(world);
        if (world.rank() == 1) std::this_thread::sleep_for(milliseconds(1200));
        std::vector<std::byte> x(1);
        for (int i = 0; world.rank() == 0 && i < 65; ++i) comm->send(x, 1);
        comm->wait(comm->barrier());
        return "";
      },
      kShort);
  // Each names the operation that it waits for itself.
  EXPECT_EQ(said,
            (Texts{"[comm] send of 1 bytes from rank 0 to rank 1 did not end within 0.6 s: rank 0 arrived, rank 1 "
                   "did not",
                   "[comm] barrier among ranks 0 1 did not end within 0.6 s: rank 1 arrived, rank 0 did not"}));
}

TEST(ThreadsFail, ARankThatEndsEndsTheWaitsOfAll) {
  const auto start = std::chrono::steady_clock::now();
  const auto said = on_ranks(4, [&](World& world) -> std::string {
    const auto comm = everyone(world);
    if (world.rank() == 2) throw base::UserError("data", "the file is gone");
    std::vector<std::byte> x(64);
    try {
      comm->wait(comm->all_gather(std::span(x).first(16), x));
    } catch (const Timeout& error) {
      comm->wait(comm->barrier());  // and later ones too
    }
    return "done";
  });
  const std::string why = "[comm] rank 2 ended: [data] the file is gone";
  EXPECT_EQ(said, (Texts{why, why, "[data] the file is gone", why}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(ThreadsFail, ARankThatLeavesWhatItBegan) {
  const auto said = on_ranks(2, [&](World& world) -> std::string {
    const auto comm = everyone(world);
    std::vector<std::byte> x(64);
    if (world.rank() == 1) {
      comm->broadcast(x, 0);
      return "";
    }
    comm->wait(comm->barrier());
    return "done";
  });
  // Rank 0 waits for an operation that does not match rank 1's: it gets one error or the other, whichever is first.
  EXPECT_TRUE(said[0] == "[comm] rank 1 ended: it left before its broadcast of 64 bytes among ranks 0 1 was done" ||
              said[0] == "[comm] internal error: rank 0 calls barrier, rank 1 broadcast of 64 bytes (root 0)")
      << said[0];
}

TEST(ThreadsFail, CallsThatDoNotMatch) {
  struct Case {
    std::function<Event(Communicator&, std::span<std::byte>)> first, second;
    std::string text;
  };
  using tensor::DType;
  const auto sum = [](size_t bytes, DType dtype, Reduction reduction) {
    return [=](Communicator& c, std::span<std::byte> x) {
      return c.all_reduce(x.first(bytes), x.first(bytes), dtype, reduction);
    };
  };
  const auto broadcast = [](int root) {
    return [=](Communicator& c, std::span<std::byte> x) { return c.broadcast(x.first(8), root); };
  };
  const std::vector<Case> cases = {
      {sum(8, DType::f32, Reduction::sum), [](Communicator& c, std::span<std::byte>) { return c.barrier(); },
       "all_reduce of 8 bytes (sum of fp32), rank 1 barrier"},
      {sum(8, DType::f32, Reduction::sum), sum(16, DType::f32, Reduction::sum),
       "all_reduce of 8 bytes (sum of fp32), rank 1 all_reduce of 16 bytes (sum of fp32)"},
      {sum(8, DType::f32, Reduction::sum), sum(8, DType::i32, Reduction::sum),
       "all_reduce of 8 bytes (sum of fp32), rank 1 all_reduce of 8 bytes (sum of int32)"},
      {sum(8, DType::bf16, Reduction::max), sum(8, DType::bf16, Reduction::mean),
       "all_reduce of 8 bytes (max of bf16), rank 1 all_reduce of 8 bytes (mean of bf16)"},
      {broadcast(0), broadcast(2), "broadcast of 8 bytes (root 0), rank 1 broadcast of 8 bytes (root 2)"},
  };
  for (const Case& c : cases) {
    const auto said = on_ranks(3, [&](World& world) -> std::string {
      const auto comm = everyone(world);
      std::vector<std::byte> x(16);
      try {
        comm->wait((world.rank() == 1 ? c.second : c.first)(*comm, x));
      } catch (const base::InternalError& error) {
        return error.what();
      }
      return "done";
    });
    EXPECT_EQ(said, Texts(3, "[comm] internal error: rank 0 calls " + c.text));
  }
}

TEST(ThreadsFail, AMessageOfAnotherLength) {
  const auto said = on_ranks(2, [&](World& world) -> std::string {
    const auto comm = everyone(world);
    std::vector<std::byte> x(16);
    try {
      comm->wait(world.rank() == 0 ? comm->receive(x, 1) : comm->send(std::span(x).first(5), 0));
    } catch (const base::InternalError& error) {
      return error.what();
    }
    return "done";
  });
  EXPECT_EQ(said, Texts(2, "[comm] internal error: rank 1 calls send of 5 bytes, rank 0 receive of 16 bytes"));
}

TEST(ThreadsFail, GroupsThatAreNotMade) {
  auto said = on_ranks(
      3,
      [&](World& world) -> std::string {
        if (world.rank() == 1) return "";
        everyone(world);
        return "";
      },
      kShort);
  const std::string timeout =
      "[comm] making the group of ranks 0 1 2 did not end within 0.6 s: ranks 0 2 arrived, rank 1 did not";
  EXPECT_EQ(said, (Texts{timeout, "", timeout}));

  std::atomic<bool> first = false;
  said = on_ranks(3, [&](World& world) -> std::string {
    try {
      if (world.rank() == 0) {
        first = true;
        world.group(std::vector{0, 1});
      } else if (world.rank() == 1) {
        while (!first) std::this_thread::yield();
        std::this_thread::sleep_for(milliseconds(50));
        world.group(std::vector{0, 1, 2});
      }
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "";
  });
  const std::string disagreement =
      "[comm] ranks do not agree on a group: rank 0 asks for ranks 0 1, rank 1 for ranks 0 1 2";
  EXPECT_EQ(said, (Texts{disagreement, disagreement, ""}));
}

TEST(ThreadsFail, MoreThanTheGroupIsFor) {
  const auto said = on_ranks(2, [](World& world) -> std::string {
    const auto comm = world.group(std::vector{0, 1}, {.collectives = 0, .messages = 2});
    std::vector<std::byte> x(12);
    try {
      if (world.rank() == 0) comm->barrier();
      const Message message = Message::to(0, x);
      if (world.rank() == 1) comm->exchange(std::array{message, message, message});
    } catch (const base::InternalError& error) {
      return error.what();
    }
    return "";
  });
  EXPECT_EQ(said, (Texts{"[comm] internal error: barrier in a group for messages alone",
                         "[comm] internal error: 3 messages at once in a group for 2"}));
}

TEST(ThreadsFail, WrongWorldsAndGroups) {
  const auto text_of = [](const std::function<void()>& f) -> std::string {
    try {
      f();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(text_of([] { thread_worlds(0); }), "[comm] 0 ranks; at least 1 is needed");
  EXPECT_EQ(text_of([] { thread_worlds(1, {.time_limit = milliseconds(0)}); }),
            "[comm] a time limit of 0 s; every wait needs some, as 600 s");
  const auto worlds = thread_worlds(3);
  EXPECT_EQ(text_of([&] {
              worlds[0]->group(std::vector{0, 3});
            }),
            "[comm] internal error: a group of ranks 0 3 in a world of 3");
  EXPECT_EQ(text_of([&] {
              worlds[0]->group(std::vector{0, 0});
            }),
            "[comm] internal error: a group of ranks 0 0 in a world of 3");
  EXPECT_EQ(text_of([&] {
              worlds[0]->group(std::vector{1, 2});
            }),
            "[comm] internal error: rank 0 asks for a group of ranks 1 2");
}

}  // namespace kintsugi::comm::threads_failure_test
