// Hand-made programs with times that can be added on paper.
#include "kintsugi/simulate/simulate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kintsugi/base/error.h"
#include "kintsugi/plan/schedule.h"
#include "kintsugi/plan/schedule_timeline.h"
#include "kintsugi/simulate/small_cluster_test.h"

namespace kintsugi::simulate::simulate_test {

using program::Body;
using program::Collective;
using program::Instruction;
using program::Kind;
using program::Program;

// A kernel of this many seconds, at ten bytes each.
Instruction kernel(double seconds) {
  Instruction i;
  i.kernel = "add";
  i.cost.memory_bytes = 10 * seconds;
  return i;
}

// Stages of a schedule in which a forward pass takes 1 second and a backward pass `backward`, with messages of `bytes`
// between chunks, one device per stage. Each receive is posted one call before its use.
class Pipeline {
 public:
  Pipeline(const plan::Schedule& schedule, double backward, double bytes)
      : schedule_(schedule), backward_(backward), bytes_(bytes) {}

  std::vector<Program> programs() const {
    std::vector<Program> stages;
    for (int s = 0; s < schedule_.stages; ++s) stages.push_back(stage(s));
    return stages;
  }

 private:
  // For a kind of task: bodies that post its receive, and that do its work.
  struct Bodies {
    int receive = -1, work = 0;
  };

  Program stage(int s) const {
    Program p;
    p.mesh = mesh::Mesh({{.name = "pipe", .size = schedule_.stages, .cuts_layers = true}});
    p.stage = s;
    p.buffers = {{.name = "value", .type = {}}};
    std::map<std::pair<plan::Work, int>, Bodies> made;
    std::vector<program::Call> receives, works;
    for (const plan::Task& task : schedule_.tasks[static_cast<size_t>(s)]) {
      const auto [found, is_new] = made.try_emplace({task.work, task.chunk});
      if (is_new) found->second = bodies(p, task);
      receives.push_back({.body = found->second.receive, .micro_batch = task.micro_batch});
      works.push_back({.body = found->second.work, .micro_batch = task.micro_batch});
    }
    program::CallList list;
    for (size_t i = 0; i <= works.size(); ++i) {
      if (i < works.size() && receives[i].body >= 0) list.calls.push_back(receives[i]);
      if (i > 0) list.calls.push_back(works[i - 1]);
    }
    p.lists = {list};
    return p;
  }

  Bodies bodies(Program& p, const plan::Task& task) const {
    const bool forward = task.work == plan::Work::forward, weight = task.work == plan::Work::weight;
    const int step = forward ? 1 : -1, event = static_cast<int>(10 * p.bodies.size());
    Bodies result;
    Body work;
    if (const int from = task.chunk - step; !weight && exists(from)) {
      Body receive;
      receive.instructions = {message(Collective::receive, event, p, from, task.chunk)};
      work.instructions = {program::wait_for(receive.instructions[0])};
      result.receive = static_cast<int>(p.bodies.size());
      p.bodies.push_back(receive);
    }
    work.instructions.push_back(kernel(forward || weight ? 1 : backward_));
    if (const int to = task.chunk + step; !weight && exists(to))
      work.instructions.push_back(message(Collective::send, event + 1, p, task.chunk, to));
    result.work = static_cast<int>(p.bodies.size());
    p.bodies.push_back(work);
    return result;
  }

  bool exists(int chunk) const { return chunk >= 0 && chunk < schedule_.all_chunks(); }

  Instruction message(Collective kind, int event, const Program& p, int sender, int receiver) const {
    Instruction i;
    i.kind = Kind::collective;
    i.collective = kind;
    i.event = event;
    i.ins = i.outs = {0};
    i.group = p.mesh.stage_factors();
    i.peer = (kind == Collective::send ? receiver : sender) % schedule_.stages;
    i.channel = fmt::format("from {} to {}", sender, receiver);
    i.cost.wire_bytes = bytes_;
    return i;
  }

