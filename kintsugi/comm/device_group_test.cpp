#include "kintsugi/comm/device_group.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "kintsugi/comm/collective_cases.h"
#include "kintsugi/comm/device_harness.h"
#include "kintsugi/comm/step_capture.h"
#include "kintsugi/device/emulated/emulated.h"

namespace kintsugi::comm::device_group_test {
namespace {

// Ranks that share a device see each other's requests.
TEST(OnOneDevice, CallsThatDoNotMatch) {
  const Texts said = on_devices(2, [](World& world) {
    const auto group = world.group(cases::all_ranks(2));
    std::vector<std::byte> x(8), y(16);
    group->wait(world.rank() == 0 ? group->all_reduce(x, x, tensor::DType::f32, Reduction::sum)
                                  : group->all_gather(x, y));
    return std::string();
  });
  EXPECT_NE((said[0] + said[1]).find("calls all_reduce of 8 bytes (sum of fp32), another all_gather"),
            std::string::npos)
      << said[0] << "\n"
      << said[1];
}

// The operations that three ranks enqueue, some for each other, are captured once and replayed by each launch.
TEST(OnOneDevice, ACaptureOfAllRanks) {
  constexpr int kRanks = 3;
  const auto device = device::open_device("emulated");
  const auto memory = device->allocate(256 * kRanks);
  const Texts said = on_ranks(kRanks, [&](World& world) {
    const auto compute = device->stream();
    const auto group = device_group(world, *device, *compute, cases::all_ranks(kRanks));
    const auto capture = step_capture(DeviceWay::shared, &world, *device, *compute, std::chrono::milliseconds(60'000));
    const std::span<std::byte> own(memory->data() + 256 * world.rank(), sizeof(float));
    const auto pinned = device->allocate_pinned(sizeof(float));
    auto* const given = reinterpret_cast<float*>(pinned->data());
    const auto enqueue = [&] {
      compute->copy(own.data(), pinned->data(), sizeof(float));
      group->wait(group->all_reduce(own, own, tensor::DType::f32, Reduction::sum));
      group->wait(group->all_reduce(own, own, tensor::DType::f32, Reduction::sum));
    };
    enqueue();
    capture->begin();
    enqueue();
    const auto graph = capture->end();
    std::string wrong = (graph != nullptr) == (world.rank() == 0) ? "" : "another rank has the graph";
    for (int launch = 0; launch < 3; ++launch) {
      compute->synchronize();
      *given = static_cast<float>(world.rank() + launch);
      capture->launch(graph.get());
      compute->synchronize();
      float sum = 0;
      std::memcpy(&sum, own.data(), sizeof sum);
      if (sum != static_cast<float>(3 * (3 + 3 * launch))) wrong += fmt::format("{} at launch {}; ", sum, launch);
    }
    return wrong;
  });
  EXPECT_EQ(said, Texts(kRanks));
}

// Around a ring, each rank forwards what it just received, directly or by a sum, while one of them is late.
TEST(OnOneDevice, WhatIsPassedOnHasBeenReceived) {
  constexpr int kRanks = 4;
  for (const bool after_sum : {false, true}) {
    const Texts said = on_devices(kRanks, [&](World& world) {
      const auto group = world.group(cases::all_ranks(kRanks));
      const int me = world.rank(), left = (me + kRanks - 1) % kRanks, right = (me + 1) % kRanks;
      float own = static_cast<float>(me), passed = -1, got = -1;
      const auto bytes = [](float& x) { return std::as_writable_bytes(std::span(&x, 1)); };
      if (me == 2) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (after_sum) {
        group->all_reduce(bytes(own), bytes(passed), tensor::DType::f32, Reduction::sum);
      } else {
        group->exchange(std::array{Message::from(right, bytes(passed)), Message::to(left, bytes(own))});
      }
      const Event last =
          group->exchange(std::array{Message::from(right, bytes(got)), Message::to(left, bytes(passed))});
      group->wait(last);
      const float want = after_sum ? 6 : static_cast<float>((me + 2) % kRanks);
      return got == want ? "" : fmt::format("rank {} has {} and not {}", me, got, want);
    });
    EXPECT_EQ(said, Texts(kRanks));
  }
}

// For one rank at a time, so that no other waits.
TEST(OnOneDevice, AnOperationWaitsForTheRankUnlessItIsTold) {
  const auto device = device::open_device("emulated");
  const auto memory = device->allocate(128);
  const Texts said = on_ranks(1, [&](World& world) {
    const auto compute = device->stream();
    const auto group = device_group(world, *device, *compute, cases::all_ranks(1));
    const auto waits = [&] {
      compute->zero(memory->data() + 64, 64);
      const int64_t before = device::emulate::waits().all;
      const std::span<std::byte> own(memory->data(), 4);
      const Event event = group->all_reduce(own, own, tensor::DType::f32, Reduction::sum);
      const int64_t made = device::emulate::waits().all - before;
      group->wait(event);
      return made;
    };
    std::string all = fmt::format("{}", waits());
    group->next_waits(false);
    all += fmt::format(" {}", waits());
    return all + fmt::format(" {}", waits());
  });
  EXPECT_EQ(said, Texts({"1 0 1"}));
}

TEST(OnOneDevice, ARankThatDoesNotComeToACapturedStepIsNamed) {
  const auto device = device::open_device("emulated");
  const Texts said = on_ranks(2,
                              [&](World& world) {
                                const auto compute = device->stream();
                                const auto capture = step_capture(DeviceWay::shared, &world, *device, *compute,
                                                                  std::chrono::milliseconds(60'000));
                                if (world.rank() == 0) capture->agree(StepWay::launch);
                                return std::string();
                              },
                              {.time_limit = std::chrono::milliseconds(300)});
  EXPECT_NE(said[0].find("rank 0: at the beginning of a list of calls: "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("rank 1"), std::string::npos) << said[0];
}

}  // namespace
}  // namespace kintsugi::comm::device_group_test
