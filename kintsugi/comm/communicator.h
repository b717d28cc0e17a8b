// Communication between ranks. Every operation is enqueued and returns an event; the caller must not touch its buffers
// until it has waited for the event. Operations allocate nothing.
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

// What the ranks of a world are.
enum class RankKind {
  single,   // one rank, in this process
  thread,   // all of them are threads of this process
  process,  // each is a process of its own, which abort() ends
};

// The properties that a backend guarantees.
struct Backend {
  std::string_view name;
  RankKind ranks = RankKind::single;
  // True: reductions add element by element in the order of ranks, ((x0 + x1) + x2) + ..., in fp32 for bf16 and fp16
  // with one rounding at the end, so that the bits do not depend on the backend. False: the order is the backend's,
  // and may change with the number of bytes or of ranks.
  bool adds_in_rank_order = false;
  // True: what a rank enqueues in a group is done in that order, an exchange as a whole, each when the peers have come
  // to theirs. So two ranks that both send before they receive may wait forever: exchange() is for that.
  bool one_at_a_time = false;
};

// A handle of an enqueued operation, for wait() of the communicator that made it.
struct Event {
  uint64_t number = 0;
};

// A message of an exchange: what this rank sends to a rank of the group, or receives from it.
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

// How many operations of a group a rank may have open at one time; a further one waits until older ones end.
struct GroupOptions {
  size_t collectives = 256;  // 0: the group is for messages alone
  size_t messages = 64;      // from one rank to another, each until both have waited for it; and of one exchange
  // Of groups whose work is done on devices (device_groups.h): sums are added in the order of ranks, for which this
  // memory of the device holds what comes from others (nccl/group.h); and how long the device may do nothing of what
  // all have enqueued.
  bool in_rank_order = false;
  std::span<std::byte> sums = {};
  std::chrono::milliseconds time_limit{600'000};
};

// A wait that exceeded its time limit, or whose peer has ended. `arrived` and `missing` are ranks of the group that
// have and have not enqueued their part.
class Timeout : public base::UserError {
 public:
  Timeout(const std::string& what, std::vector<int> arrived_, std::vector<int> missing_)
      : base::UserError("comm", "{}", what), arrived(std::move(arrived_)), missing(std::move(missing_)) {}

  std::vector<int> arrived, missing;
};

// A group of ranks, numbered from 0. Buffers hold size() parts of equal length where stated.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual const Backend& backend() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // out: the reduction of the inputs of all ranks; out may be in.
  virtual Event all_reduce(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                           Reduction reduction) = 0;
  // out, of the root alone: the reduction of the inputs of all ranks.
  virtual Event reduce(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                       Reduction reduction, int root) = 0;
  virtual Event broadcast(std::span<std::byte> data, int root) = 0;
  // out: size() parts, that of rank i at i; in may be the own part of out.
  virtual Event all_gather(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // in: size() parts; out: the reduction of part rank() of all ranks; out may be the own part of in.
  virtual Event reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                               Reduction reduction) = 0;
  // in, of the root: size() parts; out: the part of this rank.
  virtual Event scatter(std::span<const std::byte> in, std::span<std::byte> out, int root) = 0;
  // out, of the root: size() parts.
  virtual Event gather(std::span<const std::byte> in, std::span<std::byte> out, int root) = 0;
  // in, out: size() parts; part i of in goes to rank i. They do not overlap.
  virtual Event all_to_all(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // Messages from one rank to another arrive in the order in which they were sent. A send ends when its receive has
  // started. A rank must not send to itself.
  virtual Event send(std::span<const std::byte> data, int to) = 0;
  virtual Event receive(std::span<std::byte> data, int from) = 0;
  // Messages that start together: none waits for another, whatever their order. The event is done when all are.
  // Messages from one rank to another keep their order, also relative to send() and receive(). A message of a rank to
  // itself is received in the same exchange. At most kMaxExchange messages; with none the event is done at once.
  virtual Event exchange(std::span<const Message> messages) = 0;
  virtual Event barrier() = 0;

  // Returns when the event and all older ones of this communicator are done. Timeout if that takes longer than the
  // time limit, or if the world has ended.
  virtual void wait(Event event) = 0;
  // Of groups whose work is done on devices: whether the next operation must come after what this rank has enqueued
  // there, as it does if nothing is said. It need not if it touches nothing that the rank has touched since the last
  // operation that came after it, or only reads what was read.
  virtual void next_waits(bool) {}
  // Makes progress on what this rank has enqueued, in all of its communicators; never blocks.
  virtual void progress() {}
};

// All ranks of a run, as seen by one of them.
class World {
 public:
  virtual ~World() = default;

  virtual const Backend& backend() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // The communicator of `ranks` (of the world, in the order of the group), which include this rank. All members call
  // this, for their common groups in the same order, each with its own options. UserError if they do not agree,
  // Timeout if one does not call.
  virtual std::unique_ptr<Communicator> group(std::span<const int> ranks, const GroupOptions& options = {}) = 0;
  // Ends the run for all ranks: their waits throw, now or soon. For a rank that ends with an error.
  virtual void abort(const std::string& reason) = 0;
  // This rank leaves it to another to say what went wrong, and to end the run: nobody need wait for a word of it.
  virtual void leave_to_others() {}
};

struct WorldOptions {
  std::chrono::milliseconds time_limit{600'000};  // of every wait
  // Of mpi: a folder that all nodes see. When a wait takes too long, ranks write their progress there, so that others
  // can report who has not arrived. "": nothing is known of ranks on other nodes.
  std::string folder = "";
  bool share_memory = true;  // of mpi; false: as if each rank had a node of its own
};

// The world of one rank, in this process.
std::unique_ptr<World> self_world();
std::unique_ptr<Communicator> self_communicator();

// The ranks of one process, a world for each of its threads.
std::vector<std::unique_ptr<World>> thread_worlds(int ranks, const WorldOptions& options = {});

}  // namespace kintsugi::comm
