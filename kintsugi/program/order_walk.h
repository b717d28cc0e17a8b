// The memory that the instructions of a list of calls touch, in the order of the list, as the same bytes on all ranks
// of the stage.
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

// Whether two accesses need an order.
inline bool conflict(const Touch& a, const Touch& b) {
  return (a.written || b.written) && a.bytes.overlaps(b.bytes);
}
bool conflict(const std::vector<Touch>& a, const std::vector<Touch>& b);

class Touches {
 public:
  explicit Touches(const Program& p) : p_(p), ranges_(byte_ranges(p)) {}

  // The memory that an instruction of a call reads and writes, without what is in the file.
  std::vector<Touch> of(const Instruction& i, const CallList& list, const Call& call) const;
  Touch of(BufferId buffer, bool written, const CallList& list, const Call& call) const {
    return {in_slot(ranges_[static_cast<size_t>(buffer)], list, call.slot), written};
  }

 private:
  const Program& p_;
  std::vector<ByteRange> ranges_;
};

// What the rank's stream has touched in a list of calls, so that a queue waits for it only where it must.
class StreamTouches {
 public:
  void add(const Touch& touch) { all_.push_back(touch); }
  void add(const std::vector<Touch>& touches) { all_.insert(all_.end(), touches.begin(), touches.end()); }
  // Whether an operation of a queue conflicts with what the stream has touched since the queue last waited for it; then
  // the queue waits now. Its first one always does, since what was before the list is not known.
  bool must_wait(int queue, const std::vector<Touch>& operation);

 private:
  std::vector<Touch> all_;
  std::vector<std::pair<int, size_t>> known_;  // by queue: how many of all_ it has waited for
};

}  // namespace kintsugi::program
