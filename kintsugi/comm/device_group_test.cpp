#include "kintsugi/comm/device_group.h"

#include <gtest/gtest.h>

#include "kintsugi/comm/collective_cases.h"
#include "kintsugi/comm/thread_harness.h"

namespace kintsugi::comm::device_group_test {
namespace {

using Texts = std::vector<std::string>;

// What was waited for is done when the host has waited for the stream too; and the memory of the emulated device is the
// host's. So every test of the other backends is one of this.
class Waiting : public Communicator {
 public:
  using In = std::span<const std::byte>;
  using Out = std::span<std::byte>;
  Waiting(std::unique_ptr<device::Stream> compute, std::unique_ptr<Communicator> inner)
      : compute_(std::move(compute)), inner_(std::move(inner)) {}

  const Backend& backend() const override { return inner_->backend(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Event all_reduce(In in, Out out, tensor::DType d, Reduction r) override { return inner_->all_reduce(in, out, d, r); }
  Event reduce(In in, Out out, tensor::DType d, Reduction r, int root) override {
    return inner_->reduce(in, out, d, r, root);
  }
  Event broadcast(Out data, int root) override { return inner_->broadcast(data, root); }
  Event all_gather(In in, Out out) override { return inner_->all_gather(in, out); }
  Event reduce_scatter(In in, Out out, tensor::DType d, Reduction r) override {
    return inner_->reduce_scatter(in, out, d, r);
  }
  Event scatter(In in, Out out, int root) override { return inner_->scatter(in, out, root); }
  Event gather(In in, Out out, int root) override { return inner_->gather(in, out, root); }
  Event all_to_all(In in, Out out) override { return inner_->all_to_all(in, out); }
  Event send(In data, int to) override { return inner_->send(data, to); }
  Event receive(Out data, int from) override { return inner_->receive(data, from); }
  Event exchange(std::span<const Message> messages) override { return inner_->exchange(messages); }
  Event barrier() override { return inner_->barrier(); }
  void wait(Event event) override {
    inner_->wait(event);
    compute_->synchronize();
  }

 private:
  std::unique_ptr<device::Stream> compute_;
  std::unique_ptr<Communicator> inner_;
};

class DeviceWorld : public World {
 public:
  DeviceWorld(World& host, device::Device& device) : host_(host), device_(device) {}
  const Backend& backend() const override { return host_.backend(); }
  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  std::unique_ptr<Communicator> group(std::span<const int> ranks, const GroupOptions& options) override {
    auto compute = device_.stream();
    auto inner = device_group(host_, device_, *compute, ranks, options);
    return std::make_unique<Waiting>(std::move(compute), std::move(inner));
  }
  void abort(const std::string& reason) override { host_.abort(reason); }

 private:
  World& host_;
  device::Device& device_;
};

Texts on_devices(int ranks, const std::function<std::string(World&)>& f, const WorldOptions& options = {}) {
  const auto device = device::open_device("emulated");
  return on_ranks(
      ranks,
      [&](World& host) {
        DeviceWorld world(host, *device);
        return f(world);
      },
      options);
}

class OnDevices : public testing::TestWithParam<int> {
 protected:
  void expect_right(const std::function<std::string(World&)>& f) {
    EXPECT_EQ(on_devices(GetParam(), f), Texts(static_cast<size_t>(GetParam())));
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
    return cases::messages(comm, 5, 3) + cases::messages(comm, 60, 10) + cases::exchanges(comm) +
           cases::many_sends(comm);
  });
}

TEST_P(OnDevices, RandomCallsAndGroups) {
  expect_right_in_world([](Communicator& comm) { return cases::at_random(comm, 3, 40); });
  expect_right([](World& world) { return cases::group_options(world); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, OnDevices, testing::Values(2, 3, 4),
                         [](const auto& p) { return std::to_string(p.param); });

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

TEST(OnDevices, CallsThatDoNotMatch) {
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

}  // namespace
}  // namespace kintsugi::comm::device_group_test
