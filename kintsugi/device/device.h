// A device that computes: memory of its own, and streams of work that it does while the host goes on. The only place
// of vendors' runtimes; what is above sees this interface alone.
//
// Work is enqueued in a stream and done in the order of the stream; between streams there is no order but that of
// events. A stream knows by a clock of its own what it comes after already, and waits only for what is new. Memory of
// the device is reached by kernels and copies, never through a pointer that the host follows. One stream is used by one
// thread at a time; an event may be waited for by another than that which recorded it.
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

// Work that is being captured: that of the stream in which the capture began, and of those that came to wait for it.
struct Capture {
  std::atomic<bool> open = true;
};

// The blocks of a kernel, and how many of them side by side in x are a cluster, of which there are whole ones (gpu.h).
template <typename Size>
struct Grid {
  Grid(Size blocks_, unsigned cluster_ = 1) : blocks(blocks_), cluster(cluster_) {}
  Size blocks;
  unsigned cluster;
};

// A point in the work of a stream. One within a capture is for streams alone.
class Event {
 public:
  virtual ~Event() = default;
  // All that was enqueued before it was recorded; true if it never was, or in a capture.
  virtual bool done() = 0;
  virtual void wait() = 0;  // the host waits until it is
  // The same; `meanwhile` is called now and then, and ends the wait by throwing.
  virtual void wait(const std::function<void()>& meanwhile) = 0;

 protected:
  bool captured() const { return capture_ != nullptr; }

 private:
  friend class Stream;
  bool recorded_ = false;
  VectorClock known_;                 // to what had been enqueued before it
  std::shared_ptr<Capture> capture_;  // within which it was recorded
};

// Work that was captured, and can be launched again and again with the same operands.
class Graph {
 public:
  virtual ~Graph() = default;
};

// Memory that work reads and writes, and what the work is called.
struct Access {
  std::string_view what;
  std::span<const std::span<const std::byte>> reads, writes;
};

class Stream {
 public:
  virtual ~Stream() = default;

  // Both may be memory of the device, or of the host; that of the host must be pinned, and stay as it is until the
  // copy is done. They do not overlap.
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  virtual void zero(void* to, int64_t bytes) = 0;
  void record(Event& event);
  // What is enqueued from here on waits for it, unless that follows from what was waited for before; the host does not.
  void wait(Event& event);
  // The same for all that is enqueued in another stream, by an event that is recorded there if it is needed.
  void wait_for(Stream& other, Event& event) {
    if (follows(other)) return;
    other.record(event);
    wait(event);
  }
  bool captured() const { return within() != nullptr; }
  // Whether both are within one capture, or in none.
  bool beside(const Stream& other) const { return within() == other.within(); }
  // Whether what is enqueued from here on comes after all that is enqueued in another stream.
  bool follows(const Stream& other) const {
    return beside(other) && !other.order().worked && order().known.knows(other.order().known);
  }
  virtual void synchronize() = 0;  // the host waits for all that was enqueued. UserError if the device failed
  // The same; `meanwhile` is called now and then, and ends the wait by throwing.
  virtual void synchronize(const std::function<void()>& meanwhile) {
    if (meanwhile) meanwhile();
    synchronize();
  }

  // What is enqueued from begin_capture() on is not done but kept, until end_capture(); of other streams too, from
  // where they wait for an event of this capture on. At its end this stream has waited for all of it. No captured
  // stream waits for what was enqueued before. The thread that begins a capture ends it.
  void begin_capture();
  std::unique_ptr<Graph> end_capture();
  // In the stream in which it was captured: as if all of it stood here.
  void launch(Graph& graph) {
    works();
    start(graph);
  }

  // A kernel may begin before the one that stands before it has ended, where both are made for it (device/gpu.h,
  // launch_overlapping). What that one writes; null where the last that was enqueued is not such a kernel, or something
  // else than kernels stands behind it.
  using Bytes = std::span<const std::byte>;
  const std::vector<Bytes>* written_before() const { return overlaps_ ? &written_ : nullptr; }
  // For kernels that begin so. `writes` is all that they write.
  void* native_overlapping(std::vector<Bytes> writes) {
    works();
    written_ = std::move(writes);
    overlaps_ = true;
    return handle();
  }

