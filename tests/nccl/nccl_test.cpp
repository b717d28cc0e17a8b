// Ranks that communicate by NCCL on the emulated device, with the stand-in: results equal those of one rank, and all
// members call the library alike.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "kintsugi/comm/collective_cases.h"
#include "kintsugi/comm/device_harness.h"
#include "kintsugi/comm/nccl/group.h"
#include "kintsugi/comm/nccl/library.h"
#include "kintsugi/comm/step_capture.h"
#include "kintsugi/device/emulate.h"
#include "kintsugi/device/emulated/emulated.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/train/compare.h"
#include "kintsugi/train/layout_run.h"
#include "kintsugi/train/random_samples.h"
#include "tests/device_layouts.h"
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

// Finds operations that never start if a device starts the operations of all its communicators in enqueue order: each
// after those before it have started, and those of its communicator have ended. A collective blocks the device until it
// ends, as it may if it occupies all of it; a message does not.
size_t never_launched() {
  struct Rank {
    size_t next = 0;
    bool started = false;                               // that one, a collective
    std::map<const void*, const nccl::Launched*> last;  // of each communicator
  };
  std::map<std::thread::id, Rank> ranks;
  std::map<const void*, size_t> here;  // by meeting
  const auto ended = [&](const nccl::Launched& l) {
    return std::all_of(l.parts.begin(), l.parts.end(), [&](const auto& p) { return here[p.meeting] == p.members; });
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (const auto& [thread, all] : standin().order) {
      Rank& rank = ranks[thread];
      for (; rank.next < all.size(); ++rank.next, rank.started = false) {
        const nccl::Launched& l = all[rank.next];
        const nccl::Launched*& last = rank.last[l.communicator];
        if (!rank.started) {
          if (last != nullptr && !ended(*last)) break;
          for (const auto& part : l.parts) ++here[part.meeting];
          last = &l;
          rank.started = moved = true;
        }
        if (!l.message && !ended(l)) break;
      }
    }
  }
  size_t left = 0;
  for (const auto& [thread, all] : standin().order) left += all.size() - ranks[thread].next;
  return left;
}

// Wraps every test of this program, including those of comm.
class WithTheStandin : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    standin().broken.clear();
    standin().order.clear();
    standin().collectives = standin().messages = standin().groups = standin().aborted = standin().aborted_at_once = 0;
    standin().async_error = 0;
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    const std::string_view suite = test.test_suite_name();
    if (suite == "NcclStandin" || suite == "NcclVersions") return;
    if (suite == "Devices/RandomRuns") {
      EXPECT_EQ(never_launched(), 0u);
    }
    EXPECT_EQ(standin().broken, std::vector<std::string>{});
    // Groups through host memory need no NCCL communicator.
    if (std::string_view(test.name()).find("ThroughTheHost") == std::string_view::npos) {
      EXPECT_GT(standin().groups, 0);
    }
  }
};

const bool added = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new WithTheStandin);
  return true;
}();

class Nccl : public testing::TestWithParam<DeviceLayout> {};

TEST_P(Nccl, Trains) {
  const config::Settings s = settings_of(GetParam());
  const train::RandomSamples samples(s);
  const double tolerance = train::default_tolerance(s);
  const train::Comparison c = train::compare(
      {.settings = s, .data = samples, .steps = 4, .tolerance = tolerance, .loss_tolerance = tolerance / 10});
  EXPECT_EQ(c.first(), nullptr) << train::print(c);
  EXPECT_GT(standin().collectives + standin().messages, 0);
  EXPECT_EQ(standin().aborted, 0);
  EXPECT_EQ(never_launched(), 0u);
}

// The first step is enqueued, the second captured, and the third replayed; with inspected values all steps are
// enqueued.
TEST_P(Nccl, StepsThatAreCapturedHaveTheSameBits) {
  const config::Settings s = settings_of(GetParam());
  const auto losses = [&](bool looks) {
    train::LayoutRun run(s);
    for (int rank = 0; looks && rank < run.ranks(); ++rank) run.executor(rank).watch = [](const auto&) {};
    std::vector<double> all;
    for (int64_t step = 0; step < 4; ++step) {
      run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, step, m, batch); });
      all.push_back(run.loss());
    }
    for (int rank = 0; rank < run.ranks(); ++rank)
      EXPECT_EQ(run.executor(rank).captured(program::Step::train), !looks) << rank;
    return all;
  };
  EXPECT_EQ(losses(false), losses(true));
}

INSTANTIATE_TEST_SUITE_P(Models, Nccl, testing::ValuesIn(device_layouts()));

// Sums in rank order: the bits equal those of CPU groups.
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

// Their memory is part of the plan: nothing else is allocated.
TEST(NcclInRankOrder, TheMemoryIsThatOfThePlan) {
  using device::emulate::allocated;
  for (const DeviceLayout& l : device_layouts()) {
    const config::Settings s = settings_of(l);
    if (s.train.reproducible == 0) continue;
    const int64_t before = allocated().device;
    train::LayoutRun run(s);
    int64_t planned = 0;
    for (int rank = 0; rank < run.ranks(); ++rank) {
      const program::Program& p = run.executor(rank).program();
      EXPECT_GT(p.sums_bytes, 0);
      EXPECT_EQ(program::memory_table(p).total(), p.bytes());
      planned += p.bytes();
    }
    EXPECT_EQ(allocated().device - before, planned);
    for (int64_t step = 0; step < 3; ++step)
      run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, step, m, batch); });
    EXPECT_EQ(allocated().device - before, planned);
  }
}

