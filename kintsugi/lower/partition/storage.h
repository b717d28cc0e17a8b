// Storage of states: parameters in buckets, all others individually.
#pragma once

#include <map>
#include <string>

#include "kintsugi/lower/partition/buckets.h"
#include "kintsugi/lower/partition/emit.h"

namespace kintsugi::lower {

class Storage {
 public:
  Storage(Emitter& emit, const plan::Plan& plan, const Buckets& buckets)
      : emit_(emit), plan_(plan), buckets_(buckets) {}

  const Buckets& buckets() const { return buckets_; }
  const Bucket& bucket(int i) const { return buckets_.list[static_cast<size_t>(i)]; }
  // The place of a parameter's state, or null.
  const Place* place(graph::StateId id) const;

  // The buffer on a stage of a state that is not a parameter's, or of a whole bucket (by its state). `layout` is used
  // when it is first created; null: by the rules.
  BufferId of(graph::StateId id, int stage, const Layout* layout = nullptr);
  // The stages that have it, its layer's first. A scalar of the run is on every stage.
  std::vector<int> stages_of(graph::StateId id) const;
  bool is_number(graph::StateId id) const;
  // The block of a parameter within `bucket`, any buffer that holds the bucket with flat whole.
  BufferId member(BufferId bucket, graph::StateId id);
  // A new buffer for a bucket with that dtype, in a layout of [shard flat].
  BufferId block_of(int bucket, tensor::DType dtype, const Layout& layout, const std::string& suffix);
  // `count` buffers like a state's, for sums that wait at the levels of a binary tree.
  std::vector<BufferId> levels(BufferId state, int64_t count);
  // The gaps between parameters and after the last, as views of a buffer with flat whole.
  std::vector<BufferId> gaps(BufferId buffer, int bucket);

 private:
  Layout stored(graph::StateId id) const;
  void add_info(graph::StateId id, BufferId buffer, const Place* place, int stage);

  Emitter& emit_;
  const plan::Plan& plan_;
  const Buckets& buckets_;
  std::map<std::pair<graph::StateId, int>, BufferId> made_;  // [state, stage]
  std::map<BufferId, std::vector<BufferId>> levels_;
};

}  // namespace kintsugi::lower
