// Lower bounds of step time and of memory per rank, each cheaper than compiling the run.
//
// For models whose layers are not copies of a few alternating kinds, all layers are compiled, and communication over
// the data axis is one transfer after another.
//
// A bound omits everything uncertain: contention, kernels slowed down by communication, workspaces, padding of buckets.
// search_test compiles every candidate of small cases and checks each bound against the result.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/search/candidate.h"
#include "kintsugi/search/once.h"
#include "kintsugi/search/unit_costs.h"
#include "kintsugi/simulate/cluster.h"
#include "kintsugi/simulate/transfer_costs.h"

namespace kintsugi::search {

struct Bound {
  double seconds = 0;
  int64_t bytes = 0;  // of the rank that needs the most
};

// Thread-safe.
class Bounds {
 public:
  // The arguments must outlive it.
  Bounds(const config::Settings& settings, const simulate::Cluster& cluster, int64_t devices);

  // Bytes of weights, gradients and optimizer states of the whole model.
  int64_t states() const { return whole_.weights + whole_.gradients + whole_.optimizer; }

  // From arithmetic: the model's FLOPs at the full matmul rate; its weights divided by the devices that share them.
  Bound by_arithmetic(const Candidate& candidate) const;

  // From layers: for each stage its work, and that of the stages before it, once before and once after; the minimum
  // communication over its data axis; its states, and the activations of micro-batches in flight. Nothing if the layout
  // is invalid. by_layers() ignores recomputation and split backward passes, so that many candidates share it;
  // by_replica() includes them, and the activations offloaded to the file.
  std::optional<Bound> by_layers(const Candidate& candidate);
  std::optional<Bound> by_replica(const Candidate& candidate);

  // As above with the schedule task by task, the communication of each pass over the data axis, and messages between
  // stages. by_schedule() ignores offload, so that several candidates share it; by_files() includes it.
  std::optional<Bound> by_schedule(const Candidate& candidate);
  std::optional<Bound> by_files(const Candidate& candidate);

 private:
  // Null for an invalid layout.
  std::shared_ptr<const FewLayers> few_of(const Candidate& candidate);
  std::shared_ptr<const FewLayers> compiled(const Candidate& candidate) const;
  std::shared_ptr<const UnitCosts> costs_of(const Candidate& candidate);
  double faster(const Candidate& candidate) const;
  bool has_experts() const { return settings_.model.experts > 0; }
  // Tokens in slots of experts are live for less time in some layouts, as are values of layers that are not repeated.
  bool bounds_activations() const { return repeats_ && !has_experts(); }
  using Chunks = std::vector<UnitCost>;
  // Null for an invalid layout. `alone`: a replica without data-axis communication, with the samples of all replicas.
  std::shared_ptr<const Chunks> chunks_of(const Candidate& candidate, bool alone = false);
  std::shared_ptr<const Chunks> made_chunks(const Candidate& candidate, int64_t micro_batches, int64_t replicas);
  UnitCost chunk_of(const UnitCosts& costs, size_t first, size_t end) const;
  std::vector<int> cut(std::vector<double> flops, const Candidate& candidate, int64_t replicas);
  simulate::GroupShape ring_shape(int64_t ranks, int64_t stride);
  double data_seconds(const Candidate& candidate, program::Collective kind, double bytes);
  std::optional<Bound> by_chunks(const Candidate& candidate, const Candidate& like);
  std::optional<Bound> by_tasks(const Candidate& candidate, const Candidate& like);
  int64_t message_bytes(const Candidate& candidate) const;
  double message_seconds(const Candidate& candidate) const;
  double file_seconds(double bytes) const;
  double file_wait(double bytes, double seconds) const;
  double transfers(const Candidate& candidate, const Chunks& chunks, int stage);

  const config::Settings& settings_;
  const simulate::Cluster& cluster_;
  const int64_t devices_;
  const bool repeats_;            // has_repeated_layers()
  UnitCost whole_;                // the model on one device, for one sample
  double rate_ = 0;               // maximum FLOP/s of a device
  Once<Replica, FewLayers> few_;  // independent of the size of the data axis
  Once<Replica, UnitCosts> costs_;
  Once<std::tuple<Replica, int64_t, int32_t, int32_t>, Chunks> chunks_;
  std::mutex mutex_;  // guards the next two
  std::map<std::pair<std::vector<double>, int64_t>, std::vector<int>> cuts_;
  std::map<std::pair<int64_t, int64_t>, simulate::GroupShape> rings_;  // [ranks, stride]
};

}  // namespace kintsugi::search
