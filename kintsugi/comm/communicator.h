// Communication between ranks. Every operation is asynchronous: it is enqueued and returns an event, and the caller
// must not touch its buffers before waiting for the event. Operations do not allocate.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::comm {

enum class Reduction { sum, mean, max, min };

// How the ranks of a world are run.
enum class RankKind {
  single,   // one rank, in this process
  thread,   // all ranks are threads of this process
  process,  // each rank is a process, which abort() terminates
};

// Guarantees of a backend.
struct Backend {
  std::string_view name;
  RankKind ranks = RankKind::single;
  // True: reductions add element by element in rank order, ((x0 + x1) + x2) + ..., accumulating bf16 and fp16 in fp32
  // and rounding once, so that the bits do not depend on the backend. False: the backend chooses the order, which may
  // vary with the number of bytes or ranks.
  bool adds_in_rank_order = false;
  // True: operations of a group execute one at a time in the order in which a rank enqueued them (an exchange counts as
  // one), and each waits for its peers. Two ranks that both send before they receive may therefore deadlock; use
  // exchange().
  bool one_at_a_time = false;
};

// Handle of an enqueued operation, for wait() of the communicator that returned it.
struct Event {
  uint64_t number = 0;
};

// One message of an exchange: a send to, or a receive from, a rank of the group.
struct Message {
  static Message to(int rank, std::span<const std::byte> data) { return {.rank = rank, .sent = data}; }
  static Message from(int rank, std::span<std::byte> data) {
    return {.rank = rank, .receives = true, .received = data};
  }

  int rank = -1;
  bool receives = false;
  std::span<const std::byte> sent = {};
  std::span<std::byte> received = {};
};
inline constexpr size_t kMaxExchange = 64;  // messages

// Limits on the operations of a group that a rank may have in flight; a further one blocks until the oldest complete.
struct GroupOptions {
  size_t collectives = 256;  // 0: the group carries only messages
  size_t messages = 64;      // per pair of ranks and direction, each until both have waited for it; also per exchange
  // Only for groups that execute on devices (device_groups.h). in_rank_order: reduce in rank order. sums: device memory
  // that receives the terms of the other ranks for that (nccl/group.h). time_limit: how long the device may make no
  // progress on operations that all ranks have enqueued.
  bool in_rank_order = false;
  std::span<std::byte> sums = {};
  std::chrono::milliseconds time_limit{600'000};
};

// A wait exceeded its time limit, or a peer has ended. `arrived` and `missing` are the ranks of the group that have and
// have not enqueued the operation.
class Timeout : public base::UserError {
 public:
  Timeout(const std::string& what, std::vector<int> arrived_, std::vector<int> missing_)
      : base::UserError("comm", "{}", what), arrived(std::move(arrived_)), missing(std::move(missing_)) {}

  std::vector<int> arrived, missing;
};

// A group of ranks, numbered from 0. "Parts" are size() equal pieces of a buffer, part i belonging to rank i.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual const Backend& backend() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // out: reduction of the inputs of all ranks; `out` may alias `in`.
  virtual Event all_reduce(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                           Reduction reduction) = 0;
  // out: reduction of the inputs of all ranks, on the root only.
  virtual Event reduce(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                       Reduction reduction, int root) = 0;
  virtual Event broadcast(std::span<std::byte> data, int root) = 0;
  // out: size() parts, part i from rank i; `in` may be the part of this rank in `out`.
  virtual Event all_gather(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // in: size() parts; out: reduction of part rank() over all ranks; `out` may be the part of this rank in `in`.
  virtual Event reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                               Reduction reduction) = 0;
  // in: size() parts, on the root only; out: the part of this rank.
  virtual Event scatter(std::span<const std::byte> in, std::span<std::byte> out, int root) = 0;
  // out: size() parts, on the root only.
  virtual Event gather(std::span<const std::byte> in, std::span<std::byte> out, int root) = 0;
  // in, out: size() parts; part i of `in` goes to rank i. The buffers must not overlap.
  virtual Event all_to_all(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // Messages between two ranks arrive in the order sent. A send completes once its receive has started. A rank must not
  // send to itself.
  virtual Event send(std::span<const std::byte> data, int to) = 0;
  virtual Event receive(std::span<std::byte> data, int from) = 0;
  // Starts all messages together: none waits for another, whatever their order. The event completes when all have.
  // Messages between two ranks keep their order, also relative to send() and receive(). A message to oneself is
  // received in the same exchange. At most kMaxExchange messages; an empty exchange completes at once.
  virtual Event exchange(std::span<const Message> messages) = 0;
  virtual Event barrier() = 0;

  // Returns when this event and all earlier ones of this communicator have completed. Throws Timeout after the time
  // limit, or if the world has ended.
  virtual void wait(Event event) = 0;
  // For groups that execute on devices: whether the next operation must wait for the work that this rank has enqueued
  // on the device (default: true). Pass false only if the operation touches nothing that the rank has accessed since
  // the last operation that waited, or only reads what was only read.
  virtual void next_waits(bool) {}
  // Makes progress on everything this rank has enqueued, in all of its communicators. Never blocks.
  virtual void progress() {}
};

// All ranks of a run, as seen from one of them.
class World {
 public:
  virtual ~World() = default;

  virtual const Backend& backend() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Creates the communicator of `ranks` (world ranks, in group order; includes this rank). Collective over the members,
  // which create their common groups in the same order; options may differ. Throws UserError if the members disagree,
  // Timeout if one does not call.
  virtual std::unique_ptr<Communicator> group(std::span<const int> ranks, const GroupOptions& options = {}) = 0;
  // Ends the run for all ranks, whose waits then throw. Called by a rank that failed.
  virtual void abort(const std::string& reason) = 0;
  // Another rank reports the error and ends the run: peers must not wait for an error report from this rank.
  virtual void leave_to_others() {}
};

struct WorldOptions {
  std::chrono::milliseconds time_limit{600'000};  // per wait
  // mpi: a folder that all nodes can access. When a wait times out, ranks write their progress there, so that others
  // can report who has not arrived. "": ranks on other nodes are reported as unknown.
  std::string folder = "";
  bool share_memory = true;  // mpi; false: treat each rank as alone on its node
};

// The world of one rank, in this process.
std::unique_ptr<World> self_world();
std::unique_ptr<Communicator> self_communicator();

// One world per thread, for ranks that are threads of this process.
std::vector<std::unique_ptr<World>> thread_worlds(int ranks, const WorldOptions& options = {});

}  // namespace kintsugi::comm
