// What the stream of a rank has touched in a list of calls, so that a group waits for it only where it must.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/tensor/view.h"

namespace kintsugi::run {

class Touched {
 public:
  // What the stream did before it is not known here: each group waits once.
  void begin_list() {
    all_.clear();
    known_.clear();
  }
  // By work that was enqueued in the stream, or by what the stream has waited for.
  void add(std::span<const std::byte> bytes, bool written);
  void add(std::span<const tensor::View> reads, std::span<const tensor::View> writes,
           std::span<const std::byte> workspace = {});
  // Whether an operation of the group touches what the stream has touched since the group last waited for it, other
  // than to read what was read; then the group is to wait now.
  bool must_wait(const comm::Communicator& group, std::span<const tensor::View> reads,
                 std::span<const tensor::View> writes);

 private:
  struct Touch {
    std::span<const std::byte> bytes;
    bool written;
  };

  std::vector<Touch> all_;
  std::vector<std::pair<const comm::Communicator*, size_t>> known_;  // by group: what of all_ it has waited for
};

}  // namespace kintsugi::run
