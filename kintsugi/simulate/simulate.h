// Discrete-event simulation of the programs of all stages on a described cluster: what each stage computes, sends and
// waits for, and when.
//
// Events follow the lists of calls. One rank represents its stage, since its ranks run one program and differ only in
// which part of each value they hold. The kernels of a rank run one after another; collectives and messages run in the
// queues of the program, in order, concurrently with kernels; transfers in flight on one link share its bandwidth. A
// wait ends when its transfer completes, so overlap, contention and bubbles follow from the program.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/cluster.h"
#include "kintsugi/simulate/kernel_costs.h"
#include "kintsugi/simulate/software.h"

namespace kintsugi::simulate {

// Hypothetical changes to the machine.
struct Changes {
  int slow_stage = -1;  // whose kernels take `slowness` times as long; -1: none
  double slowness = 1;
};

// Kernels of a call, or a transfer; begin and end in seconds.
struct Span {
  int stage = 0;
  size_t call = 0;  // index in the list of calls: of the kernels, or of the start of the transfer
  int axis = -1;    // transfers: index into Simulated::axes; -1: kernels
  int to = -1;      // messages: destination stage
  double begin = 0, end = 0;
};

// Breakdown of a stage's step; kernels, slowed, exposed and bubble sum to the step.
struct StageTime {
  std::array<double, kClasses> kernels = {};
  double slowed = 0;                   // slowdown of kernels by concurrent transfers
  std::vector<double> exposed = {};    // [axis]: waits for transfers in flight
  std::vector<double> transfers = {};  // [axis]: all transfers, whether overlapped with kernels or not
  double bubble = 0;  // waits for what another stage had not begun to send, and for the last stage to end

  double total() const;
};

struct Simulated {
  double seconds = 0;
  std::vector<StageTime> stages;
  std::vector<std::string> axes;  // mesh axes, alone or combined, that carry communication; "file"
  std::vector<Span> spans;        // if requested
};

struct Options {
  program::Step step = program::Step::train;
  Changes changes = {};
  bool spans = false;
};

// `programs`: one per stage, verified. Throws UserError if the cluster lacks a figure that the program needs, or has
// fewer devices than the program has ranks.
Simulated simulate(const std::vector<program::Program>& programs, const Cluster& cluster, const Software& software,
                   const Options& options = {});

}  // namespace kintsugi::simulate