  const plan::Schedule& schedule_;
  double backward_, bytes_;
};

std::vector<Program> pipeline(const plan::Schedule& schedule, double backward, double bytes) {
  return Pipeline(schedule, backward, bytes).programs();
}

double seconds(const std::vector<Program>& stages, const Cluster& cluster, const Options& options = {}) {
  const Simulated r = simulate(stages, cluster, softwares()[0], options);
  for (const StageTime& s : r.stages) EXPECT_NEAR(s.total(), r.seconds, 1e-9 * r.seconds);
  return r.seconds;
}

// Empty messages, which take no time.
TEST(Simulate, BubblesAreThePublishedOnes) {
  for (const std::string_view name : plan::schedule_names())
    for (const int stages : {2, 4, 8})
      for (const int chunks : {1, 2, 3}) {
        const plan::ScheduleRow& row = plan::schedule_named(name);
        if (chunks > 1 && !row.several_chunks) continue;
        const plan::Schedule schedule = plan::make_schedule(row, stages, chunks, 4 * stages);
        const Simulated r = simulate(pipeline(schedule, row.split ? 1 : 2, 0), small_cluster(), softwares()[0]);
        for (int s = 0; s < stages; ++s) {
          const double bubble = r.stages[static_cast<size_t>(s)].bubble, idle = bubble / (r.seconds - bubble);
          EXPECT_NEAR(idle, plan::bubble(plan::timeline(schedule), s), 1e-12) << name << " " << stages;
          if (row.split) continue;
          EXPECT_NEAR(idle, plan::published_bubble(schedule), 1e-12) << name << " " << stages << " " << chunks;
        }
      }
}

// All stages on one core: it is never idle. One core per two stages: idle while one works alone, at the beginning and
// the end.
TEST(Simulate, StagesTakeTurns) {
  for (const std::string_view name : {"gpipe", "1f1b"})
    for (const int stages : {2, 4, 8}) {
      const std::vector<Program> p = pipeline(plan::make_schedule(name, stages, 1, 2 * stages), 2, 0);
      Cluster c = small_cluster();
      const int work = 3 * 2 * stages;  // of a stage
      EXPECT_NEAR(seconds(p, c), work + 3 * (stages - 1), 1e-9) << name << stages;
      c.device.turns = stages;
      EXPECT_NEAR(seconds(p, c), work, 1e-9) << name << stages;
      const Simulated r = simulate(p, c, softwares()[0]);
      for (const StageTime& s : r.stages) EXPECT_EQ(s.slowed, 0);
    }
  // Two stages, two micro-batches: one stage works alone for 1 + 1 seconds forward and 2 + 2 backward, which are
  // faster; both work for 1 + 2 seconds.
  const std::vector<Program> p = pipeline(plan::make_schedule("gpipe", 2, 1, 2), 2, 0);
  Cluster c = small_cluster();
  c.device.turns = 1.5;
  EXPECT_NEAR(seconds(p, small_cluster()), 9, 1e-9);
  EXPECT_NEAR(seconds(p, c), 3 + 6 / 1.5, 1e-9);
}

// A slow stage k of 1f1b works without pause once the first micro-batch reaches it; then its last gradient passes the k
// stages before it.
TEST(Simulate, ASlowStageHoldsTheOthersUp) {
  for (const int stages : {2, 4, 8})
    for (int slow = 0; slow < stages; ++slow) {
      const int micro_batches = 3 * stages;
      const std::vector<Program> p = pipeline(plan::make_schedule("1f1b", stages, 1, micro_batches), 1, 0);
      EXPECT_NEAR(seconds(p, small_cluster(), {.changes = {.slow_stage = slow, .slowness = 2}}),
                  2.0 * slow + micro_batches * 4, 1e-9)
          << stages << " " << slow;
    }
}

// Messages that take `x`: hidden behind work of 1 second if x is less, except the first; otherwise serialized on the
// link.
TEST(Simulate, ASlowLinkHoldsGpipeUp) {
  Cluster cluster = small_cluster();  // 5 bytes/s
  for (const int stages : {2, 4, 8})
    for (const double x : {0.1, 0.9, 1.0, 3.0}) {
      const int m = 2 * stages;
      const double pass = (stages - 1) * (1 + x) + (m - 1) * std::max(1.0, x) + 1;
      // The last stage starts its backward passes after its forward passes.
      const std::vector<Program> p = pipeline(plan::make_schedule("gpipe", stages, 1, m), 1, 5 * x);
      EXPECT_NEAR(seconds(p, cluster), 2 * pass, 1e-9) << stages << " " << x;
      cluster.node.bandwidth = 0.5;
      const std::vector<Program> tenth = pipeline(plan::make_schedule("gpipe", stages, 1, m), 1, 0.5 * x);
      EXPECT_NEAR(seconds(tenth, cluster), 2 * pass, 1e-9) << "a link ten times slower, a tenth of the bytes";
      cluster.node.bandwidth = 5;
    }
}

// On the second of two stages: a kernel, the start of a long transfer that is awaited at the end, and a kernel that
// needs a message. The stage before sends it after 9 seconds; alone, it takes 4. A first kernel of 13 seconds ends
// after it has arrived. One of 8 seconds starts the long transfer of 10 before, which then takes half of the link.
TEST(Simulate, AFasterKernelCanMakeAStepSlower) {
  const auto step = [](double first) {
    std::vector<Program> stages(2);
    for (int s = 0; s < 2; ++s) {
      Program& p = stages[static_cast<size_t>(s)];
      p.mesh = mesh::Mesh({{.name = "pipe", .size = 2, .cuts_layers = true}, {.name = "data", .size = 2}});
      p.stage = s;
      p.buffers = {{.name = "value", .type = {}}};
      Instruction message, sum;
      message.kind = sum.kind = Kind::collective;
      message.collective = s == 0 ? Collective::send : Collective::receive;
      message.ins = message.outs = sum.ins = sum.outs = {0};
      message.group = p.mesh.stage_factors();
      message.peer = 1 - s;
      message.channel = "activations";
      message.cost.wire_bytes = 20;
      sum.event = 1, message.event = 0;
      sum.group = p.mesh.expand(std::vector<std::string>{"data"});
      sum.cost.wire_bytes = 50;
      Body body;
      if (s == 0)
        body.instructions = {kernel(9), message};
      else
        body.instructions = {message,    kernel(first),         sum, program::wait_for(message),
                             kernel(20), program::wait_for(sum)};
      p.bodies = {body};
      p.lists = {{.calls = {{.body = 0}}}};
    }
    return seconds(stages, small_cluster());
  };
  EXPECT_NEAR(step(13), 33, 1e-9);
  EXPECT_NEAR(step(8), 37, 1e-9);
}

// The published bubbles of 1f1b, (p - 1) / m, and of v chunks a stage, (p - 1) / (m v): Narayanan et al. 2021,
// section 2.2.
TEST(Simulate, BubblesByHand) {
  for (const int p : {2, 4, 8})
    for (const int v : {1, 2, 3}) {
      const int m = 2 * p;
      const plan::Schedule schedule = plan::make_schedule(v == 1 ? "1f1b" : "interleaved", p, v, m);
      const Simulated r = simulate(pipeline(schedule, 2, 0), small_cluster(), softwares()[0]);
      EXPECT_NEAR(r.seconds, 3.0 * m * v + 3 * (p - 1), 1e-9) << p << " " << v;
      for (const StageTime& s : r.stages)
        EXPECT_NEAR(s.bubble / (3 * m * v), (p - 1.0) / (m * v), 1e-12) << p << " " << v;
    }
}

// A link ten times slower: messages take 0.5 seconds instead of 0.05. gpipe hides them, except the first in each
// direction. In 1f1b, p micro-batches are in flight, each for p passes there and back with the messages in between: 2 p
// + 2 (p - 1) x seconds.
TEST(Simulate, ASlowLinkMovesTheAnswer) {
  Cluster slow = small_cluster();
  slow.node.bandwidth /= 10;
  const double bytes = 0.05 * small_cluster().node.bandwidth;
  for (const int p : {2, 4, 8}) {
    const auto step = [&](std::string_view name, int m, const Cluster& cluster) {
      return seconds(pipeline(plan::make_schedule(name, p, 1, m), 1, bytes), cluster);
    };
    EXPECT_NEAR(step("gpipe", 2 * p, slow) - step("gpipe", 2 * p, small_cluster()), 2 * (p - 1) * 0.45, 1e-9) << p;
    for (const auto& [cluster, x] : {std::pair(small_cluster(), 0.05), std::pair(slow, 0.5)})
      EXPECT_NEAR(step("1f1b", 6 * p, cluster) - step("1f1b", 4 * p, cluster), 2 * (2 * p + 2 * (p - 1) * x), 1e-9)
          << p << " " << x;
  }
}

// Two axes of two ranks in a node: their collectives share its links.
Program two_axes() {
  Program p;
  p.mesh = mesh::Mesh({{.name = "data", .size = 2}, {.name = "tensor", .size = 2}});
  p.buffers = {{.name = "value", .type = {}}};
  p.bodies = {{.name = "forward", .instructions = {}}};
  p.lists = {{.calls = {{.body = 0}}}};
  return p;
}

Instruction gather(const Program& p, const std::string& axis, int event, double bytes) {
  Instruction i;
  i.kind = Kind::collective;
  i.collective = Collective::all_gather;
  i.event = event;
  i.ins = i.outs = {0};
  i.group = p.mesh.expand(std::vector<std::string>{axis});
  i.cost.wire_bytes = bytes;
  return i;
}

TEST(Simulate, TransfersShareALink) {
  Program p = two_axes();
  const Instruction a = gather(p, "data", 0, 10), b = gather(p, "tensor", 1, 20);  // 2 s and 4 s alone
  p.bodies[0].instructions = {a, b, program::wait_for(a), kernel(1), program::wait_for(b)};
  // Each at half the bandwidth until the first is done at 4 s, the second at 6 s; the kernel runs concurrently.
  const Simulated r = simulate({p}, small_cluster(), softwares()[0]);
  EXPECT_NEAR(r.seconds, 6, 1e-12);
  const auto axis = [&](const char* name) {
    return static_cast<size_t>(std::ranges::find(r.axes, name) - r.axes.begin());
  };
  EXPECT_NEAR(r.stages[0].exposed[axis("data")], 4, 1e-12);
  EXPECT_NEAR(r.stages[0].exposed[axis("tensor")], 1, 1e-12);
  EXPECT_NEAR(r.stages[0].transfers[axis("tensor")], 6, 1e-12);
}

TEST(Simulate, TransfersOfOneGroupRunInOrder) {
  Program p = two_axes();
  const Instruction a = gather(p, "data", 0, 10), b = gather(p, "data", 1, 20);
  p.bodies[0].instructions = {a, b, program::wait_for(b), program::wait_for(a)};
  EXPECT_NEAR(seconds({p}, small_cluster()), 6, 1e-12);
}

TEST(Simulate, KernelsAreHiddenAndSlowed) {
  Program p = two_axes();
  const Instruction a = gather(p, "data", 0, 20);  // 4 s
  p.bodies[0].instructions = {a, kernel(3), program::wait_for(a), kernel(1)};
  EXPECT_NEAR(seconds({p}, small_cluster()), 5, 1e-12);
  Cluster slowed = small_cluster();
  slowed.node.slowdown = 2;  // 4 s of the transfer do 2 s of the kernel; 1 s is left
  EXPECT_NEAR(seconds({p}, slowed), 6, 1e-12);
  const Simulated r = simulate({p}, slowed, softwares()[0]);
  EXPECT_NEAR(r.stages[0].slowed, 2, 1e-12);
}

TEST(Simulate, RefusesMoreRanksThanDevices) {
  Cluster c = small_cluster();
  c.nodes = 1;
  c.devices_per_node = 2;
  EXPECT_THROW(seconds({two_axes()}, c), base::UserError);
}

}  // namespace kintsugi::simulate::simulate_test
