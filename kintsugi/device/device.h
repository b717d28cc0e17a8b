// A compute device: its memory, and streams of work that it executes asynchronously. Vendor runtimes are used only
// below this interface.
//
// Work enqueued in a stream executes in order; work of different streams is ordered only by events. A stream keeps a
// vector clock of the work that it already follows, and omits redundant waits. Device memory is accessed by kernels and
// copies only; the host never dereferences a pointer to it. A stream is used by one thread at a time; an event may be
// waited for by another thread than recorded it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kintsugi/device/vector_clock.h"

namespace kintsugi::device {

// A capture in progress: the work of the stream in which it began, and of the streams that waited for it.
struct Capture {
  std::atomic<bool> open = true;
};

// The blocks of a kernel launch, and the number of blocks, adjacent in x, that form a cluster; the grid holds whole
// clusters (gpu.h).
template <typename Size>
struct Grid {
  Grid(Size blocks_, unsigned cluster_ = 1) : blocks(blocks_), cluster(cluster_) {}
  Size blocks;
  unsigned cluster;
};

// A point in the work of a stream. An event recorded in a capture can be waited for by streams only.
class Event {
 public:
  virtual ~Event() = default;
  // Whether all work enqueued before it was recorded has completed; true if it was never recorded, or in a capture.
  virtual bool done() = 0;
  virtual void wait() = 0;  // blocks the host until done
  // As wait(); calls `meanwhile` periodically, which may throw to end the wait.
  virtual void wait(const std::function<void()>& meanwhile) = 0;

 protected:
  bool captured() const { return capture_ != nullptr; }

 private:
  friend class Stream;
  bool recorded_ = false;
  VectorClock known_;                 // of the work enqueued before it
  std::shared_ptr<Capture> capture_;  // in which it was recorded
};

// Captured work that can be launched repeatedly with the same operands.
class Graph {
 public:
  virtual ~Graph() = default;
};

// The memory that a piece of work reads and writes, and its name.
struct Access {
  std::string_view what;
  std::span<const std::span<const std::byte>> reads, writes;
};

class Stream {
 public:
  virtual ~Stream() = default;

  // Source and target are device memory or pinned host memory; host memory must stay unchanged until the copy
  // completes. They must not overlap.
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  virtual void zero(void* to, int64_t bytes) = 0;
  void record(Event& event);
  // Makes work enqueued later wait for the event, unless earlier waits imply it. Does not block the host.
  void wait(Event& event);
  // As wait(), for all work enqueued in another stream; records `event` there if necessary.
  void wait_for(Stream& other, Event& event) {
    if (follows(other)) return;
    other.record(event);
    wait(event);
  }
  bool captured() const { return within() != nullptr; }
  // Whether both are in the same capture, or in none.
  bool beside(const Stream& other) const { return within() == other.within(); }
  // Whether work enqueued from here on follows all work enqueued in the other stream.
  bool follows(const Stream& other) const {
    return beside(other) && !other.order().worked && order().known.knows(other.order().known);
  }
  virtual void synchronize() = 0;  // blocks the host until all enqueued work is done; UserError if the device failed
  // As synchronize(); calls `meanwhile` periodically, which may throw to end the wait.
  virtual void synchronize(const std::function<void()>& meanwhile) {
    if (meanwhile) meanwhile();
    synchronize();
  }

  // Work enqueued between begin_capture() and end_capture() is captured instead of executed, including that of other
  // streams from where they wait for an event of this capture. Before end_capture(), this stream must have waited for
  // all of it. Captured streams do not wait for work enqueued before the capture. The thread that begins a capture ends
  // it.
  void begin_capture();
  std::unique_ptr<Graph> end_capture();
  // Enqueues the graph in the stream in which it was captured.
  void launch(Graph& graph) {
    works();
    start(graph);
  }

  // A kernel may start before the preceding kernel has finished if both support it (device/gpu.h, launch_overlapping).
  // Returns what the preceding kernel writes, or null if the last work enqueued was not such a kernel.
  using Bytes = std::span<const std::byte>;
  const std::vector<Bytes>* written_before() const { return overlaps_ ? &written_ : nullptr; }
  // For launching such a kernel; `writes` is everything it writes.
  void* native_overlapping(std::vector<Bytes> writes) {
    works();
    written_ = std::move(writes);
    overlaps_ = true;
    return handle();
  }

  virtual bool enqueues() const { return true; }  // false: work is discarded instead of enqueued
  // If nothing is enqueued: memory has no contents yet, and a kernel may run there to measure its time.
  virtual bool measures() const { return false; }

  // On a device that checks the order of accesses: declares the accesses of the kernels enqueued next. Copies and
  // zero() need no declaration.
  virtual bool checks() const { return false; }
  virtual void announce(const Access&) {}

  // The vendor's stream handle, for libraries that enqueue work.
  void* native() {
    works();
    return handle();
  }

 protected:
  Stream();
  // Call whenever work is enqueued.
  void works() {
    order().worked = true;
    overlaps_ = false;
  }

  virtual void put(Event& event) = 0;     // implements record()
  virtual void follow(Event& event) = 0;  // implements wait()
  virtual void begin() = 0;
  virtual std::unique_ptr<Graph> end() = 0;
  virtual void start(Graph& graph) = 0;
  virtual void* handle() { return nullptr; }

