#include "kintsugi/comm/step_capture.h"

#include <fmt/format.h>

#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/timeout_message.h"

namespace kintsugi::comm {
namespace {

// An open capture would keep its work alive.
void drop_capture(device::Stream& compute) {
  try {
    compute.end_capture();
  } catch (const std::exception&) {  // the capture was incomplete
  }
}

class Alone : public StepCapture {
 public:
  explicit Alone(device::Stream& compute) : compute_(compute) {}

  StepWay agree(StepWay own) override { return own; }
  void begin() override { compute_.begin_capture(); }
  std::unique_ptr<device::Graph> end() override { return compute_.end_capture(); }
  void drop() override { drop_capture(compute_); }
  void launch(device::Graph* graph) override { compute_.launch(*graph); }

 protected:
  device::Stream& compute_;
};

// Host-side rendezvous of all ranks of a world.
class Meeting {
 public:
  explicit Meeting(World& world) : rank_(world.rank()), size_(world.size()) {
    std::vector<int> all(static_cast<size_t>(size_));
    std::iota(all.begin(), all.end(), 0);
    group_ = world.group(all, {.collectives = 2, .messages = 0});
    ways_.resize(static_cast<size_t>(size_));
  }

  int rank() const { return rank_; }
  int size() const { return size_; }
  StepWay agree(StepWay own) {
    wait(group_->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(ways_))));
    for (const StepWay way : ways_)
      if (way != own) return StepWay::enqueue;
    return own;
  }
  void meet() { wait(group_->barrier()); }
  std::unique_ptr<Communicator>& group() { return group_; }

 private:
  void wait(Event event) {
    try {
      group_->wait(event);
    } catch (const Timeout& e) {
      throw_timeout_of(rank_, "at the beginning of a list of calls", e);
    }
  }

  const int rank_, size_;
  std::unique_ptr<Communicator> group_;
  std::vector<StepWay> ways_;
};

// Each rank has its own device and captures its own part; the communication library joins the parts.
class OnOwnDevices : public Alone {
 public:
  OnOwnDevices(World& world, device::Device& device, device::Stream& compute, std::chrono::milliseconds time_limit)
      : Alone(compute), meeting_(world), time_limit_(time_limit), done_(device.event()) {}

  StepWay agree(StepWay own) override { return meeting_.agree(own); }
  void launch(device::Graph* graph) override {
    Alone::launch(graph);
    compute_.record(*done_);
    launched_ = Clock::now();
  }
  void progress() override {
    if (done_->done() || Clock::now() - launched_ < time_limit_) return;
    throw Timeout(fmt::format("rank {} of {}: the step did not complete within {:g} s although all ranks launched it; "
                              "NCCL_DEBUG=WARN in the environment prints details",
                              meeting_.rank(), meeting_.size(), std::chrono::duration<double>(time_limit_).count()),
                  {}, {});
  }

 private:
  using Clock = std::chrono::steady_clock;

  Meeting meeting_;
  const std::chrono::milliseconds time_limit_;
  const std::unique_ptr<device::Event> done_;
  Clock::time_point launched_ = {};
};

// Ranks are threads that share a device. One capture holds the work of all: it begins in the stream of rank 0, the
// others join it through an event, and rank 0 waits for all of them at the end. Launches do the same.
class OnOneDevice : public StepCapture {
 public:
  OnOneDevice(World& world, device::Device& device, device::Stream& compute) : meeting_(world), compute_(compute) {
    if (meeting_.rank() == 0) {
      shared_ = std::make_shared<Shared>();
      shared_->begun = device.event();
      for (int rank = 0; rank < meeting_.size(); ++rank) shared_->here.push_back(device.event());
    }
    const std::shared_ptr<Shared>* address = &shared_;
    Communicator& group = *meeting_.group();
    group.wait(group.broadcast(std::as_writable_bytes(std::span(&address, 1)), 0));
    if (meeting_.rank() != 0) shared_ = *address;
    meeting_.meet();
  }

  StepWay agree(StepWay own) override { return meeting_.agree(own); }
  void begin() override {
    meeting_.meet();  // until here ranks may enqueue work outside the capture
    if (leads()) {
      compute_.begin_capture();
      compute_.record(*shared_->begun);
    }
    meeting_.meet();
    if (!leads()) compute_.wait(*shared_->begun);
  }
  std::unique_ptr<device::Graph> end() override {
    gather();
    std::unique_ptr<device::Graph> graph;
    if (leads()) graph = compute_.end_capture();
    meeting_.meet();
    return graph;
  }
  void drop() override {
    if (leads()) drop_capture(compute_);
  }
  void launch(device::Graph* graph) override {
    gather();
    if (leads()) {
      compute_.launch(*graph);
      compute_.record(*shared_->begun);
    }
    meeting_.meet();
    if (!leads()) compute_.wait(*shared_->begun);
  }

 private:
  // Written by a rank only between two rendezvous; the others read it after the second.
  struct Shared {
    std::unique_ptr<device::Event> begun;
    std::vector<std::unique_ptr<device::Event>> here;  // [rank]: completes all work that the rank had enqueued
  };

  bool leads() const { return meeting_.rank() == 0; }
  // Makes the stream of rank 0 wait for all work that the others had enqueued.
  void gather() {
    if (!leads()) compute_.record(*shared_->here[static_cast<size_t>(meeting_.rank())]);
    meeting_.meet();
    if (!leads()) return;
    for (size_t rank = 1; rank < shared_->here.size(); ++rank) compute_.wait(*shared_->here[rank]);
  }

  Meeting meeting_;
  device::Stream& compute_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::unique_ptr<StepCapture> step_capture(DeviceWay way, World* world, device::Device& device, device::Stream& compute,
                                          std::chrono::milliseconds time_limit) {
  if (world == nullptr || world->size() == 1) return std::make_unique<Alone>(compute);
  switch (way) {
    case DeviceWay::shared:
      return std::make_unique<OnOneDevice>(*world, device, compute);
    case DeviceWay::nccl:
      return std::make_unique<OnOwnDevices>(*world, device, compute, time_limit);
    case DeviceWay::by_host:
      break;
  }
  throw base::InternalError("comm", "what goes through the host is not captured");
}

}  // namespace kintsugi::comm
