#include "kintsugi/train/clock_offset.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/comm/thread_harness.h"
#include "tests/forwarding_communicator.h"

namespace kintsugi::train::clock_offset_test {
namespace {

// As if ranks were processes and the clock of rank 0 were ahead: its messages contain times.
class OtherClock : public tests::ForwardingCommunicator {
 public:
  OtherClock(comm::Communicator& inner, int64_t ahead) : ForwardingCommunicator(inner), ahead_(ahead) {
    backend_.ranks = comm::RankKind::process;
  }
  const comm::Backend& backend() const override { return backend_; }
  comm::Event send(In data, int to) override {
    std::memcpy(&time_, data.data(), sizeof time_);
    if (rank() == 0) time_ += ahead_;
    return ForwardingCommunicator::send(std::as_bytes(std::span(&time_, 1)), to);
  }

 private:
  comm::Backend backend_ = {.name = "test"};
  int64_t ahead_, time_ = 0;
};

std::vector<std::string> offsets(int64_t ahead) {
  return comm::on_ranks(3, [&](comm::World& world) -> std::string {
    const auto all = comm::group_of_all(world);
    OtherClock other(*all, ahead);
    const ClockOffset clock = clock_offset(other);
    if (world.rank() == 0) return clock.offset == 0 && clock.error == 0 ? "right" : "rank 0 has its own clock";
    if (clock.error <= 0) return "no error";
    const bool right = ahead == 0 ? clock.offset == 0 : std::abs(clock.offset - ahead) <= clock.error;
    return right ? "right" : fmt::format("offset {}, error {}", clock.offset, clock.error);
  });
}

}  // namespace

TEST(ClockOffset, IsFoundWithinItsError) {
  for (const int64_t ahead : {int64_t{7'000'000'000}, int64_t{-3'600'000'000'000}})
    EXPECT_EQ(offsets(ahead), (std::vector<std::string>{"right", "right", "right"})) << ahead;
}

TEST(ClockOffset, ClocksThatAgreeAreOne) {
  EXPECT_EQ(offsets(0), (std::vector<std::string>{"right", "right", "right"}));
}

TEST(ClockOffset, ThreadsHaveOneClock) {
  const auto said = comm::on_ranks(2, [](comm::World& world) -> std::string {
    const ClockOffset clock = clock_offset(*comm::group_of_all(world));
    return fmt::format("{} {}", clock.offset, clock.error);
  });
  EXPECT_EQ(said, (std::vector<std::string>{"0 0", "0 0"}));
}

}  // namespace kintsugi::train::clock_offset_test
