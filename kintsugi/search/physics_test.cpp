// What no machine does, over random layouts: a faster part never makes a step slower, more replicas never give more
// than their share, recomputation never saves time, and ZeRO never costs more memory than what it gathers.
//
// KINTSUGI_LAYOUTS=N takes N layouts instead of few, and KINTSUGI_SEED=N another row of them (bench/physics.sh).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kintsugi/compile/programs.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/program/walk.h"
#include "kintsugi/simulate/kernel_costs.h"
#include "kintsugi/simulate/simulate.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::search::physics_test {
namespace {

using simulate::Cluster;

// Transfers share the bandwidth of a link, so an earlier start of one can delay another that is more critical:
// schedules of fixed order have such anomalies (Graham 1969, "Bounds on Multiprocessing Timing Anomalies").
// Simulate.AFasterKernelCanMakeAStepSlower (simulate_test.cpp) shows one by hand.
constexpr double kAnomaly = 2e-3;

constexpr const char* kMachine = R"([cluster]
nodes = 64
devices_per_node = 4
[device]
units = 108
memory = "80 GB"
memory_bandwidth = "2000 GB/s"
memory_share = 0.75
kernel_start = "3 us"
[peak]
bf16 = "312 TFLOP/s"
[products]
share = 0.8
depth = 96
start = "5 us"
tiles = ["256x128", "128x128", "64x64"]
[attention]
forward = 0.6
backward = 0.5
[node]
bandwidth = "230 GB/s"
start = "40 us"
step = "3.4 us"
slowdown = 1.1
[network]
bandwidth = "25 GB/s"
start = "40 us"
step = "14 us"
slowdown = 1.1
)";

struct Layout {
  int embed = 512, sequence = 1024, micro_batch = 1, micro_batches = 1;
  int data = 1, tensor = 1, pipe = 1, context = 1, zero = 0, chunks = 1;
  bool sequence_parallel = false;
  std::string method = "ulysses", recompute = "none";

  std::string text() const {
    return fmt::format(
        "[model]\nlayers = 8\nembed = {}\nheads = 8\nvocab = 4096\n[train]\nsequence = {}\nglobal_batch = {}\n"
        "micro_batch = {}\ndtype = \"bf16\"\n[parallel]\ndevice = \"cuda\"\ndata = {}\ntensor = {}\npipe = {}\n"
        "context = {}\nzero = {}\nchunks = {}\nschedule = \"{}\"\nsequence_parallel = {}\ncontext_method = \"{}\"\n"
        "recompute = \"{}\"\n",
        embed, sequence, micro_batch * micro_batches * data, micro_batch, data, tensor, pipe, context, zero, chunks,
        chunks > 1 ? "interleaved" : "1f1b", sequence_parallel, method, recompute);
  }
};

int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

std::vector<Layout> layouts(int number) {
  std::mt19937 random(static_cast<unsigned>(number_of("KINTSUGI_SEED", 1)));
  const auto one_of = [&](std::initializer_list<int> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
  };
  std::vector<Layout> list(static_cast<size_t>(number_of("KINTSUGI_LAYOUTS", number)));
  for (Layout& l : list) {
    l = {.embed = one_of({512, 1024, 2048}),
         .sequence = one_of({512, 2048}),
         .micro_batch = one_of({1, 2}),
         .micro_batches = one_of({1, 2, 4}),
         .data = one_of({1, 2, 4}),
         .tensor = one_of({1, 2, 4}),
         .pipe = one_of({1, 1, 2, 4}),
         .context = one_of({1, 2, 2}),
         .zero = one_of({0, 1, 2, 3})};
    l.sequence_parallel = l.tensor > 1 && one_of({0, 1}) == 1;
    l.method = one_of({0, 1}) == 1 ? "ring" : "ulysses";
    if (l.pipe > 1 && l.micro_batches % l.pipe == 0) l.chunks = one_of({1, 2});
  }
  return list;
}

std::vector<program::Program> programs(const Layout& layout, lower::Extent extent) {
  const config::Settings settings =
      config::resolve(config::read_text(layout.text(), "run.toml", models::catalog()), 1).settings;
  return compile::compile({.settings = settings, .kernels = *compile::kernels_of(settings), .extent = extent});
}

double seconds(const std::vector<program::Program>& programs, const Cluster& cluster) {
  return simulate::simulate(programs, cluster, simulate::softwares().front()).seconds;
}

double seconds(const Layout& layout, const Cluster& cluster) {
  return seconds(programs(layout, lower::Extent::timed), cluster);
}

// Whether ZeRO has split a value over the data axis.
bool is_shard(const program::Program& p, program::BufferId b) {
  return std::ranges::any_of(p.buffer(b).layout.splits(), [&](const mesh::Split& split) {
    return split.dim != tensor::kSamples && std::ranges::any_of(split.factors, [&](mesh::Factor f) {
             return p.mesh.axes()[static_cast<size_t>(p.mesh.factor(f).axis)].name == "data";
           });
  });
}

