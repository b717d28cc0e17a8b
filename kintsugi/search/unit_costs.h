// What a layer costs a device in a layout, found by compiling the model with very few layers on one replica and one
// stage: the kernels and the communication within a replica are those of the whole run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/program/program.h"
#include "kintsugi/search/candidate.h"
#include "kintsugi/search/pass_times.h"
#include "kintsugi/simulate/cluster.h"

namespace kintsugi::search {

// Of one layer, of the embedding or of the head: the least that it takes.
//
// Seconds of a pass are those of its kernels, one after another and slower beside a transfer, and of what they wait for
// within the replica where nothing else is on a link; `first`: where gradients replace what accumulators held; `last`:
// of the last micro-batch; `alone`: at most until it needs what the layer before it sends.
// Bytes are those of a rank of the replica; `carried` lives from the forward to the backward pass of a micro-batch,
// `for_weight` from that to the pass of weights, `beside` is what a backward pass has in memory at one time beyond what is carried: in a chunk of one layer, or of
// more.
struct UnitCost {
  double forward = 0, backward = 0, weight = 0;
  double forward_alone = 0, alone = 0;  // of a forward and of a backward pass
  double first_backward = 0, first_weight = 0;
  double last_backward = 0, last_weight = 0;
  // From its result, which the next stage takes up, until all is done; of a pass in which something goes over the data
  // axis.
  double rest = 0, first_rest = 0, last_rest = 0;  // of a backward pass
  double sums = 0;                                 // from the end of the last pass until that of the step's sums
  double update = 0, update_transfers = 0;         // once a step: kernels, and what goes over the data axis
  double flops = 0;                                // of the products and the attention of a micro-batch
  int64_t weights = 0, gradients = 0, optimizer = 0, carried = 0, for_weight = 0;
  int64_t beside = 0, beside_of_one = 0;  // of a sum: of the layer with the least
  int64_t read_again = 0;                 // of the weights, in a backward pass
  // Bytes to and from the rank's file: in the passes of each micro-batch, each of which waits for them, and once a
  // step.
  double file_forward = 0, file_backward = 0, file_weight = 0, file_step = 0;

  double file_passes() const { return file_forward + file_backward + file_weight; }

  UnitCost& operator+=(const UnitCost& other);
};

// A pass in which something goes over the data axis.
struct DataPass {
  double UnitCost::*seconds = nullptr;  // of which it is the whole
  double UnitCost::*alone = nullptr;    // or none
  double UnitCost::*rest = nullptr;     // or none
  double UnitCost::*sums = nullptr;     // or none
  PassTimes times;
};

struct UnitCosts {
  std::vector<UnitCost> units = {};  // by layer: the embedding with the first, the head with the last
  std::vector<double> flops = {};    // the same, as lower::cut_layers balances them
  std::vector<int> kinds = {};       // by layer: which of those that differ in what they compute
  std::vector<DataPass> passes = {};
};

// What of a candidate they depend on. `split`: gradients of weights are work of their own. `data`: of several, unless
// what goes over the data axis is left out.
struct Replica {
  int32_t tensor = 1, context = 1, micro_batch = 1;
  bool split = false;
  config::Recomputed recompute = config::Recomputed::nothing;
  bool offload_optimizer = false, offload_activations = false;
  int32_t zero = 0, data = 1;

  auto operator<=>(const Replica&) const = default;
};
Replica replica_of(const Candidate& candidate);

// The compiled run of very few layers, which does not depend on the size of the data axis.
struct FewLayers {
  program::Program program;
  std::vector<double> flops;  // by layer
};
// UserError if the model refuses the layout.
FewLayers few_layers(const config::Settings& settings, const Candidate& candidate);

// `devices`: of the run, whose slowest all wait for. `few`: of a candidate that differs in data at most. UserError if
// the cluster refuses the layout.
UnitCosts unit_costs(const config::Settings& settings, const FewLayers& few, const Candidate& candidate,
                     const simulate::Cluster& cluster, int64_t devices);

}  // namespace kintsugi::search
