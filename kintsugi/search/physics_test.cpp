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
#include <string>
#include <vector>

#include "kintsugi/compile/programs.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/simulate/simulate.h"

namespace kintsugi::search::physics_test {
namespace {

using simulate::Cluster;

// Transfers share the bandwidth of a link, so an earlier start of one can delay another that is more critical:
// schedules of fixed order have such anomalies (Graham 1969, "Bounds on Multiprocessing Timing Anomalies").
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
    // Twice the replicas and twice the batch. With ZeRO a rank's update shrinks; and with one replica, gradient sums
    // over `context` share a queue with attention's collectives, which wait for them.
    Layout once = layout, twice = layout;
    once.zero = twice.zero = 0;
    if (once.context > 1) once.data = twice.data = std::max(2, once.data);
    twice.data *= 2;
    EXPECT_GE(seconds(twice, cluster), seconds(once, cluster) * (1 - kAnomaly)) << "weak scaling";
  }
}

// The maximum over ranks. ZeRO-2 keeps a rank's shard of fp32 gradients in addition to unreduced ones, and ZeRO-3 its
// shard of weights in addition to gathered ones: both may be all of them if a stage has few layers.
TEST(Physics, OfMemory) {
  for (Layout layout : layouts(3)) {
    layout.data = std::max(2, layout.data);
    SCOPED_TRACE(layout.text());
    double before = 0, weights = 0;
    for (int zero = 0; zero < 4; ++zero) {
      layout.zero = zero;
      double most = 0;
      for (const program::Program& p : programs(layout, lower::Extent::placed)) {
        most = std::max(most, static_cast<double>(p.bytes()));
        if (zero == 0) weights = std::max(weights, static_cast<double>(program::memory_table(p).weights));
      }
      const double part = (zero == 2 ? 2 : zero == 3 ? 1 : 0) * weights / layout.data;
      if (zero > 0) {
        EXPECT_LE(most, before + part) << "zero = " << zero;
      }
      before = most;
    }
  }
}

}  // namespace
}  // namespace kintsugi::search::physics_test
