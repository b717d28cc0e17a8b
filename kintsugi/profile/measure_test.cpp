// Two ranks with a sum over both and a message, with given times.
#include "kintsugi/profile/measure.h"

#include <gtest/gtest.h>

#include <limits>

#include "kintsugi/base/error.h"

namespace kintsugi::profile::measure_test {
namespace {

using program::Collective;
using program::Instruction;
using program::Kind;
using program::Program;

constexpr mesh::Factor kData = 0;

Instruction kernel(const std::string& name, double flops) {
  return {.kernel = name, .cost = {.flops = flops, .memory_bytes = 2 * flops}};
}

Instruction sum(int event) {
  return {.kind = Kind::collective,
          .collective = Collective::all_reduce,
          .phase = tensor::Phase::backward,
          .cost = {.wire_bytes = 1000},
          .group = {kData},
          .event = event};
}

Instruction message(Collective kind, int event, int64_t peer) {
  Instruction i = sum(event);
  i.collective = kind;
  i.phase = tensor::Phase::forward;
  i.peer = peer;
  i.channel = "forward.1 from 0";
  if (kind == Collective::receive) i.cost.wire_bytes = 0, i.outs = {0};
  return i;
}

// Rank 0 sends to rank 1, and both take part in a sum.
Program program_of(int rank) {
  const Instruction first = rank == 0 ? message(Collective::send, 1, 1) : message(Collective::receive, 1, 0);
  Program p;
  p.mesh = mesh::Mesh({{.name = "data", .size = 2}});
  p.stage = rank;
  p.buffers = {{.name = "x", .type = {{{"embed", 16}}, tensor::DType::f32}}};
  p.bodies = {{.name = "forward", .instructions = {first, kernel("add", 10), program::wait_for(first)}},
              {.name = "backward",
               .instructions = {sum(0), kernel("mul", 20), program::wait_for(sum(0))},
               .work = program::Work::backward}};
  p.lists = {{.calls = {{.body = 0, .micro_batch = 0}, {.body = 1, .micro_batch = 0}}}};
  return p;
}

// In microseconds of rank 0's clock.
struct Given {
  Interval whole, inputs;
  std::vector<InstructionTimes> instructions;
};

const std::vector<Given>& given() {
  static const std::vector<Given> kGiven = {
      {{0, 1000},
       {0, 20},
       {{20, 30, 30}, {40, 200, 210}, {210, 220, 220}, {230, 240, 240}, {240, 300, 310}, {310, 990, 990}}},
      {{0, 1000},
       {0, 0},
       {{10, 15, 15}, {15, 18, 18}, {18, 118, 118}, {600, 610, 610}, {610, 900, 900}, {900, 1000, 1000}}}};
  return kGiven;
}

StepTimes times_of(int rank, int64_t clock) {
  const auto time = [&](int64_t t) { return 1000 * t - clock; };
  const Given& g = given()[static_cast<size_t>(rank)];
  StepTimes times = {.whole = {time(g.whole.begin), time(g.whole.end)}};
  times.inputs = {{time(g.inputs.begin), time(g.inputs.end)}, {}};
  for (const InstructionTimes& t : g.instructions)
    times.instructions.push_back({time(t.begin), time(t.end), time(t.progressed)});
  return times;
}

// The clock of rank 1 is 7 ms behind, of which `known` is known.
std::vector<RankProfile> measured(int64_t known = 7'000'000, int steps = 1) {
  std::vector<Program> programs = {program_of(0), program_of(1)};
  std::vector<StepTimes> times = {times_of(0, 0), times_of(1, 7'000'000)};
  const std::vector<int64_t> offset = {0, known};
  std::vector<Measure> measures;
  std::vector<std::vector<int64_t>> told;
  for (int r = 0; r < 2; ++r) {
    const auto at = static_cast<size_t>(r);
    measures.emplace_back(programs[at], program::Step::train, r, true);
    told.push_back(arrivals_of(measures[at].started(), times[at], offset[at]));
  }
  const Arrivals arrivals(told);
  std::vector<RankProfile> profiles;
  for (int r = 0; r < 2; ++r) {
    const auto at = static_cast<size_t>(r);
    for (int step = 0; step < steps; ++step)
      measures[at].add(times[at], waits_of(programs[at], times[at], measures[at].started(), arrivals, r, offset[at]));
    profiles.push_back(measures[at].take());
  }
  return profiles;
}

double microseconds(const RankProfile& r, std::string_view operation, Part part) {
  double sum = 0;
  for (const OperationTime& o : r.operations)
    if (o.operation == operation && o.part == part) sum += 1e6 * o.seconds;
  return sum;
}

}  // namespace

TEST(Measure, WaitingEndsWhenTheLastMemberCame) {
  const std::vector<RankProfile> ranks = measured();
  const RankProfile &first = ranks[0], &second = ranks[1];
  // Rank 1 reached the sum at 600.
  EXPECT_NEAR(microseconds(first, "all_reduce", Part::waiting), 290, 1e-3);
  EXPECT_NEAR(microseconds(first, "all_reduce", Part::communication), 10 + 390, 1e-3);
  ASSERT_EQ(first.waits.size(), 1u);
  EXPECT_EQ(first.waits[0].rank, 1);
  EXPECT_NEAR(1e6 * first.waits[0].seconds, 290, 1e-3);
  EXPECT_EQ(microseconds(second, "all_reduce", Part::waiting), 0);
  EXPECT_NEAR(microseconds(second, "all_reduce", Part::communication), 110, 1e-3);
  // Rank 0 started to send at 20; the receive was posted at 10, and awaited from 18 on.
  EXPECT_NEAR(microseconds(second, "receive", Part::waiting), 2, 1e-3);
  EXPECT_NEAR(microseconds(second, "receive", Part::communication), 5 + 98, 1e-3);
  EXPECT_EQ(microseconds(first, "send", Part::waiting), 0);
  EXPECT_NEAR(microseconds(first, "add", Part::compute), 160, 1e-3);
  EXPECT_NEAR(microseconds(first, "moving transfers on", Part::communication), 20, 1e-3);
}

TEST(Measure, PartsAddUpToTheStep) {
  for (const RankProfile& r : measured()) {
    double sum = r.inputs + r.between;
    for (const OperationTime& o : r.operations) sum += o.seconds;
    EXPECT_NEAR(1e6 * sum, 1000, 1e-3);
    EXPECT_NEAR(1e6 * r.between, r.rank == 0 ? 10 + 10 + 10 : 10 + 482, 1e-3);
    EXPECT_NEAR(1e6 * r.inputs, r.rank == 0 ? 20 : 0, 1e-3);
    double instructions = 0, waiting = 0;
    for (const InstructionTime& i : r.instructions) instructions += i.seconds, waiting += i.waiting;
    EXPECT_NEAR(instructions,
                r.of(Part::compute) + r.of(Part::communication) + r.of(Part::waiting) -
                    1e-6 * microseconds(r, "moving transfers on", Part::communication),
                1e-12);
    EXPECT_NEAR(waiting, r.of(Part::waiting), 1e-12);
  }
}

TEST(Measure, TheMeanOfSteps) {
  const RankProfile one = measured()[0], three = measured(7'000'000, 3)[0];
  EXPECT_EQ(three.steps, 3);
  EXPECT_NEAR(three.seconds, one.seconds, 1e-12);
  EXPECT_NEAR(three.of(Part::waiting), one.of(Part::waiting), 1e-12);
  EXPECT_EQ(three.instructions[1].calls, 1);
  EXPECT_EQ(three.instructions[1].flops, 10);
}

TEST(Measure, AnotherClockWouldShowOtherWaits) {
  const std::vector<RankProfile> ranks = measured(0);
  EXPECT_EQ(microseconds(ranks[0], "all_reduce", Part::waiting), 0);
}

TEST(Measure, TransfersThatARankWaitedForAreTimed) {
  const std::vector<RankProfile> ranks = measured();
  ASSERT_EQ(ranks[1].transfers.size(), 2u);
  const TransferTime &receive = ranks[1].transfers[0], &sum = ranks[1].transfers[1];
  EXPECT_EQ(receive.operation, "receive");
  EXPECT_EQ(receive.over, "data");
  EXPECT_EQ(receive.timed, 1);
  EXPECT_EQ(receive.timed_bytes, 64);  // what it received
  EXPECT_NEAR(1e6 * receive.timed_seconds, 98, 1e-3);
  EXPECT_EQ(sum.calls, 1);
  EXPECT_EQ(sum.wire_bytes, 1000);
  EXPECT_EQ(sum.timed, 0);  // it computed while the sum was under way
  EXPECT_EQ(ranks[0].transfers[1].timed, 1);
  EXPECT_NEAR(1e6 * ranks[0].transfers[1].timed_seconds, 390, 1e-3);
}

TEST(Measure, TasksAreTheirKernels) {
  const RankProfile first = measured()[0];
  ASSERT_EQ(first.tasks.size(), 2u);
  EXPECT_EQ(first.tasks[0].work, "forward");
  EXPECT_NEAR(1e6 * first.tasks[0].seconds, 160, 1e-3);
  EXPECT_EQ(first.tasks[1].work, "backward");
  EXPECT_NEAR(1e6 * first.tasks[1].seconds, 60, 1e-3);
}

TEST(Measure, TheScheduleAsRun) {
  const RankProfile first = measured()[0];
  ASSERT_EQ(first.queues.size(), 2u);
  std::string text;
  for (const QueueBlocks& queue : first.queues)
    for (const Block& b : queue.blocks)
      text += fmt::format("{} {} {} {:.0f} {:.0f}\n", queue.queue, b.work, b.waited_for, 1e6 * b.begin, 1e6 * b.end);
  EXPECT_EQ(text,
            "compute inputs -1 0 20\n"
            "compute forward -1 20 30\n"
            "compute forward -1 40 210\n"
            "compute transfer -1 210 220\n"
            "compute backward -1 230 310\n"
            "compute waiting 1 310 600\n"
            "compute transfer -1 600 990\n"
            "data backward -1 600 990\n");
}

TEST(Measure, AShiftIsBetweenNeighbours) {
  Program p;
  p.mesh = mesh::Mesh({{.name = "context", .size = 5}});
  Instruction shift = sum(0);
  shift.collective = Collective::shift;
  p.bodies = {{.name = "forward", .instructions = {shift, sum(1)}}};
  p.lists = {{.calls = {{}}}};
  const std::vector<Started> started = started_by(p, program::Step::train, 0);
  EXPECT_EQ(started[0].members, (std::vector<int>{0, 1, 4}));
  EXPECT_EQ(started[1].members, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(started[0].key.channel, started[1].key.channel);
  EXPECT_EQ(started[1].key.number, 1u);
  EXPECT_EQ(started_by(p, program::Step::train, 3)[1].key, started[1].key);
}

TEST(Measure, AMemberThatDidNotCome) {
  const Program p = program_of(0);
  const std::vector<Started> started = started_by(p, program::Step::train, 0);
  const StepTimes times = times_of(0, 0);
  const Arrivals alone({arrivals_of(started, times, 0), {}});
  EXPECT_THROW(waits_of(p, times, started, alone, 0, 0), base::InternalError);
}

// On a device, where one launch executes two of three kernels.
TEST(Measure, ALaunchIsOneRow) {
  Program p;
  p.buffers = {{.name = "x", .type = {{{"embed", 16}}, tensor::DType::f32}}};
  p.bodies = {{.name = "forward", .instructions = {kernel("add", 10), kernel("mul", 20), kernel("mul", 30)}}};
  p.bodies[0].instructions[0].launch = 2;
  p.bodies[0].instructions[1].launch = 0;
  p.lists = {{.calls = {{.body = 0, .micro_batch = 0}}}};
  p.lists[0].order.joined = true;
  const StepTimes times = {
      .whole = {0, 900}, .inputs = {{0, 0}}, .instructions = {{0, 500, 500}, {500, 500, 500}, {500, 900, 900}}};
  const std::vector<std::vector<int64_t>> nobody(1);
  const auto measured = [&] {
    Measure measure(p, program::Step::train, 0, true);
    measure.add(times, waits_of(p, times, measure.started(), Arrivals(nobody), 0, 0));
    return measure.take();
  };
  const RankProfile joined = measured();
  ASSERT_EQ(joined.instructions.size(), 2u);
  EXPECT_EQ(joined.instructions[0].operation, "add");
  EXPECT_EQ(joined.instructions[0].launched, 2);
  EXPECT_EQ(joined.instructions[0].calls, 1);
  EXPECT_DOUBLE_EQ(joined.instructions[0].seconds, 500e-9);
  EXPECT_DOUBLE_EQ(joined.instructions[0].flops, 30);
  EXPECT_EQ(joined.instructions[1].at, 2);
  EXPECT_EQ(joined.instructions[1].launched, 1);
  ASSERT_EQ(joined.operations.size(), 2u);
  EXPECT_EQ(joined.operations[0].operation, "add");
  EXPECT_DOUBLE_EQ(joined.operations[0].flops, 30);
  EXPECT_EQ(joined.operations[1].calls, 1);
  // Exchange through the host separates them.
  p.lists[0].order.joined = false;
  EXPECT_EQ(measured().instructions.size(), 3u);
}

TEST(RankProfile, ComesBackFromItsFile) {
  std::vector<RankProfile> ranks = measured();
  const std::string text = to_json({.step = 12, .ranks = 2, .clocks = 3e-6}, {to_json(ranks[0]), to_json(ranks[1])});
  const StepProfile read = step_profile_of(text, "profile.json");
  EXPECT_EQ(read.step, 12);
  EXPECT_EQ(read.ranks, 2);
  EXPECT_EQ(read.clocks, 3e-6);
  ASSERT_EQ(read.of_ranks.size(), 2u);
  for (size_t r = 0; r < 2; ++r) EXPECT_EQ(to_json(read.of_ranks[r]), to_json(ranks[r]));
  EXPECT_EQ(to_json(rank_profile_of(to_json(ranks[1]), "a rank")), to_json(ranks[1]));
}

TEST(RankProfile, DamageIsNamed) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      step_profile_of(text, "runs/one/profile.json");
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string text = to_json({.step = 12, .ranks = 2}, {to_json(measured()[0])});
  EXPECT_EQ(error_of(text), "no error");
  EXPECT_EQ(error_of(text.substr(0, text.size() / 2)).substr(0, 35), "[profile] \"runs/one/profile.json\":2");
  std::string other = text;
  other.replace(other.find("\"waiting\""), 9, "\"resting\"");
  EXPECT_EQ(
      error_of(other),
      "[profile] \"runs/one/profile.json\":2: \"of_ranks[0].operations[1].part\" is \"resting\"; it should be compute, "
      "communication or waiting");
  EXPECT_EQ(error_of("{\"step\":1,\"ranks\":0,\"clocks\":0,\"of_ranks\":[]}"),
            "[profile] \"runs/one/profile.json\":1: \"ranks\" is 0; it should be a whole number from 1 to 2147483647");
  // The summed vector: two of these would not fit.
  RankProfile many;
  many.queues = {{.queue = "compute", .blocks = {}, .left_out = std::numeric_limits<int64_t>::max()}};
  EXPECT_EQ(error_of(to_json({.step = 12, .ranks = 1}, {to_json(many)})),
            "[profile] \"runs/one/profile.json\":2: \"of_ranks[0].queues[0].left_out\" is 9223372036854775807; it "
            "should be a whole number from -1 to 1000000000000000");
}

}  // namespace kintsugi::profile::measure_test
