// Ranks that talk: one of the two interfaces to the world. Every call enqueues and returns an event; the buffers stay
// untouched by the caller until it has been waited for. Reductions add in the order of ranks, element by element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::comm {

enum class Reduction { sum, mean, max, min };

// What was enqueued. wait() returns when it is done, or throws a UserError after the time limit that names the
// collective, the group and who did not come.
class Event {
 public:
  virtual ~Event() = default;
  virtual void wait() = 0;
};

using EventPtr = std::unique_ptr<Event>;

// A group of ranks. `elements` counts those of one rank's part; buffers hold size() parts where a name says so.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::string_view backend() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual EventPtr all_reduce(std::span<std::byte> data, tensor::DType dtype, Reduction reduction) = 0;
  // out: size() parts, that of rank i at i.
  virtual EventPtr all_gather(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // in: size() parts; out: the sum of everyone's part rank().
  virtual EventPtr reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out, tensor::DType dtype,
                                  Reduction reduction) = 0;
  // in, out: size() parts; part i of in goes to rank i.
  virtual EventPtr all_to_all(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  virtual EventPtr broadcast(std::span<std::byte> data, int root) = 0;
  virtual EventPtr send(std::span<const std::byte> data, int to) = 0;
  virtual EventPtr receive(std::span<std::byte> data, int from) = 0;
  virtual EventPtr barrier() = 0;
};

// The group of one rank, in this process.
std::unique_ptr<Communicator> self_communicator();

}  // namespace kintsugi::comm
