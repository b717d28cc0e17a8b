// Ranks that exchange by NCCL on the emulated device, with the stand-in: what is computed is as on one rank, and the
// library is called alike by all members.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "kintsugi/comm/collective_cases.h"
#include "kintsugi/comm/device_harness.h"
#include "kintsugi/comm/nccl/group.h"
#include "kintsugi/comm/step_capture.h"
#include "kintsugi/device/emulate.h"
#include "kintsugi/train/compare.h"
#include "kintsugi/train/random_samples.h"
#include "tests/layouts.h"
#include "tests/nccl/standin.h"

namespace kintsugi::tests::nccl_test {
namespace {

using nccl::Standin;

device::Stream& stream_of(void* native) {
  return *static_cast<device::Stream*>(native);
}

Standin& standin() {
  static Standin* const found = [] {
    ::setenv("KINTSUGI_CUDA_LIBRARIES", KINTSUGI_STANDINS, 1);
    ::setenv("KINTSUGI_DEVICE_GROUPS", "nccl", 1);
    void* library = ::dlopen(KINTSUGI_STANDINS "/libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    auto* get = reinterpret_cast<Standin* (*)()>(::dlsym(library, "kintsugi_nccl_standin"));
    get()->at_each_launch = [](void* stream, const std::function<void(void*)>& f) {
      device::emulate::at_each_launch(stream_of(stream), [f](device::Stream& in) { f(&in); });
    };
    get()->enqueue = [](void* stream, std::function<void()> work) {
      device::emulate::enqueue(stream_of(stream), std::move(work));
    };
    get()->all_until_here = [](void* stream) { return device::emulate::all_until_here(stream_of(stream)); };
    get()->not_yet = [] { throw device::emulate::NotYet(); };
    return get();
  }();
  return *found;
}

// Collectives that are never done if a device does those of all its communicators one after another, as it may where
// they take all of it: each needs all members to have come to it.
size_t never_done() {
  std::map<std::thread::id, size_t> next;
  for (bool moved = true; moved;) {
    moved = false;
    std::map<const void*, std::vector<std::thread::id>> here;
    for (const auto& [thread, called] : standin().order)
      if (next[thread] < called.size()) here[called[next[thread]].meeting].push_back(thread);
    for (const auto& [meeting, threads] : here) {
      if (threads.size() < standin().order.at(threads[0])[next[threads[0]]].members) continue;
      for (const std::thread::id& thread : threads) ++next[thread];
      moved = true;
    }
  }
  size_t left = 0;
  for (const auto& [thread, called] : standin().order) left += called.size() - next[thread];
  return left;
}

// Around every test of this program, those of comm too.
class WithTheStandin : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    standin().broken.clear();
    standin().order.clear();
    standin().collectives = standin().messages = standin().groups = standin().aborted = 0;
    standin().async_error = 0;
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    if (std::string_view(test.test_suite_name()) == "NcclStandin") return;
    EXPECT_EQ(standin().broken, std::vector<std::string>{});
    EXPECT_GT(standin().groups, 0);
  }
};

const bool added = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new WithTheStandin);
  return true;
}();

struct Case {
  std::string family, dtype, layout;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.family << " " << c.dtype << " " << c.layout;
}

class Nccl : public testing::TestWithParam<Case> {};

