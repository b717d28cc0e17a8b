// Ranks that talk: one of the two interfaces to the world. Every call enqueues and returns an event; the buffers stay
// untouched by the caller until it has been waited for. Reductions add in the order of ranks, element by element:
// ((x0 + x1) + x2) + ..., in fp32 for bf16 and fp16 with one rounding at the end. Nothing is allocated by a call.
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

// What was enqueued, for wait() of the communicator that made it.
struct Event {
  uint64_t number = 0;
};

// A wait that passed its time limit, or whose peer has ended. `arrived` and `missing` are ranks of the group that have
// and have not enqueued their part.
class Timeout : public base::UserError {
 public:
  Timeout(const std::string& what, std::vector<int> arrived_, std::vector<int> missing_)
      : base::UserError("comm", "{}", what), arrived(std::move(arrived_)), missing(std::move(missing_)) {}

  std::vector<int> arrived, missing;
};

// A group of ranks, numbered from 0. Buffers hold size() parts of equal length where a comment says so.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::string_view backend() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // out: the reduction of everyone's in; out may be in.
  virtual Event all_reduce(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                           Reduction reduction) = 0;
  // out, of the root alone: the reduction of everyone's in.
  virtual Event reduce(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                       Reduction reduction, int root) = 0;
  virtual Event broadcast(std::span<std::byte> data, int root) = 0;
  // out: size() parts, that of rank i at i; in may be the own part of out.
  virtual Event all_gather(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // in: size() parts; out: the reduction of everyone's part rank(); out may be the own part of in.
  virtual Event reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                               Reduction reduction) = 0;
  // in, of the root: size() parts; out: the part of this rank.
  virtual Event scatter(std::span<const std::byte> in, std::span<std::byte> out, int root) = 0;
  // out, of the root: size() parts.
  virtual Event gather(std::span<const std::byte> in, std::span<std::byte> out, int root) = 0;
  // in, out: size() parts; part i of in goes to rank i. They do not overlap.
  virtual Event all_to_all(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // Messages from one rank to another arrive in the order in which they were sent. A send ends when it was received.
  virtual Event send(std::span<const std::byte> data, int to) = 0;
  virtual Event receive(std::span<std::byte> data, int from) = 0;
  virtual Event barrier() = 0;

  // Returns when the event is done; events of one communicator are waited for in the order in which they were made, or
  // all older ones are completed first. Timeout where it is not done within the time limit, or where the world has
  // ended.
  virtual void wait(Event event) = 0;
  // Lets what was enqueued go on; never blocks.
  virtual void progress() {}
};

// All ranks of a run, as one of them sees them.
class World {
 public:
  virtual ~World() = default;

  virtual std::string_view backend() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // The communicator of `ranks` (of the world, in the order of the group), which this rank is among. The members call
  // it in the same order. UserError or Timeout where one does not come.
  virtual std::unique_ptr<Communicator> group(std::span<const int> ranks) = 0;
  // Ends the run for everyone: waits of all ranks throw, now or soon. For a rank that goes down with an error.
  virtual void abort(const std::string& reason) = 0;
};

struct WorldOptions {
  std::chrono::milliseconds time_limit{600'000};  // of every wait
  // Of mpi. A folder that all nodes see, where ranks say how far they are once one is late, so that the others know who
  // has come; "": of ranks on other nodes nothing is known.
  std::string folder = "";
  bool share_memory = true;  // ranks of a node know of each other; false: as if each had a node of its own
};

// The world of one rank, in this process.
std::unique_ptr<World> self_world();
std::unique_ptr<Communicator> self_communicator();

// The ranks of one process, a world for each of its threads.
std::vector<std::unique_ptr<World>> thread_worlds(int ranks, const WorldOptions& options = {});

}  // namespace kintsugi::comm
