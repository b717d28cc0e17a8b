#include <gtest/gtest.h>

#include <atomic>

#include "kintsugi/comm/collective_cases.h"
#include "kintsugi/comm/thread_harness.h"

namespace kintsugi::comm::threads_test {
namespace {

using Texts = std::vector<std::string>;

class OnRanks : public ::testing::TestWithParam<int> {
 protected:
  void expect_right(const std::function<std::string(World&)>& f) {
    EXPECT_EQ(on_ranks(GetParam(), f), Texts(GetParam()));
  }
  void expect_right_in_world(const std::function<std::string(Communicator&)>& f) {
    expect_right([&](World& world) { return f(*world.group(cases::all_ranks(world.size()))); });
  }
};

}  // namespace

TEST_P(OnRanks, ReductionsAreThoseOfOneThread) {
  expect_right_in_world([](Communicator& comm) {
    std::string wrong;
    for (const auto dtype : cases::kDTypes) {
      for (const auto reduction : cases::kReductions) {
        for (const size_t part : {0, 1, 37, 5'003}) wrong += cases::reductions(comm, part, dtype, reduction);
      }
    }
    return wrong;
  });
}

TEST_P(OnRanks, BytesGoWhereTheyShould) {
  expect_right_in_world([](Communicator& comm) {
    std::string wrong;
    for (const size_t bytes : {0, 1, 13, 150'001}) wrong += cases::movements(comm, bytes);
    return wrong;
  });
}

TEST_P(OnRanks, MessagesArriveInOrder) {
  expect_right_in_world([](Communicator& comm) {
    std::string wrong;
    for (const size_t bytes : {0, 3, 200'000}) wrong += cases::messages(comm, 5, bytes);
    return wrong + cases::messages(comm, 60, 10);
  });
}

TEST_P(OnRanks, Exchanges) {
  expect_right_in_world([](Communicator& comm) { return cases::exchanges(comm) + cases::many_sends(comm); });
}

TEST_P(OnRanks, GroupsForWhatTheirMembersNeed) {
  expect_right([](World& world) { return cases::group_options(world); });
}

TEST_P(OnRanks, ManyOperationsMayBeOpen) {
  expect_right_in_world([](Communicator& comm) {
    int64_t counts[700], want[700];
    for (int i = 0; i < 700; ++i) {
      counts[i] = i + comm.rank();
      want[i] = (2 * i + comm.size() - 1) * comm.size() / 2;
      const auto one = std::as_writable_bytes(std::span(&counts[i], 1));
      comm.all_reduce(one, one, tensor::DType::i64, Reduction::sum);
    }
    comm.wait(comm.barrier());
    return cases::compare("counts", std::as_bytes(std::span(counts)), std::as_bytes(std::span(want)));
  });
}

TEST_P(OnRanks, RandomCalls) {
  expect_right_in_world([](Communicator& comm) {
    std::string wrong;
    for (const uint64_t seed : {1, 2}) wrong += cases::at_random(comm, seed, 40);
    return wrong;
  });
}

INSTANTIATE_TEST_SUITE_P(Threads, OnRanks, ::testing::Values(1, 2, 3, 4, 8),
                         [](const auto& p) { return std::to_string(p.param); });

TEST(Threads, TwoAxesAtOnce) {
  for (const int ranks : {2, 4, 8}) {
    EXPECT_EQ(on_ranks(ranks, [](World& world) { return cases::two_axes(world, 50); }), Texts(ranks));
  }
}

// Large enough to bypass the caches.
TEST(Threads, MuchAtOnce) {
  EXPECT_EQ(on_ranks(2,
                     [](World& world) {
                       const auto comm = world.group(cases::all_ranks(2));
                       return cases::reductions(*comm, 2'200'001, tensor::DType::f32, Reduction::mean) +
                              cases::movements(*comm, 9'000'001);
                     }),
            Texts(2));
}

// Whoever waits performs posted operations: rank 1 waits for nothing until rank 0 has its result.
TEST(Threads, AWaitDoesNotNeedTheWaitsOfOthers) {
  std::atomic<bool> done = false;
  EXPECT_EQ(on_ranks(2,
                     [&](World& world) {
                       const auto comm = world.group(cases::all_ranks(2));
                       std::vector<std::byte> x(300'000);
                       const Event event = comm->all_reduce(x, x, tensor::DType::f32, Reduction::sum);
                       while (world.rank() == 1 && !done) std::this_thread::yield();
                       comm->wait(event);
                       done = true;
                       return std::string();
                     },
                     {.time_limit = std::chrono::seconds(20)}),
            Texts(2));
}

}  // namespace kintsugi::comm::threads_test
