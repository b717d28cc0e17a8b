// The programs of all stages, run in time on a described cluster: what each stage computes, sends and waits for, and
// when.
//
// Discrete events over the lists of calls. One rank stands for all of its stage, since they run one program and only
// differ by which part of each value they have. The kernels of a rank run one after another; collectives and messages
// run in the queues of the program, in order, beside the kernels; transfers that are under way on one link share its
// bandwidth. A wait ends when what it waits for is done, so overlap, contention and bubbles come out of the program.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/cluster.h"
#include "kintsugi/simulate/kernel_costs.h"
#include "kintsugi/simulate/software.h"

namespace kintsugi::simulate {

// Changes of the machine that a question asks for.
struct Changes {
  int slow_stage = -1;  // whose kernels take `slowness` times as long; -1: none
  double slowness = 1;
};

// Kernels of a call, or a transfer, from begin to end in seconds.
struct Span {
  int stage = 0;
  size_t call = 0;  // in the list of calls: of the kernels, or where the transfer was started
  int axis = -1;    // of a transfer: a position in Simulated::axes; -1: kernels
  int to = -1;      // of a message: the stage that it goes to
  double begin = 0, end = 0;
};

// Where the seconds of a stage's step go; kernels, slowed, exposed and bubble add up to the step.
struct StageTime {
  std::array<double, kClasses> kernels = {};
  double slowed = 0;                   // that kernels took longer beside transfers
  std::vector<double> exposed = {};    // by axis: waits for transfers that were under way
  std::vector<double> transfers = {};  // by axis: all transfers, hidden behind kernels or not
  double bubble = 0;                   // waits for what another stage had not begun to send, and for the last to end

  double total() const;
};

struct Simulated {
  double seconds = 0;
  std::vector<StageTime> stages;
  std::vector<std::string> axes;  // of the mesh, alone or together, over which something is sent; "file"
  std::vector<Span> spans;        // if asked for
};

struct Options {
  program::Step step = program::Step::train;
  Changes changes = {};
  bool spans = false;
};

// `programs`: one for each stage, verified. UserError if the cluster lacks a figure that the program needs or has fewer
// devices than the program ranks.
Simulated simulate(const std::vector<program::Program>& programs, const Cluster& cluster, const Software& software,
                   const Options& options = {});

}  // namespace kintsugi::simulate
