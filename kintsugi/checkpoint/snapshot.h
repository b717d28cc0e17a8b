// A copy of what a rank saves, as of one instant, in pinned host memory: the device copies it quickly and continues
// while it is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "kintsugi/device/device.h"
#include "kintsugi/program/program.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::checkpoint {

// The bytes of each state buffer that the rank writes (and any between them), and their place in the snapshot.
struct SnapshotPlaces {
  struct Place {
    int64_t begin = 0, bytes = 0;  // in the buffer
    int64_t offset = 0;            // in the snapshot, aligned as states are
  };
  std::map<program::BufferId, Place> of;
  int64_t bytes = 0;
};
SnapshotPlaces snapshot_places(const program::Program& p, int rank);

class Snapshot {
 public:
  // Allocates the memory. Throws UserError if the host cannot provide it.
  explicit Snapshot(const run::Executor& executor);

  int64_t bytes() const { return memory_->bytes(); }
  // Copies the states after all enqueued work, in one copy where they are contiguous.
  void take();
  // Byte `at` of a buffer that has a place.
  const std::byte* data(program::BufferId state, int64_t at) const;

 private:
  const run::Executor& executor_;
  SnapshotPlaces places_;
  std::unique_ptr<device::Memory> memory_;
};

}  // namespace kintsugi::checkpoint