// Of the kernels of a step that work on shards, on the stage where they take longest.
double seconds_of_shards(const std::vector<program::Program>& stages, const Cluster& cluster) {
  const simulate::KernelCosts costs(cluster, simulate::softwares().front());
  double most = 0;
  for (const program::Program& p : stages) {
    double sum = 0;
    program::for_each_instruction(p, p.list(program::Step::train),
                                  [&](const auto&, size_t, const program::Instruction& i) {
                                    const auto shard = [&](program::BufferId b) { return is_shard(p, b); };
                                    if (i.kind == program::Kind::compute &&
                                        (std::ranges::any_of(i.ins, shard) || std::ranges::any_of(i.outs, shard)))
                                      sum += costs.of(p, {.instruction = &i}).seconds;
                                  });
    most = std::max(most, sum);
  }
  return most * cluster.slowest_of(stages[0].mesh.ranks());
}

TEST(Physics, OfTime) {
  const Cluster cluster = simulate::parse_cluster(kMachine, "machine.toml");
  const std::pair<const char*, std::function<void(Cluster&)>> faster[] = {
      {"node", [](Cluster& c) { c.node.bandwidth *= 2; }},
      {"network", [](Cluster& c) { c.network.link.bandwidth *= 2; }},
      {"memory", [](Cluster& c) { c.device.memory_bandwidth *= 2; }},
      {"device", [](Cluster& c) { c.device.peak[tensor::DType::bf16] *= 2; }},
  };
  for (const Layout& layout : layouts(6)) {
    SCOPED_TRACE(layout.text());
    const std::vector<program::Program> compiled = programs(layout, lower::Extent::timed);
    const double step = seconds(compiled, cluster);
    for (const auto& [name, change] : faster) {
      Cluster other = cluster;
      change(other);
      EXPECT_LE(seconds(compiled, other), step * (1 + kAnomaly)) << "faster: " << name;
    }
    Layout selective = layout;
    selective.recompute = "selective";
    EXPECT_GE(seconds(selective, cluster), step * (1 - kAnomaly)) << "recompute";
    // Twice the replicas and twice the batch. A rank's shards halve, so kernels on them save the time that they then
    // still take.
    Layout twice = layout;
    twice.data *= 2;
    const std::vector<program::Program> more = programs(twice, lower::Extent::timed);
    const double saved = seconds_of_shards(more, cluster);
    EXPECT_GE(seconds(more, cluster) + saved, step * (1 - kAnomaly)) << "weak scaling";
  }
}

// The maximum over ranks. ZeRO-2 keeps a rank's shard of fp32 gradients in addition to unreduced ones, and ZeRO-3 its
// shard of weights in addition to gathered ones: both may be all of them, but only if a stage has few layers. With
// kManyLayers per stage there is no exception but padding, since a rank's shard of a bucket is a multiple of 1,024
// elements, and what packing adds to the maximum of live bytes (an NP-hard problem; at most kPacking).
constexpr int kManyLayers = 8;
constexpr double kPacking = 5e-2;

// What padding of the shards of all gradients, in fp32, may add.
double padding_of(const program::Program& p) {
  std::set<program::BufferId> buckets;
  for (const program::StateInfo& s : p.states)
    if (s.kind == program::StateKind::gradient && s.in_bucket) buckets.insert(p.root(s.buffer));
  return 4.0 * 1024 * static_cast<double>(buckets.size());
}

TEST(Physics, OfMemory) {
  for (Layout layout : layouts(3)) {
    layout.data = std::max(2, layout.data);
    SCOPED_TRACE(layout.text());
    double before = 0, weights = 0;
    for (int zero = 0; zero < 4; ++zero) {
      layout.zero = zero;
      double most = 0, padding = 0, largest = 0;
      for (const program::Program& p : programs(layout, lower::Extent::placed)) {
        const auto packed = static_cast<double>(program::memory_table(p).packing);
        most = std::max(most, static_cast<double>(p.bytes()) - packed);
        largest = std::max(largest, static_cast<double>(p.bytes()));
        padding = std::max(padding, padding_of(p));
        if (zero == 0) weights = std::max(weights, static_cast<double>(program::memory_table(p).weights));
      }
      // Of the stage that needs most: no better packing of the others is sought.
      EXPECT_LE(largest, most * (1 + kPacking)) << "zero = " << zero;
      const bool few = 8 / layout.pipe < kManyLayers;
      const double part = few ? (zero == 2 ? 2 : zero == 3 ? 1 : 0) * weights / layout.data : 0;
      if (zero > 0) {
        EXPECT_LE(most, before + part + padding) << "zero = " << zero;
      }
      before = most;
    }
  }
}

}  // namespace
}  // namespace kintsugi::search::physics_test
