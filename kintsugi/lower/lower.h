// Lowers graphs and a plan to the program of a rank: one function, one line per pass, a dump after each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/graph/graph.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/lower/order/offload.h"
#include "kintsugi/lower/order/route.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Graphs over the same states that are lowered together. Null: absent.
struct Source {
  const graph::StateTable& states;
  const graph::Graph* micro = nullptr;
  const graph::Graph* update = nullptr;
  struct Pass {
    program::Work work;
    const graph::Graph* graph;
  };
  std::vector<Pass> passes = {};      // with lists of calls of their own: any work from `evaluate` on
  int64_t micro_batches = 1;          // per step, on this rank
  std::vector<int64_t> shorter = {};  // numbers of micro-batches of further lists of calls of a training step

  const graph::OpTable& operations() const;  // the table that the graphs were built with
};

// How much of a program is produced. timed: instructions and their order, for simulation; without workspaces or
// offsets. placed: complete, but stages other than the largest do not search for a smaller arena. verified: also
// verified, as required of every program that runs.
enum class Extent : uint8_t { timed, placed, verified };

struct Target {
  const plan::Plan& plan;
  const kernels::KernelSet& kernels;
  int threads = 1;
  Offload offload = {};
  bool sums_in_rank_order = false;  // in all groups
  Extent extent = Extent::verified;
  Route route = {};  // for ranks on devices
};

// Called after each pass with its name ("partition", "prefetch", "fuse", "join_columns", "workspace", "schedule",
// "overlap", "offload", "move_gradients", "join_lists", "memory", "shorten", "group_launches", "route", "place_waits")
// and the program: of all stages together after "partition", later of each stage in turn.
using Dump = std::function<void(std::string_view pass, const program::Program&)>;

// The programs of all stages.
std::vector<program::Program> lower(const Source& source, const Target& target, const Dump& dump = {});

}  // namespace kintsugi::lower
