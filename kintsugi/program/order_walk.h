// The memory that the instructions of a list of calls access, in list order, as the same bytes on all ranks of the
// stage.
#pragma once

#include <utility>
#include <vector>

#include "kintsugi/program/byte_range.h"
#include "kintsugi/program/program.h"
#include "kintsugi/program/queue.h"

namespace kintsugi::program {

struct Touch {
  ByteRange bytes;
  bool written = false;
};

// Whether two accesses must be ordered.
inline bool conflict(const Touch& a, const Touch& b) {
  return (a.written || b.written) && a.bytes.overlaps(b.bytes);
}
bool conflict(const std::vector<Touch>& a, const std::vector<Touch>& b);

class Touches {
 public:
  explicit Touches(const Program& p);

  // Sets `touches` to the memory that an instruction of a call reads and writes, except in the file.
  void get(size_t instruction, const CallList& list, const Call& call, std::vector<Touch>& touches) const;
  Touch of(BufferId buffer, bool written, const CallList& list, const Call& call) const {
    return {in_slot(ranges_[static_cast<size_t>(buffer)], list, call.slot), written};
  }

 private:
  std::vector<ByteRange> ranges_;
  std::vector<std::vector<std::vector<Touch>>> bodies_;  // [body][instruction], in no slot
};

// Tracks what the rank's stream has accessed in a list of calls, so that a queue waits for it only where necessary.
class StreamTouches {
 public:
  void add(const Touch& touch) { all_.push_back(touch); }
  void add(const std::vector<Touch>& touches) { all_.insert(all_.end(), touches.begin(), touches.end()); }
  // Whether an operation of a queue conflicts with what the stream accessed since the queue last waited for it; if so,
  // the queue waits now. Always true for its first operation, since accesses before the list are unknown.
  bool must_wait(int queue, const std::vector<Touch>& operation);

 private:
  std::vector<Touch> all_;
  std::vector<std::pair<int, size_t>> known_;  // per queue: the number of elements of all_ it has waited for
};

}  // namespace kintsugi::program
