// Vector clocks (Lamport 1978; Mattern 1989, section 4): what one of several concurrent streams knows of the progress
// of each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kintsugi::device {

// [stream]: number of its pieces of work known to have completed.
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
  // Whether joining `other` would add nothing.
  bool knows(const VectorClock& other) const {
    for (size_t s = 0; s < other.ticks_.size(); ++s)
      if (of(s) < other.ticks_[s]) return false;
    return true;
  }

 private:
  std::vector<uint64_t> ticks_;
};

}  // namespace kintsugi::device