TEST_P(Nccl, Trains) {
  const auto& [family, dtype, layout] = GetParam();
  config::Settings s = small_model(family, dtype);
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  s.parallel.device = "cpu";
  set_layout(s, "device=emulated " + layout);
  s.model.layers = std::max<int64_t>(2, s.parallel.pipe * s.parallel.chunks);
  s.train.micro_batch /= s.parallel.data;
  const train::RandomSamples samples(s);
  const double tolerance = train::default_tolerance(s);
  const train::Comparison c = train::compare(
      {.settings = s, .data = samples, .steps = 4, .tolerance = tolerance, .loss_tolerance = tolerance / 10});
  EXPECT_EQ(c.first(), nullptr) << train::print(c);
  EXPECT_GT(standin().collectives + standin().messages, 0);
  EXPECT_EQ(standin().aborted, 0);
  EXPECT_EQ(never_done(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Nccl,
    testing::Values(
        Case{"gpt", "fp32", "data=2"}, Case{"gpt", "fp32", "data=2 zero=1"}, Case{"llama", "fp32", "data=2 zero=2"},
        Case{"llama", "bf16", "data=2 zero=3"}, Case{"gpt", "fp32", "tensor=2"},
        Case{"llama", "fp32", "tensor=2 sequence_parallel"}, Case{"gpt", "fp32", "context=2"},
        Case{"llama", "fp32", "context=2 method=ring"}, Case{"llama", "fp32", "context=2 method=ulysses"},
        Case{"gpt", "fp32", "pipe=2 schedule=gpipe"}, Case{"llama", "fp32", "pipe=2 schedule=1f1b"},
        Case{"gpt", "fp32", "pipe=2 schedule=interleaved chunks=2"}, Case{"gpt", "fp32", "pipe=2 schedule=zero_bubble"},
        Case{"llama", "fp32", "pipe=2 data=2 tensor=2"}, Case{"gpt", "fp16", "data=2 tensor=2 zero=2"},
        Case{"llama", "bf16", "context=2 tensor=2 zero=1"}, Case{"gpt", "fp32", "data=4 zero=3 shard_group=2"},
        Case{"gpt", "fp32", "data=2 context=2 zero=1"},
        Case{"llama", "fp32", "data=2 tensor=2 zero=3 sequence_parallel"}, Case{"gpt", "bf16", "data=2 wire=bf16"},
        Case{"llama", "fp32", "pipe=2 tensor=2 zero=1"}, Case{"gpt", "fp32", "data=2 tensor=2 context=2 method=ring"},
        Case{"gpt", "fp32", "data=2 reproducible=4"}, Case{"llama", "fp32", "data=2 zero=3 reproducible=2"}));

// Sums in the order of ranks: the bits are those of the processor's own groups.
TEST(NcclInRankOrder, ReductionsHaveTheBitsOfOneThread) {
  for (const int ranks : {2, 3, 4}) {
    const auto said = comm::on_devices(
        ranks,
        [&](comm::World& world) {
          const auto group = world.group(comm::cases::all_ranks(ranks));
          EXPECT_TRUE(group->backend().adds_in_rank_order);
          std::string wrong;
          for (const auto dtype : comm::cases::kDTypes)
            for (const auto reduction : comm::cases::kReductions)
              for (const size_t part : {0, 1, 37, 1'000})
                wrong += comm::cases::reductions(*group, part, dtype, reduction);
          return wrong + comm::cases::at_random(*group, 3, 40);
        },
        {}, true);
    EXPECT_EQ(said, comm::Texts(static_cast<size_t>(ranks)));
  }
}

// A device that stands still while all have enqueued their part: a rank that looks at it says so.
TEST(NcclErrors, ADeviceThatStandsStillIsNamed) {
  const auto device = device::open_device("emulated");
  const auto said = comm::on_ranks(2, [&](comm::World& world) {
    const auto compute = device->stream();
    const auto group = comm::nccl_group(world, *device, *compute, comm::cases::all_ranks(2),
                                        {.time_limit = std::chrono::milliseconds(20)});
    std::vector<std::byte> x(8);
    group->wait(group->all_reduce(x, x, tensor::DType::f32, comm::Reduction::sum));  // enqueued, and not done
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    group->progress();
    return std::string();
  });
  for (size_t rank = 0; rank < 2; ++rank)
    EXPECT_TRUE(said[rank].find("the device does not come to the end of all_reduce of 8 bytes within 0.02 s") !=
                    std::string::npos ||
                said[rank].find("rank " + std::to_string(1 - rank)) != std::string::npos)
        << said[rank];
  EXPECT_NE((said[0] + said[1]).find("the device does not come"), std::string::npos);
}

// Of a step that is launched as one, too.
TEST(NcclErrors, ACapturedStepThatStandsStillIsNamed) {
  const auto device = device::open_device("emulated");
  const auto memory = device->allocate(16);
  const auto said = comm::on_ranks(2, [&](comm::World& world) {
    const auto compute = device->stream();
    const auto group = comm::nccl_group(world, *device, *compute, comm::cases::all_ranks(2));
    const auto capture =
        comm::step_capture(comm::DeviceWay::nccl, &world, *device, *compute, std::chrono::milliseconds(20));
    EXPECT_EQ(capture->agree(comm::StepWay::capture), comm::StepWay::capture);
    EXPECT_EQ(capture->agree(world.rank() == 0 ? comm::StepWay::launch : comm::StepWay::enqueue),
              comm::StepWay::enqueue);
    capture->begin();
    compute->zero(memory->data() + 8 * world.rank(), 8);
    const auto graph = capture->end();
    capture->progress();
    capture->launch(graph.get());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::string error;
    try {
      capture->progress();
    } catch (const comm::Timeout& e) {
      error = e.what();
    }
    compute->synchronize();
    capture->progress();
    return error;
  });
  for (size_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(said[rank], "[comm] rank " + std::to_string(rank) +
                              " of 2: the device does not come to the end of a step within 0.02 s, which all have "
                              "launched; NCCL_DEBUG=WARN in the environment makes NCCL say more");
}

// An error between the devices is seen by whoever looks, and ends the group.
TEST(NcclErrors, AreSeenInAnyWait) {
  const auto said = comm::on_devices(2, [](comm::World& world) {
    const auto group = world.group(comm::cases::all_ranks(2));
    group->progress();
    group->wait(group->barrier());
    standin().async_error = 6;  // ncclRemoteError
    group->progress();
    return std::string();
  });
  for (const std::string& text : said)
    EXPECT_EQ(text,
              "[comm] NCCL failed in an operation: remote process exited or there was a network error; "
              "NCCL_DEBUG=WARN in the environment makes it say more");
}

TEST(NcclErrors, WhatWasNotWaitedForIsEnded) {
  const auto said = comm::on_devices(2,
                                     [](comm::World& world) {
                                       const auto group = world.group(comm::cases::all_ranks(2));
                                       std::vector<std::byte> x(8);
                                       if (world.rank() == 0)
                                         group->wait(group->all_reduce(x, x, tensor::DType::f32, comm::Reduction::sum));
                                       return std::string();
                                     },
                                     {.time_limit = std::chrono::milliseconds(300)});
  EXPECT_NE(said[0].find("rank 1"), std::string::npos) << said[0];
  EXPECT_EQ(standin().aborted, 1);
}

TEST(NcclStandin, SeesTwoOrdersOfTwoGroups) {
  const auto said = comm::on_devices(2, [](comm::World& world) {
    const auto a = world.group(comm::cases::all_ranks(2)), b = world.group(comm::cases::all_ranks(2));
    std::vector<std::byte> x(8), y(8);
    comm::Communicator &first = world.rank() == 0 ? *a : *b, &second = world.rank() == 0 ? *b : *a;
    const auto one = first.all_reduce(x, x, tensor::DType::f32, comm::Reduction::sum),
               other = second.all_reduce(y, y, tensor::DType::f32, comm::Reduction::sum);
    first.wait(one), second.wait(other);
    return std::string();
  });
  EXPECT_EQ(said, comm::Texts(2));
  EXPECT_EQ(never_done(), 4u);
}

// That the stand-in sees what it should.
TEST(NcclStandin, SeesCallsThatDoNotMatch) {
  const auto said = comm::on_devices(2, [](comm::World& world) {
    const auto group = world.group(comm::cases::all_ranks(2));
    std::vector<std::byte> x(8), y(16);
    if (world.rank() == 0)
      group->all_reduce(x, x, tensor::DType::f32, comm::Reduction::sum);
    else
      group->all_gather(x, y);
    return std::string();
  });
  ASSERT_EQ(standin().broken.size(), 1u);
  EXPECT_TRUE(standin().broken[0].ends_with("call different collectives")) << standin().broken[0];
}

}  // namespace
}  // namespace kintsugi::tests::nccl_test
