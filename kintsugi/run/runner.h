// How an executor holds its memory and runs a list of calls: on the host (host_runner.h) or on a device
// (device_runner.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/profile/recorder.h"
#include "kintsugi/program/program.h"
#include "kintsugi/run/device_side.h"
#include "kintsugi/run/file_store.h"
#include "kintsugi/tensor/view.h"

namespace kintsugi::run {

// An instruction of a call that is run.
struct Watched {
  const program::CallList& list;
  const program::Call& call;
  const program::Body& body;
  const program::Instruction& instruction;
};
using Watch = std::function<void(const Watched&)>;

// Observes the run of a list.
struct Probe {
  profile::Recorder* recorder = nullptr;  // null: no times are recorded
  const Watch* watch = nullptr;           // called after each kernel and each wait; null: nothing is

  bool observes() const { return recorder != nullptr || watch != nullptr; }
  void visited(const Watched& w) const {
    if (watch && (w.instruction.kind == program::Kind::compute || w.instruction.kind == program::Kind::wait))
      (*watch)(w);
  }
};

// Fills the inputs of a call, at the addresses of Runner::input_address.
class Filler {
 public:
  virtual void fill(const program::CallList& list, const program::Call& call) const = 0;

 protected:
  ~Filler() = default;
};

class Runner {
 public:
  virtual ~Runner() = default;

  // The memory of the program: states, then the arena. On a device, only kernels can access it.
  virtual std::byte* memory() const = 0;
  virtual int64_t bytes() const = 0;
  virtual DeviceSide* device() const { return nullptr; }  // null: the host's
  virtual FileStore* file() const { return nullptr; }     // null if the program has none, or computes on a device
  virtual bool captured(program::Step) const { return false; }
  virtual int64_t waited() const { return 0; }  // ns, for other ranks; on the host

  // Copies, once all that was enqueued is done.
  virtual void read(const std::byte* from, std::span<std::byte> to) const = 0;
  virtual void write(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void read_file(int64_t offset, std::span<std::byte> to) const = 0;
  virtual void write_file(int64_t offset, std::span<const std::byte> from) const = 0;
  // Scalars in fp64.
  virtual void read(std::span<const std::byte* const> from, std::span<double> to) const = 0;
  // Requests scalars as they are once all that was enqueued is done; answer() waits for the oldest open request.
  virtual void ask(std::span<const std::byte* const> from) = 0;
  virtual void answer(std::span<double> to) = 0;
  // The values of a view, as the host reads them, until the next call.
  virtual tensor::View on_host(const tensor::View& view) const = 0;

  // Where the host writes an input of a call. Throws InternalError if it has none in that buffer.
  virtual std::byte* input_address(const program::CallList& list, const program::Call& call,
                                   program::BufferId buffer) const = 0;

  // Runs the calls of a list; see Executor::run.
  virtual void run(program::Step step, kernels::Numbers& numbers, const Filler& filler, const Probe& probe) = 0;
};

// Sets batch_offset to that of the micro-batch of a call.
inline void begin_call(kernels::Numbers& numbers, const program::Call& call) {
  if (numbers.batch_rows > 0) numbers.batch_offset = numbers.batch_rows * std::max<int64_t>(0, call.micro_batch);
}

// [event, micro-batch]: what is open between a start and its wait.
template <typename T>
class OpenTransfer {
 public:
  explicit OpenTransfer(const program::Program& p) {
    int events = 0;
    for (const program::Body& body : p.bodies)
      for (const program::Instruction& i : body.instructions) events = std::max(events, i.event + 1);
    for (const program::CallList& list : p.lists)
      for (const program::Call& call : list.calls) micro_batches_ = std::max(micro_batches_, call.micro_batch + 1);
    all_.resize(static_cast<size_t>(events * micro_batches_));
  }
  T& of(const program::Instruction& i, const program::Call& call) {
    return all_[static_cast<size_t>(i.event * micro_batches_ + std::max<int64_t>(0, call.micro_batch))];
  }

 private:
  int64_t micro_batches_ = 1;  // of the longest list
  std::vector<T> all_;
};

}  // namespace kintsugi::run
