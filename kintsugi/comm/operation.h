// An operation as data, and the checks that every backend shares. A backend derives from CheckedCommunicator and
// implements enqueue().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

enum class Kind : uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  scatter,
  gather,
  all_to_all,
  barrier,
  send,
  receive,
};

std::string_view name_of(Kind kind);
std::string_view name_of(Reduction reduction);

// One collective or message, as one rank sees it. `bytes` is the same on all members: the size of the larger buffer,
// which is size() parts where there are parts. The `root` of a send or receive is the other rank.
struct Operation {
  Kind kind = Kind::barrier;
  tensor::DType dtype = tensor::DType::u8;  // of reductions
  Reduction reduction = Reduction::sum;     // of reductions
  int root = -1;                            // -1: the kind has none
  size_t bytes = 0;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;

  bool is_message() const { return kind == Kind::send || kind == Kind::receive; }
  bool reduces() const;    // has dtype and reduction
  bool has_parts() const;  // bytes are size() parts
  bool agrees_with(const Operation& other) const;
  // "reduce of 4096 bytes".
  std::string text() const;
  // With everything that members must agree on: "reduce of 4096 bytes (sum of fp32, root 2)".
  std::string text_in_full() const;
};

// Makes an Operation of each call. InternalError if ranks or sizes do not fit, before anything is enqueued.
class CheckedCommunicator : public Communicator {
 public:
  Event all_reduce(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                   Reduction reduction) final;
  Event reduce(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype, Reduction reduction,
               int root) final;
  Event broadcast(std::span<std::byte> data, int root) final;
  Event all_gather(std::span<const std::byte> in, std::span<std::byte> out) final;
  Event reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                       Reduction reduction) final;
  Event scatter(std::span<const std::byte> in, std::span<std::byte> out, int root) final;
  Event gather(std::span<const std::byte> in, std::span<std::byte> out, int root) final;
  Event all_to_all(std::span<const std::byte> in, std::span<std::byte> out) final;
  Event send(std::span<const std::byte> data, int to) final;
  Event receive(std::span<std::byte> data, int from) final;
  Event exchange(std::span<const Message> messages) final;
  Event barrier() final;

 protected:
  // One operation of any kind, or up to kMaxExchange messages, which all start before any of them is waited for.
  // Returns the event of the last.
  virtual Event enqueue(std::span<const Operation> operations) = 0;
  // A message of a rank to itself; they do not overlap.
  virtual void copy_own(const std::byte* from, std::byte* to, size_t bytes);

 private:
  Event enqueue(const Operation& operation) { return enqueue({&operation, 1}); }
  void send_to_itself(std::span<const Message> messages);
  void check_root(Kind kind, int root) const;
  void check_size(Kind kind, std::string_view buffer, size_t have, size_t need) const;
  void check_elements(Kind kind, size_t bytes, tensor::DType dtype) const;
};

// For operations that members have enqueued on their devices: on the host they meet by a barrier, or by messages
// without bytes. The event is of `host`.
Event meet(Communicator& host, std::span<const Operation> operations);

// `ranks` are distinct, of a world of `size`, and include `rank`; else InternalError.
void check_group(std::span<const int> ranks, int rank, int size);
// InternalError for more messages than a group may have open, or a collective if it is for messages alone.
void check_room(std::span<const Operation> operations, const GroupOptions& options);
// UserError for a time limit within which nothing could end.
void check_options(const WorldOptions& options);

}  // namespace kintsugi::comm