  virtual bool enqueues() const { return true; }  // false: what would be enqueued is dropped
  // Where nothing is enqueued: memory holds nothing yet, and a kernel may measure there how long it takes.
  virtual bool measures() const { return false; }

  // Of a device that checks the order of accesses: what the kernels that are enqueued next do. Copies and zero() need
  // no word.
  virtual bool checks() const { return false; }
  virtual void announce(const Access&) {}

  // The vendor's handle, for libraries: to enqueue something.
  void* native() {
    works();
    return handle();
  }

 protected:
  Stream();
  // To be called where something is enqueued.
  void works() {
    order().worked = true;
    overlaps_ = false;
  }

  virtual void put(Event& event) = 0;     // record
  virtual void follow(Event& event) = 0;  // wait
  virtual void begin() = 0;
  virtual std::unique_ptr<Graph> end() = 0;
  virtual void start(Graph& graph) = 0;
  virtual void* handle() { return nullptr; }

 private:
  struct Order {
    VectorClock known;    // what the stream comes after, itself too
    bool worked = false;  // since the clock ticked
  };

  // The capture that is under way, if this stream is part of it.
  const Capture* within() const { return capture_ && capture_->open ? capture_.get() : nullptr; }
  // Waits within a capture say nothing of what is enqueued outside it.
  const Order& order() const { return within() ? within_ : outside_; }
  Order& order() { return within() ? within_ : outside_; }

  const size_t number_;
  Order outside_, within_;
  std::shared_ptr<Capture> capture_;  // the last that it was part of
  bool overlaps_ = false;             // the last that was enqueued lets a kernel begin before it has ended
  std::vector<Bytes> written_;        // by it
};

// Nothing is enqueued in it: for kernels that are called for what the host does before.
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

// Memory that ends with the object.
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

// Names what the host enqueues, for a profiler that looks on.
class Ranges {
 public:
  virtual ~Ranges() = default;
  virtual void begin(const char* name) = 0;
  virtual void end() = 0;  // of the one that began last
};

struct Properties {
  std::string name;           // "NVIDIA H100 80GB HBM3"
  int64_t memory = 0;         // bytes, of the whole device
  int64_t free = 0;           // bytes, now
  int processors = 0;         // multiprocessors, compute units
  int warp = 32;              // threads that run in step
  int major = 0, minor = 0;   // of a vendor's generation: 9, 0 for sm_90
  int64_t context = 0;        // bytes that the driver took when it was opened, beside what is allocated; 0: not known
  int driver = 0;             // the version of CUDA that the driver knows, 13000 for 13.0; 0: it is none of NVIDIA's
  std::string identity = {};  // no other device of any machine has it; empty: not known
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view kind() const = 0;       // "emulated", "cuda": for texts
  virtual bool emulated() const { return false; }  // its kernels are those that the host's compiler made
  virtual Properties properties() = 0;
  virtual int count() { return 1; }  // devices of this kind in this machine

  // Aligned to 256 bytes, and zero. UserError, with what is free, if the device has not that much.
  virtual std::unique_ptr<Memory> allocate(int64_t bytes) = 0;
  // Memory of the host that copies reach directly.
  virtual std::unique_ptr<Memory> allocate_pinned(int64_t bytes) = 0;

  virtual std::unique_ptr<Stream> stream() = 0;
  virtual std::unique_ptr<Event> event() = 0;
  virtual Ranges* ranges() { return nullptr; }  // null: no profiler looks on
  // What the host itself does with pinned memory, as Stream::announce.
  virtual void announce(const Access&) {}

  // The function of that name in the module of this device; null if there is none. For kernels, which stand in the
  // same module.
  virtual void* symbol(const char* name) = 0;
};

// "emulated" or "cuda", the card with that number. UserError if it is not to be had, with what would help.
std::unique_ptr<Device> open_device(std::string_view kind, int number = 0);

// Whether there is one that can be used, for a run that may choose; and if there is one that cannot, why.
struct Found {
  bool usable = false;
  std::string why_not = {};
};
const Found& find_device(std::string_view kind);

// The number of the device for a rank that is a process, by its place among those of this machine: each has one of its
// own, or all have the only one. UserError if there are fewer devices than that.
int device_of_rank(std::string_view kind, int local_rank);

}  // namespace kintsugi::device
