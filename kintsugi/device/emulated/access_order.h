// Whether accesses to memory have an order. Every stream, and every thread of the host, has a vector clock: what it
// knows to be done of each other. Two accesses to overlapping bytes, of which one writes, must be such that one knows
// of the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/device/device.h"
#include "kintsugi/device/vector_clock.h"

namespace kintsugi::device {

// The last accesses to each byte of the memory that it was told of. Not safe to call from several threads at one time.
class AccessOrder {
 public:
  size_t add_stream() { return streams_++; }
  // Of a stream whose clock has ticked for it. InternalError, with both by name, if there is no order to an earlier
  // one.
  void access(size_t stream, const VectorClock& clock, const Access& access);
  void look_at(const std::byte* begin, int64_t bytes);  // memory that was allocated
  void forget(const std::byte* begin, int64_t bytes);   // the same, freed

 private:
  struct Known {
    size_t stream = 0;
    uint64_t tick = 0;
    size_t name = 0;  // in names_
  };
  struct Bytes {
    uintptr_t end = 0;
    bool written = false;
    Known write = {};
    std::vector<Known> reads = {};  // since then, one of each stream
  };
  using Memory = std::map<uintptr_t, Bytes>;  // by begin; they do not overlap

  size_t number_of(std::string_view name);
  bool looks_at(std::span<const std::byte> bytes) const;
  void cut(uintptr_t at);
  // All of [begin, end), each wholly within it; where nothing is known, fresh ones.
  std::pair<Memory::iterator, Memory::iterator> range(uintptr_t begin, uintptr_t end);

  size_t streams_ = 0;
  Memory memory_;
  std::map<uintptr_t, uintptr_t> known_;  // from begin to end
  std::vector<std::string> names_;
  std::map<std::string, size_t, std::less<>> numbers_;
};

}  // namespace kintsugi::device
