#include <gtest/gtest.h>

#include "kintsugi/comm/collective_cases.h"
#include "kintsugi/comm/device_harness.h"

namespace kintsugi::comm::device_groups_test {
namespace {

struct Ranks {
  int count = 0;
  std::optional<DeviceWay> way = {};  // as the environment says
};

class OnDevices : public testing::TestWithParam<Ranks> {
 protected:
  void expect_right(const std::function<std::string(World&)>& f) {
    const auto [count, way] = GetParam();
    EXPECT_EQ(on_devices(count, f, {}, false, way), Texts(static_cast<size_t>(count)));
  }
  void expect_right_in_world(const std::function<std::string(Communicator&)>& f) {
    expect_right([&](World& world) { return f(*world.group(cases::all_ranks(world.size()))); });
  }
};

TEST_P(OnDevices, ReductionsAreThoseOfOneThread) {
  expect_right_in_world([](Communicator& comm) {
    std::string wrong;
    for (const auto dtype : cases::kDTypes)
      for (const auto reduction : cases::kReductions)
        for (const size_t part : {0, 1, 37, 1'000}) wrong += cases::reductions(comm, part, dtype, reduction);
    return wrong;
  });
}

TEST_P(OnDevices, BytesGoWhereTheyShould) {
  expect_right_in_world([](Communicator& comm) {
    std::string wrong;
    for (const size_t bytes : {0, 1, 13, 150'001}) wrong += cases::movements(comm, bytes);
    return wrong;
  });
}

TEST_P(OnDevices, MessagesAndExchanges) {
  expect_right_in_world([](Communicator& comm) {
    std::string wrong = cases::exchanges(comm) + cases::many_sends(comm);
    if (!comm.backend().one_at_a_time) wrong += cases::messages(comm, 5, 3) + cases::messages(comm, 60, 10);
    return wrong;
  });
}

TEST_P(OnDevices, RandomCallsAndGroups) {
  expect_right_in_world([](Communicator& comm) { return cases::at_random(comm, 3, 40); });
  expect_right([](World& world) { return cases::group_options(world); });
}

constexpr DeviceWay kByHost = DeviceWay::by_host;

INSTANTIATE_TEST_SUITE_P(Ranks, OnDevices,
                         testing::Values(Ranks{2}, Ranks{3}, Ranks{4}, Ranks{2, kByHost}, Ranks{3, kByHost}),
                         [](const auto& p) {
                           return std::to_string(p.param.count) + (p.param.way == kByHost ? "ThroughTheHost" : "");
                         });

TEST(OnDevices, ARankThatNeverComesIsNamed) {
  const Texts said = on_devices(2,
                                [](World& world) {
                                  const auto group = world.group(cases::all_ranks(2));
                                  std::vector<std::byte> x(8);
                                  if (world.rank() == 0)
                                    group->wait(group->all_reduce(x, x, tensor::DType::f32, Reduction::sum));
                                  return std::string();
                                },
                                {.time_limit = std::chrono::milliseconds(300)});
  EXPECT_NE(said[0].find("rank 1"), std::string::npos) << said[0];
}

}  // namespace
}  // namespace kintsugi::comm::device_groups_test
