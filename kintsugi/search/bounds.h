// Lower bounds of the time of a step and of the memory of a rank, each from less work than compiling the run.
//
// Every bound leaves out what it cannot be sure of: contention, kernels slowed by messages, scratch memory, padding of
// buckets. search_test compiles every candidate of small cases and holds each bound against what comes out.
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
  int64_t bytes = 0;  // of the rank that needs most
};

// Safe to use from several threads.
class Bounds {
 public:
  // All outlive it.
  Bounds(const config::Settings& settings, const simulate::Cluster& cluster, int64_t devices);

  // Bytes of weights, gradients and optimizer of the whole model.
  int64_t states() const { return whole_.weights + whole_.gradients + whole_.optimizer; }

  // By arithmetic: the FLOPs of the model at the full rate of products; its weights over the devices that share them.
  Bound by_arithmetic(const Candidate& candidate) const;

  // By layers: of each stage its work, and that of the stages before it, once before and once behind; what the ranks of
  // its data axis send at least; its states, and what the micro-batches in flight carry. Nothing if the layout is
  // refused. First of the same layout without recomputation and split backward passes, which is found for many at once;
  // `by_replica`: with them, and with the activations that go to the file.
  std::optional<Bound> by_layers(const Candidate& candidate);
  std::optional<Bound> by_replica(const Candidate& candidate);

  // The same with the schedule task by task, what each pass sends over the data axis, and messages between stages;
  // first of the same layout without offload, which is found for several at once; `by_files`: with it.
  std::optional<Bound> by_schedule(const Candidate& candidate);
  std::optional<Bound> by_files(const Candidate& candidate);

 private:
  // Of a layout refused, both are empty pointers.
  std::shared_ptr<const FewLayers> few_of(const Candidate& candidate);
  std::shared_ptr<const FewLayers> compiled(const Candidate& candidate) const;
  std::shared_ptr<const UnitCosts> costs_of(const Candidate& candidate);
  double faster(const Candidate& candidate) const;
  using Chunks = std::vector<UnitCost>;
  // Of a layout refused an empty pointer.
  // `alone`: of a replica without what goes over the data axis, from the samples of all of them.
  std::shared_ptr<const Chunks> chunks_of(const Candidate& candidate, bool alone = false);
  std::shared_ptr<const Chunks> made_chunks(const Candidate& candidate, int64_t micro_batches, int64_t replicas);
  UnitCost chunk_of(const UnitCosts& costs, size_t first, size_t end) const;
  std::vector<int> cut(std::vector<double> flops, const Candidate& candidate, int64_t replicas);
  simulate::GroupShape ring_shape(int64_t ranks, int64_t stride);
  double data_seconds(const Candidate& candidate, double bytes);
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
  UnitCost whole_;                // of the model on one device, for one sample
  double rate_ = 0;               // FLOP/s of a device that nothing exceeds
  Once<Replica, FewLayers> few_;  // without the size of the data axis
  Once<Replica, UnitCosts> costs_;
  Once<std::tuple<Replica, int64_t, int32_t, int32_t>, Chunks> chunks_;
  std::mutex mutex_;  // of the two that follow
  std::map<std::pair<std::vector<double>, int64_t>, std::vector<int>> cuts_;
  std::map<std::pair<int64_t, int64_t>, simulate::GroupShape> rings_;  // by ranks and stride
};

}  // namespace kintsugi::search
