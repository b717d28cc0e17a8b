// An operation as data, and the checks that all backends share. A backend derives from CheckedCommunicator and
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
// which holds size() parts if the operation has parts. `root` of a send or receive is the peer.
struct Operation {
  Kind kind = Kind::barrier;
  tensor::DType dtype = tensor::DType::u8;  // reductions only
  Reduction reduction = Reduction::sum;     // reductions only
  int root = -1;                            // -1: the operation has no root
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

// Converts each call to an Operation. Throws InternalError on invalid ranks or sizes, before enqueueing anything.
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
  // Enqueues one operation of any kind, or up to kMaxExchange messages, all of which start before any is waited for.
  // Returns the event of the last.
  virtual Event enqueue(std::span<const Operation> operations) = 0;
  // Copies a message from a rank to itself; the buffers do not overlap.
  virtual void copy_own(const std::byte* from, std::byte* to, size_t bytes);

 private:
  Event enqueue(const Operation& operation) { return enqueue({&operation, 1}); }
  void send_to_itself(std::span<const Message> messages);
  void check_root(Kind kind, int root) const;
  void check_size(Kind kind, std::string_view buffer, size_t have, size_t need) const;
  void check_elements(Kind kind, size_t bytes, tensor::DType dtype) const;
};

// Host-side rendezvous for operations that members enqueue on their devices: a barrier, or empty messages. The event
// belongs to `host`.
Event meet(Communicator& host, std::span<const Operation> operations);

// Throws InternalError unless `ranks` are distinct ranks of a world of `size` and include `rank`.
void check_group(std::span<const int> ranks, int rank, int size);
// Throws InternalError for more messages than the group's limit, or for a collective if the group carries only
// messages.
void check_room(std::span<const Operation> operations, const GroupOptions& options);
// Throws UserError for a time limit within which nothing could complete.
void check_options(const WorldOptions& options);

}  // namespace kintsugi::comm
