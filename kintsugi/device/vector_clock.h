// What one of several that go on beside each other knows to be done of each (Lamport 1978; Mattern 1989, section 4).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kintsugi::device {

// By stream: how many of its pieces of work are known to be done.
class VectorClock {
 public:
  uint64_t of(size_t stream) const { return stream < ticks_.size() ? ticks_[stream] : 0; }
  void tick(size_t stream) {
    if (stream >= ticks_.size()) ticks_.resize(stream + 1);
    ++ticks_[stream];
  }
  void join(const VectorClock& other) {
    if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size());
    for (size_t s = 0; s < other.ticks_.size(); ++s) ticks_[s] = std::max(ticks_[s], other.ticks_[s]);
  }
  // Whether joining it would add nothing.
  bool knows(const VectorClock& other) const {
    for (size_t s = 0; s < other.ticks_.size(); ++s)
      if (of(s) < other.ticks_[s]) return false;
    return true;
  }

 private:
  std::vector<uint64_t> ticks_;
};

}  // namespace kintsugi::device
