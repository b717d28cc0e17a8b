// What a rank saves of its states as they were at one instant, in pinned memory of the host: a device copies it there
// at once, and it is written while the device goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "kintsugi/device/device.h"
#include "kintsugi/program/program.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::checkpoint {

// Of the buffers of states, the bytes that the rank writes, and those between them; and where a snapshot has them.
struct SnapshotPlaces {
  struct Place {
    int64_t begin = 0, bytes = 0;  // of the buffer
    int64_t offset = 0;            // in the snapshot, aligned as states are
  };
  std::map<program::BufferId, Place> of;
  int64_t bytes = 0;
};
SnapshotPlaces snapshot_places(const program::Program& p, int rank);

class Snapshot {
 public:
  // Takes the memory. UserError if the host does not give that much.
  explicit Snapshot(const run::Executor& executor);

  int64_t bytes() const { return memory_->bytes(); }
  // Copies the states, once all that was enqueued is done: in one copy, but for what does not lie together.
  void take();
  // The byte `at` of a buffer, of those that have a place.
  const std::byte* data(program::BufferId state, int64_t at) const;

 private:
  const run::Executor& executor_;
  SnapshotPlaces places_;
  std::unique_ptr<device::Memory> memory_;
};

}  // namespace kintsugi::checkpoint