 private:
  struct Order {
    VectorClock known;    // what the stream follows, itself included
    bool worked = false;  // since the clock last ticked
  };

  // The capture in progress, if this stream is part of it.
  const Capture* within() const { return capture_ && capture_->open ? capture_.get() : nullptr; }
  // Waits within a capture do not order work enqueued outside it.
  const Order& order() const { return within() ? within_ : outside_; }
  Order& order() { return within() ? within_ : outside_; }

  const size_t number_;
  Order outside_, within_;
  std::shared_ptr<Capture> capture_;  // the last it was part of
  bool overlaps_ = false;             // whether a kernel may start before the last work enqueued has finished
  std::vector<Bytes> written_;        // by that work
};

// Discards all work: for calling kernels only for the preparations they make on the host.
class NoStream : public Stream {
 public:
  explicit NoStream(bool measures = false) : measures_(measures) {}
  void copy(void*, const void*, int64_t) override {}
  void zero(void*, int64_t) override {}
  void synchronize() override {}
  using Stream::synchronize;
  bool enqueues() const override { return false; }
  bool measures() const override { return measures_; }

 protected:
  void put(Event&) override {}
  void follow(Event&) override {}
  void begin() override {}
  std::unique_ptr<Graph> end() override { return nullptr; }
  void start(Graph&) override {}

 private:
  bool measures_;
};

inline Stream::Stream()
    : number_([] {
        static std::atomic<size_t> made = 0;
        return made++;
      }()) {}

inline void Stream::record(Event& event) {
  overlaps_ = false;
  Order& own = order();
  if (own.worked) own.known.tick(number_);
  own.worked = false;
  event.recorded_ = true;
  event.known_ = own.known;
  event.capture_ = within() ? capture_ : nullptr;
  put(event);
}

inline void Stream::wait(Event& event) {
  overlaps_ = false;
  if (!event.recorded_) return;
  const bool joins = event.capture_.get() != within();
  if (!joins && order().known.knows(event.known_)) return;
  if (joins) {
    capture_ = event.capture_;
    within_ = {};
  }
  order().known.join(event.known_);
  follow(event);
}

inline void Stream::begin_capture() {
  overlaps_ = false;
  begin();
  capture_ = std::make_shared<Capture>();
  within_ = {};
}

inline std::unique_ptr<Graph> Stream::end_capture() {
  overlaps_ = false;
  if (capture_) capture_->open = false;
  capture_ = nullptr;
  return end();
}

// Memory that is freed with the object.
class Memory {
 public:
  virtual ~Memory() = default;
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 protected:
  Memory(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_;
  int64_t bytes_;
};

// Annotates what the host enqueues, for a profiler.
class Ranges {
 public:
  virtual ~Ranges() = default;
  virtual void begin(const char* name) = 0;
  virtual void end() = 0;  // ends the innermost range
};

struct Properties {
  std::string name;           // "NVIDIA H100 80GB HBM3"
  int64_t memory = 0;         // bytes, of the whole device
  int64_t free = 0;           // bytes available now
  int processors = 0;         // streaming multiprocessors or compute units
  int warp = 32;              // threads that execute in lockstep
  int major = 0, minor = 0;   // compute capability: 9, 0 for sm_90
  int64_t context = 0;        // bytes the driver took on opening the device, in addition to allocations; 0: unknown
  int driver = 0;             // CUDA version supported by the driver, 13000 for 13.0; 0: not NVIDIA
  std::string identity = {};  // unique across machines; empty: unknown
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view kind() const = 0;       // "emulated" or "cuda"
  virtual bool emulated() const { return false; }  // runs kernels compiled for the host
  virtual Properties properties() = 0;
  virtual int count() { return 1; }  // number of devices of this kind in the machine

  // Zeroed and aligned to 256 bytes. Throws UserError, stating the free memory, if the device cannot provide it.
  virtual std::unique_ptr<Memory> allocate(int64_t bytes) = 0;
  // Host memory that copies can access directly.
  virtual std::unique_ptr<Memory> allocate_pinned(int64_t bytes) = 0;

  virtual std::unique_ptr<Stream> stream() = 0;
  virtual std::unique_ptr<Event> event() = 0;
  virtual Ranges* ranges() { return nullptr; }  // null: no profiler is attached
  // Declares host accesses to pinned memory, as Stream::announce() does for the device.
  virtual void announce(const Access&) {}

  // A function of the device's module by name, or null. For kernels, which are in the same module.
  virtual void* symbol(const char* name) = 0;
};

// Opens "emulated", or the "cuda" device with that number. Throws UserError, with advice, if it is not available.
std::unique_ptr<Device> open_device(std::string_view kind, int number = 0);

// Whether a usable device exists, for a run that may choose; and if one exists but is unusable, why.
struct Found {
  bool usable = false;
  std::string why_not = {};
};
const Found& find_device(std::string_view kind);

// The device number for a rank that is a process, by its index on this machine: each rank has its own device, or all
// share the only one. Throws UserError if there are too few devices.
int device_of_rank(std::string_view kind, int local_rank);

}  // namespace kintsugi::device
