#include "kintsugi/calibrate/silent_world.h"

#include <algorithm>
#include <cstring>

namespace kintsugi::calibrate {
namespace {

using comm::Event;
using comm::Reduction;
using tensor::DType;

constexpr comm::Backend kSilent = {.name = "none", .ranks = comm::RankKind::thread, .adds_in_rank_order = true};

using Bytes = std::span<const std::byte>;
using Place = std::span<std::byte>;

// Fills results with repeated operands, so that caches have a realistic state.
Event repeat(Bytes in, Place out) {
  if (in.data() == out.data() || in.empty()) return {};
  for (size_t at = 0; at < out.size(); at += in.size()) {
    const size_t bytes = std::min(in.size(), out.size() - at);
    std::memmove(out.data() + at, in.data(), bytes);
  }
  return {};
}

// Fills with what a peer would send. The scalars of a run (loss, norm, finiteness) are 1, other values are small.
Event fill(Place out) {
  constexpr size_t kScalars = 64;
  if (out.size() > kScalars || out.size() % sizeof(double) != 0) {
    std::memset(out.data(), 0x3c, out.size());
    return {};
  }
  const double one = 1;
  for (size_t at = 0; at < out.size(); at += sizeof one) std::memcpy(out.data() + at, &one, sizeof one);
  return {};
}

class SilentCommunicator : public comm::Communicator {
 public:
  SilentCommunicator(int rank, int size) : rank_(rank), size_(size) {}

  const comm::Backend& backend() const override { return kSilent; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Event all_reduce(Bytes in, Place out, DType, Reduction) override { return repeat(in, out); }
  Event reduce(Bytes in, Place out, DType, Reduction, int) override { return repeat(in, out); }
  Event broadcast(Place data, int) override { return fill(data); }
  Event all_gather(Bytes in, Place out) override { return repeat(in, out); }
  Event reduce_scatter(Bytes in, Place out, DType, Reduction) override { return repeat(in, out); }
  Event scatter(Bytes, Place out, int) override { return fill(out); }
  Event gather(Bytes in, Place out, int) override { return repeat(in, out); }
  Event all_to_all(Bytes in, Place out) override { return repeat(in, out); }
  Event send(Bytes, int) override { return {}; }
  Event receive(Place data, int) override { return fill(data); }
  Event exchange(std::span<const comm::Message> messages) override {
    for (const comm::Message& m : messages)
      if (m.receives) fill(m.received);
    return {};
  }
  Event barrier() override { return {}; }
  void wait(Event) override {}

 private:
  const int rank_, size_;
};

class SilentWorld : public comm::World {
 public:
  SilentWorld(int rank, int size) : rank_(rank), size_(size) {}

  const comm::Backend& backend() const override { return kSilent; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<comm::Communicator> group(std::span<const int> ranks, const comm::GroupOptions&) override {
    const auto at = std::ranges::find(ranks, rank_) - ranks.begin();
    return std::make_unique<SilentCommunicator>(static_cast<int>(at), static_cast<int>(ranks.size()));
  }
  void abort(const std::string&) override {}

 private:
  const int rank_, size_;
};

}  // namespace

std::unique_ptr<comm::World> silent_world(int rank, int ranks) {
  return std::make_unique<SilentWorld>(rank, ranks);
}

}  // namespace kintsugi::calibrate
