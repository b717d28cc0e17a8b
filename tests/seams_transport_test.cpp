// Adds a transport in a few lines without changing a module: threads whose messages are counted and delayed, and which
// guarantees no order of additions.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "kintsugi/comm/transports.h"
#include "kintsugi/train/worlds.h"
#include "tests/forwarding_communicator.h"
#include "tests/same_bits.h"

namespace kintsugi::tests::seams_transport_test {
namespace {

constexpr comm::Backend kCounted = {.name = "counted", .ranks = comm::RankKind::thread};

struct Counts {
  std::array<std::atomic<size_t>, 2> operations = {}, bytes = {};  // [rank]
};

class CountedCommunicator : public ForwardingCommunicator {
 public:
  CountedCommunicator(std::unique_ptr<comm::Communicator> inner, Counts& counts, size_t rank)
      : ForwardingCommunicator(*inner), inner_(std::move(inner)), counts_(counts), rank_(rank) {}
  const comm::Backend& backend() const override { return kCounted; }

 protected:
  void enqueues(size_t bytes) override {
    if (++counts_.operations[rank_] % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300 * rank_));
    counts_.bytes[rank_] += bytes;
  }

 private:
  const std::unique_ptr<comm::Communicator> inner_;
  Counts& counts_;
  const size_t rank_;
};

class CountedWorld : public comm::World {
 public:
  CountedWorld(std::unique_ptr<comm::World> inner, Counts& counts) : inner_(std::move(inner)), counts_(counts) {}
  const comm::Backend& backend() const override { return kCounted; }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<comm::Communicator> group(std::span<const int> ranks, const comm::GroupOptions& options) override {
    return std::make_unique<CountedCommunicator>(inner_->group(ranks, options), counts_, static_cast<size_t>(rank()));
  }
  void abort(const std::string& reason) override { inner_->abort(reason); }

 private:
  const std::unique_ptr<comm::World> inner_;
  Counts& counts_;
};

comm::Transport counted(Counts& counts) {
  return {"counted", false, [&](int ranks, const comm::WorldOptions& options) {
            std::vector<std::unique_ptr<comm::World>> worlds;
            for (auto& inner : comm::thread_worlds(ranks, options))
              worlds.push_back(std::make_unique<CountedWorld>(std::move(inner), counts));
            return worlds;
          }};
}

config::Settings model_in(const std::string& layout) {
  config::Settings s = small_model("llama", "fp32");
  s.train.global_batch = 8;
  set_layout(s, layout);
  return s;
}

Bits bits_over(const comm::Transport& transport, const config::Settings& s) {
  train::LayoutRun run(s, std::nullopt, {}, transport.make);
  return {record(run, s, 2), run.states(program::StateKind::optimizer)};
}

}  // namespace

TEST(SeamsTransport, LayoutsRunOverOneOfATestsOwn) {
  for (const char* layout : {"data=2 zero=3", "tensor=2 sequence_parallel", "context=2 method=ring", "pipe=2"}) {
    Counts counts;
    const config::Settings s = model_in(layout);
    EXPECT_EQ(other_bits(bits_over(counted(counts), s), bits_of(s, 2)), "") << layout;
    EXPECT_GT(counts.operations[0], 0u) << layout;
    EXPECT_GT(counts.bytes[0], 0u) << layout;
    EXPECT_GT(counts.bytes[1], 0u) << layout;
  }
}

TEST(SeamsTransport, IsNamedInTheSettings) {
  Counts counts;
  const std::array list = {counted(counts)};
  config::Settings s = model_in("data=2");
  s.parallel.transport = "counted";
  const auto worlds = train::make_worlds(s, list);
  ASSERT_EQ(worlds.size(), 2u);
  EXPECT_EQ(worlds[1]->backend().name, "counted");
  s.parallel.transport = "mpi";
  EXPECT_EQ(error_of([&] { train::make_worlds(s, list); }),
            "[comm] unknown transport \"mpi\"; known transports: auto, counted");
}

TEST(SeamsTransport, ReproducibleAsksForAnOrderOfAdditions) {
  Counts counts;
  config::Settings s = model_in("data=2 reproducible=4");
  EXPECT_EQ(
      error_of([&] { bits_over(counted(counts), s); }),
      "[comm] reproducible = 4 needs sums in the order of ranks, which transport \"counted\" does not guarantee; leave "
      "it out, or use transport = \"threads\" or \"mpi\"");
}

}  // namespace kintsugi::tests::seams_transport_test
