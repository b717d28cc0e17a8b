// Checks of the nodes of a run before its first step: arithmetic against a known answer, bandwidth of memory, of each
// link of the mesh and of the run's file system, and the clocks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::train {

struct MeasuredLink {
  std::string axis;      // of the mesh: "data"
  int peer = 0;          // rank of the world that it sent to
  double bandwidth = 0;  // bytes/s, in both directions at once
};

// What a rank measured. 0: not measured.
struct NodeReport {
  std::string host;
  bool correct = true;     // its arithmetic, and what it received
  std::string wrong = {};  // what was not: "a product of 192 x 192 matrices"
  double flops = 0;        // per second, of one thread
  double memory = 0;       // bytes/s copied by one thread
  double disk = 0;         // bytes/s written and synced in the run's folder
  double clock = 0;        // seconds since 1970, read after a barrier
  std::vector<MeasuredLink> links = {};
};

// C = A B for square matrices of `n` rows, row-major; replaced in tests.
using Multiply = std::function<void(const float* a, const float* b, float* c, int64_t n)>;
void multiply(const float* a, const float* b, float* c, int64_t n);

// Whether A B, of small integers and thus exact, has the right sum under random weights (Freivalds 1977), and how many
// operations per second it took.
bool multiplies_correctly(const Multiply& multiply, double seconds, double& flops);

// The names of ranks that are at least this factor slower than the median of all, and by how much.
constexpr double kSlow = 2;
// Difference of clocks at which checkpoints, leases and certificates no longer have an order.
constexpr double kClockSeconds = 5;

// From the reports of all ranks, by rank: a summary, then a warning per slow rank or link. Throws SharedError for wrong
// results and for clocks that differ, naming rank and node.
std::vector<std::string> judge_nodes(std::span<const NodeReport> reports, double seconds);

// Measures, within about launch.check_seconds in all. Collective; returns the lines on rank 0, none on the others.
std::vector<std::string> check_nodes(comm::World& world, const config::Settings& settings, const std::string& host);

}  // namespace kintsugi::train
