// Checks that accesses to memory are ordered. Every stream and every host thread has a vector clock of the progress
// that it knows of each other. Of two accesses to overlapping bytes, at least one of them a write, one must know of the
// other.
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

// The last accesses to each byte of registered memory. Not thread-safe.
class AccessOrder {
 public:
  size_t add_stream() { return streams_++; }
  // Records an access of a stream whose clock has ticked for it. Throws InternalError, naming both, if it is not
  // ordered after an earlier conflicting access.
  void access(size_t stream, const VectorClock& clock, const Access& access);
  void look_at(const std::byte* begin, int64_t bytes);  // registers allocated memory
  void forget(const std::byte* begin, int64_t bytes);   // unregisters freed memory

 private:
  struct Known {
    size_t stream = 0;
    uint64_t tick = 0;
    size_t name = 0;  // index into names_
  };
  struct Bytes {
    uintptr_t end = 0;
    bool written = false;
    Known write = {};
    std::vector<Known> reads = {};  // since that write, one per stream
  };
  using Memory = std::map<uintptr_t, Bytes>;  // by begin; disjoint

  size_t number_of(std::string_view name);
  bool looks_at(std::span<const std::byte> bytes) const;
  void cut(uintptr_t at);
  // Entries that exactly cover [begin, end), split or created as necessary.
  std::pair<Memory::iterator, Memory::iterator> range(uintptr_t begin, uintptr_t end);

  size_t streams_ = 0;
  Memory memory_;
  std::map<uintptr_t, uintptr_t> known_;  // begin -> end
  std::vector<std::string> names_;
  std::map<std::string, size_t, std::less<>> numbers_;
};

}  // namespace kintsugi::device
