// Cost of a layer per device in a layout, found by compiling the model with very few layers (with all, if they are not
// repeated) on one replica and one stage: the kernels and the communication within a replica are those of the whole
// run.
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

// Lower bounds for one layer, the embedding or the head.
//
// Seconds of a pass are those of its kernels, one after another and slowed down by concurrent transfers, and of their
// waits within the replica on otherwise idle links; `first`: where gradients overwrite accumulators; `last`: of the
// last micro-batch; `alone`: at most until it needs what the layer before it sends. Bytes are those of a rank of the
// replica; `carried` lives from the forward to the backward pass of a micro-batch, `for_weight` from that to the weight
// pass, `beside` is what a backward pass has in memory at one time in addition to what is carried: in a chunk of one
// layer, or of more.
struct UnitCost {
  double forward = 0, backward = 0, weight = 0;
  double forward_alone = 0, alone = 0;  // of a forward and of a backward pass
  double first_backward = 0, first_weight = 0;
  double last_backward = 0, last_weight = 0;
  // From its result, which the next stage consumes, until everything is done; for a pass with communication over the
  // data axis.
  double rest = 0, first_rest = 0, last_rest = 0;  // of a backward pass
  double sums = 0;                                 // from the end of the last pass to that of the step's reductions
  double update = 0, update_transfers = 0;         // per step: kernels, and communication over the data axis
  // Communication over the data axis on the queue that takes longest, of layers that are not repeated: in the last
  // forward pass; from the last backward pass on; in each of the other micro-batches.
  double data_forward = 0, data_last = 0, data_each = 0;
  double flops = 0;  // of the matmuls and the attention of a micro-batch
  int64_t weights = 0, gradients = 0, optimizer = 0, carried = 0, for_weight = 0;
  int64_t beside = 0, beside_of_one = 0;  // within a sum: of the layer with the least
  int64_t read_again = 0;                 // of the weights, in a backward pass
  // Bytes to and from the rank's file: in the passes of each micro-batch, each of which waits for them, and once per
  // step.
  double file_forward = 0, file_backward = 0, file_weight = 0, file_step = 0;

  double file_passes() const { return file_forward + file_backward + file_weight; }

  UnitCost& operator+=(const UnitCost& other);
};

// A pass with communication over the data axis.
struct DataPass {
  double UnitCost::*seconds = nullptr;  // the whole pass
  double UnitCost::*alone = nullptr;    // or null
  double UnitCost::*rest = nullptr;     // or null
  double UnitCost::*sums = nullptr;     // or null
  PassTimes times;
};

struct UnitCosts {
  std::vector<UnitCost> units = {};  // [layer]; the first includes the embedding, the last the head
  std::vector<double> flops = {};    // likewise, as lower::cut_layers balances them
  std::vector<int> kinds = {};       // [layer]: its kind, among those of repeated layers
  std::vector<DataPass> passes = {};
};

// The properties of a candidate on which they depend. `split`: weight gradients are separate work. data: 1
// if communication over the data axis is omitted.
struct Replica {
  AxisSizes sizes = {};  // without pipe
  int32_t micro_batch = 1;
  bool split = false;
  config::Recomputed recompute = config::Recomputed::nothing;
  bool offload_optimizer = false, offload_activations = false;
  int32_t zero = 0;

  int32_t data() const { return sizes.at<&config::Parallel::data>(); }
  auto operator<=>(const Replica&) const = default;
};
Replica replica_of(const Candidate& candidate);

// Whether the model is blocks of a few kinds, which alternate. Not so: models of images and tables, and models with
// experts after leading dense layers.
bool has_repeated_layers(const config::Model& model);

// The compiled run of very few layers (of all, if they are not repeated), independent of the size of the data axis.
struct FewLayers {
  program::Program program;
  std::vector<double> flops;  // [layer]
};
// Throws UserError if the model rejects the layout.
FewLayers few_layers(const config::Settings& settings, const Candidate& candidate);

// FLOPs and states of the model on one device, for one sample; the rest is 0.
UnitCost whole_model(const config::Settings& settings);

// `devices`: of the run, all of which wait for the slowest. `few`: of a candidate that differs at most in data. Without
// repeated layers, there are no passes. Throws UserError if the cluster rejects the layout.
UnitCosts unit_costs(const config::Settings& settings, const FewLayers& few, const Candidate& candidate,
                     const simulate::Cluster& cluster, int64_t devices);

}  // namespace kintsugi::search