// A device that stops making progress after all have enqueued: a rank that waits reports it.
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
    EXPECT_TRUE(said[rank].find("all_reduce of 8 bytes did not complete within 0.02 s") != std::string::npos ||
                said[rank].find("rank " + std::to_string(1 - rank)) != std::string::npos)
        << said[rank];
  EXPECT_NE((said[0] + said[1]).find(" did not complete within "), std::string::npos);
}

// Also of a captured step.
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
                              " of 2: the step did not complete within 0.02 s although all ranks launched it; "
                              "NCCL_DEBUG=WARN in the environment prints details");
}

// Depending on the versions of the library and of the driver's CUDA: whether operations of several groups start in
// enqueue order, which messages between stages need.
TEST(NcclVersions, DecideHowRanksExchange) {
  using comm::DeviceWay;
  using comm::nccl_or_host;
  struct Case {
    comm::nccl::Versions least;
    bool messages;
    DeviceWay way;
    bool captured;
    std::string_view says;
  };
  const Case cases[] = {
      {{22809, 13000, 13000}, true, DeviceWay::nccl, true, "through NCCL 2.28.9"},
      {{22809, 13000, 12040}, true, DeviceWay::nccl, true, "through NCCL 2.28.9"},
      {{22809, 12080, 12080}, true, DeviceWay::nccl, false, "CUDA 12.8; a step of several stages is launched"},
      {{22602, 13000, 12040}, true, DeviceWay::nccl, false, "2.26.2, built with CUDA 12.4, and a driver for CUDA 13.0"},
      {{22602, 13000, 12020},
       true,
       DeviceWay::by_host,
       false,
       "built with CUDA 12.2, and a driver for CUDA 13.0, ends"},
      {{22602, 13000, 0}, true, DeviceWay::by_host, false, "NCCL 2.26.2, built with an unknown CUDA, "},
      {{22602, 12000, 12040}, true, DeviceWay::by_host, false, "and a driver for CUDA 12.0, ends each operation"},
      {{22602, 12000, 12020}, false, DeviceWay::nccl, true, "through NCCL 2.26.2"},
      {{21805, 13000, 12020}, false, DeviceWay::by_host, false, "NCCL 2.18.5 starts several groups in no order"},
      {{0, 13000, 0}, false, DeviceWay::by_host, false, "NCCL (libnccl.so.2) is not found"}};
  for (const Case& c : cases) {
    const comm::Exchange e = nccl_or_host(c.least, c.messages);
    EXPECT_EQ(e.way, c.way) << c.says;
    EXPECT_EQ(e.captured, c.captured) << c.says;
    EXPECT_NE(e.said.find(c.says), std::string::npos) << e.said;
  }
}

// The CUDA version that the library was built with is only in a text within it.
TEST(NcclVersions, OfTheStandin) {
  standin();
  const comm::nccl::Library* const library = comm::nccl::library();
  ASSERT_NE(library, nullptr);
  EXPECT_EQ(library->version, 22809);
  EXPECT_EQ(library->cuda, 12090);
}

// An error between devices is seen by every waiting rank, and ends the group.
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
              "NCCL_DEBUG=WARN in the environment prints details");
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

// With several groups, none is aborted before the others: the device may be busy with any of them.
TEST(NcclErrors, AllGroupsAreEndedAtOnce) {
  const auto device = device::open_device("emulated");
  const auto said = comm::on_ranks(2, [&](comm::World& world) {
    const auto compute = device->stream();
    const auto all = comm::cases::all_ranks(2);
    const auto a = comm::nccl_group(world, *device, *compute, all), b = comm::nccl_group(world, *device, *compute, all);
    const std::array<comm::Communicator*, 2> groups = {a.get(), b.get()};
    comm::end_nccl_groups(groups);  // none has failed
    a->wait(a->barrier());
    standin().async_error = 6;
    EXPECT_THROW(a->progress(), base::UserError);
    comm::end_nccl_groups(groups);
    return std::string();
  });
  EXPECT_EQ(said, comm::Texts(2));
  EXPECT_EQ(standin().aborted, 4);
  EXPECT_EQ(standin().aborted_at_once, 4);
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
  EXPECT_EQ(never_launched(), 4u);
}

// A message blocked by an earlier one, and a peer that waits for a later one.
TEST(NcclStandin, SeesAMessageThatIsHeldBack) {
  for (const bool crossed : {false, true}) {
    standin().order.clear();
    const auto said = comm::on_devices(2, [&](comm::World& world) {
      const auto a = world.group(comm::cases::all_ranks(2)), b = world.group(comm::cases::all_ranks(2));
      std::vector<std::byte> x(8), y(8), z(8);
      std::vector<std::pair<comm::Communicator*, comm::Event>> all;
      const auto messages = [&] {
        for (std::vector<std::byte>* v : {&x, &y})
          all.emplace_back(a.get(), world.rank() == 0 ? a->send(*v, 1) : a->receive(*v, 0));
      };
      const bool first = world.rank() == 0 || !crossed;
      if (first) messages();
      all.emplace_back(b.get(), b->all_reduce(z, z, tensor::DType::f32, comm::Reduction::sum));
      if (!first) messages();
      for (const auto& [group, event] : all) group->wait(event);
      return std::string();
    });
    EXPECT_EQ(said, comm::Texts(2));
    EXPECT_EQ(never_launched(), crossed ? 5u : 0u);
  }
}

// The stand-in detects violations.
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
