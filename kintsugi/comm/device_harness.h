// For tests: a world of threads whose groups execute on the emulated device, communicating in its streams or through
// the host.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/comm/device_groups.h"
#include "kintsugi/comm/thread_harness.h"
#include "kintsugi/comm/through_host.h"

namespace kintsugi::comm {

using Texts = std::vector<std::string>;

// Also synchronizes the stream in wait(). Memory of the emulated device is host memory, so tests of other backends
// apply.
class Waiting : public Communicator {
 public:
  using In = std::span<const std::byte>;
  using Out = std::span<std::byte>;
  Waiting(std::unique_ptr<device::Memory> sums, std::unique_ptr<device::Stream> compute,
          std::unique_ptr<Communicator> inner)
      : sums_(std::move(sums)), compute_(std::move(compute)), inner_(std::move(inner)) {}

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
  void progress() override { inner_->progress(); }
  void wait(Event event) override {
    inner_->wait(event);
    compute_->synchronize();
  }

 private:
  std::unique_ptr<device::Memory> sums_;  // backs options.sums
  std::unique_ptr<device::Stream> compute_;
  std::unique_ptr<Communicator> inner_;
};

class DeviceWorld : public World {
 public:
  // `in_rank_order` is set in the options of all groups.
  DeviceWorld(World& host, device::Device& device, DeviceWay way, bool in_rank_order)
      : host_(host), device_(device), way_(way), in_rank_order_(in_rank_order) {}
  const Backend& backend() const override { return host_.backend(); }
  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  std::unique_ptr<Communicator> group(std::span<const int> ranks, const GroupOptions& given) override {
    GroupOptions options = given;
    options.in_rank_order = in_rank_order_;
    std::unique_ptr<device::Memory> sums;
    if (in_rank_order_) sums = device_.allocate(int64_t{1} << 20);
    if (sums) options.sums = {sums->data(), static_cast<size_t>(sums->bytes())};
    auto compute = device_.stream();
    auto inner = way_ == DeviceWay::by_host
                     ? through_host(host_.group(ranks, options), device_, *compute, {.transfers = 2, .bytes = 64})
                     : group_on_device(way_, host_, device_, *compute, ranks, options);
    return std::make_unique<Waiting>(std::move(sums), std::move(compute), std::move(inner));
  }
  void abort(const std::string& reason) override { host_.abort(reason); }

 private:
  World& host_;
  device::Device& device_;
  DeviceWay way_;
  bool in_rank_order_;
};

inline Texts on_devices(int ranks, const std::function<std::string(World&)>& f, const WorldOptions& options = {},
                        bool in_rank_order = false, std::optional<DeviceWay> way = std::nullopt) {
  const auto device = device::open_device("emulated");
  return on_ranks(
      ranks,
      [&](World& host) {
        DeviceWorld world(host, *device, way ? *way : exchange_of(host, *device, true).way, in_rank_order);
        return f(world);
      },
      options);
}

}  // namespace kintsugi::comm
