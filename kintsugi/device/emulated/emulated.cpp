#include "kintsugi/device/emulated/emulated.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/device/emulate.h"
#include "kintsugi/device/emulated/access_order.h"

namespace kintsugi::device {
namespace {

// The number after `name` in KINTSUGI_EMULATE.
std::optional<int64_t> fault(std::string_view name) {
  const char* text = std::getenv("KINTSUGI_EMULATE");
  const std::string_view all = text == nullptr ? "" : text;
  const size_t at = all.find(name);
  if (at == all.npos) return std::nullopt;
  return std::strtoll(all.data() + at + name.size(), nullptr, 10);
}

// What all emulated devices of the process share. A thread that waits does the work of any stream, so the lock is held
// while kernels run.
struct Shared {
  std::recursive_mutex mutex;
  AccessOrder order;
  emulate::Waits waits;
  int64_t left_out = -1;
  emulate::Allocated allocated;
  const std::optional<int64_t> memory = fault("memory=");
  std::optional<int64_t> fails_after = fault("fails_after=");

  // Whether a wait happens.
  bool waits_now(bool known) {
    if (known) ++waits.known;
    return waits.all++ != left_out;
  }
};

Shared& shared() {
  static auto* all = new Shared();  // to the end: memory may be freed by static values
  return *all;
}

// What this thread of the host knows to be done.
struct Host {
  size_t stream = 0;
  VectorClock clock;
};

Host& host() {
  thread_local Host own = {.stream = shared().order.add_stream(), .clock = {}};
  return own;
}

class HostMemory : public Memory {
 public:
  // `counted` is its kind in `allocated`.
  HostMemory(int64_t bytes, int64_t emulate::Allocated::*counted)
      : Memory(map(bytes, counted), bytes), counted_(counted) {
    if (data_ == nullptr) return;
    const std::lock_guard lock(shared().mutex);
    shared().order.look_at(data_, bytes_);
    shared().allocated.*counted_ += bytes;
  }
  ~HostMemory() override {
    if (data_ == nullptr) return;
    const std::lock_guard lock(shared().mutex);
    shared().order.forget(data_, bytes_);
    shared().allocated.*counted_ -= bytes_;
    ::munmap(data_, static_cast<size_t>(bytes_));
  }

 private:
  static std::byte* map(int64_t bytes, int64_t emulate::Allocated::*counted) {
    if (bytes == 0) return nullptr;
    const auto refuse = [&] {
      return base::UserError("device", "the device gives no more memory: {} are asked for, and {} are in use",
                             base::format_bytes(static_cast<uint64_t>(bytes)),
                             base::format_bytes(static_cast<uint64_t>(shared().allocated.device)));
    };
    {
      const std::lock_guard lock(shared().mutex);
      if (counted == &emulate::Allocated::device &&
          shared().allocated.device + bytes > shared().memory.value_or(INT64_MAX))
        throw refuse();
    }
    void* data =
        ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw refuse();
    return static_cast<std::byte*>(data);
  }

  int64_t emulate::Allocated::*const counted_;
};

constexpr auto kPatience = std::chrono::seconds(60);

// The work of a stream. It outlives the stream where others wait for it.
struct Queue {
  std::deque<std::function<void()>> waiting;
  uint64_t enqueued = 0, done = 0;
  bool runs = false;

  // By a thread of the host, with the lock held once. What cannot be done yet is tried again while others go on.
  void finish(uint64_t number) {
    const auto limit = std::chrono::steady_clock::now() + kPatience;
    while (true) {
      try {
        return run_until(number);
      } catch (const emulate::NotYet&) {
        if (std::chrono::steady_clock::now() > limit)
          throw base::UserError("device", "work waits for what no thread has enqueued");
      }
      shared().mutex.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      shared().mutex.lock();
    }
  }

  // Requires the lock. Nothing is left to do once the stream has ended.
  void run_until(uint64_t number) {
    while (done < number && !waiting.empty()) {
      if (shared().fails_after && --*shared().fails_after < 0)
        throw base::UserError("device", "the device failed: nothing that was enqueued is done any more");
      if (runs) throw base::InternalError("device", "streams wait for each other");
      std::function<void()> act = std::move(waiting.front());
      waiting.pop_front();
      runs = true;
      try {
        act();
      } catch (const emulate::NotYet&) {
        runs = false;
        waiting.push_front(std::move(act));
        throw;
      }
      runs = false;
      ++done;
    }
  }
};

// Done once its stream has done all that was enqueued before it was recorded.
class EmulatedEvent : public Event {
 public:
  bool done() override {
    const std::lock_guard lock(shared().mutex);
    return queue == nullptr || queue->done >= number;
  }
  void wait() override {
    const std::lock_guard lock(shared().mutex);
    if (queue == nullptr || !shared().waits_now(host().clock.knows(clock))) return;
    queue->finish(number);
    host().clock.join(clock);
  }

  std::shared_ptr<Queue> queue;
  uint64_t number = 0;
  VectorClock clock;
};

// Accesses that are announced again at each launch, and work.
struct Work {
  struct Announced {
    std::string what;
    std::vector<std::span<const std::byte>> reads, writes;
  };
  std::optional<Announced> announced = {};
  std::function<void()> act = {};
};

class EmulatedGraph : public Graph {
 public:
  std::vector<Work> work;
};

class EmulatedStream : public Stream {
 public:
  EmulatedStream() : id_(shared().order.add_stream()) {}
  ~EmulatedStream() override {
    const std::lock_guard lock(shared().mutex);
    queue_->waiting.clear();
  }

  void copy(void* to, const void* from, int64_t bytes) override {
    const auto size = static_cast<size_t>(bytes);
    const std::span<const std::byte> read(static_cast<const std::byte*>(from), size),
        written(static_cast<const std::byte*>(to), size);
    announce({.what = "a copy", .reads = {&read, 1}, .writes = {&written, 1}});
    add([=] { std::memcpy(to, from, size); });
  }
  void zero(void* to, int64_t bytes) override {
    const auto size = static_cast<size_t>(bytes);
    const std::span<const std::byte> written(static_cast<const std::byte*>(to), size);
    announce({.what = "a fill with zeros", .reads = {}, .writes = {&written, 1}});
    add([=] { std::memset(to, 0, size); });
  }
  void record(Event& event) override {
    const std::lock_guard lock(shared().mutex);
    base::require(capture_ == nullptr, "device", "an event is recorded in a capture");
    auto& e = static_cast<EmulatedEvent&>(event);
    clock_.join(host().clock);
    e.queue = queue_;
    e.number = queue_->enqueued;
    e.clock = clock_;
  }
  void wait(Event& event) override {
    const std::lock_guard lock(shared().mutex);
    base::require(capture_ == nullptr, "device", "an event is waited for in a capture");
    const auto& e = static_cast<EmulatedEvent&>(event);
    if (!shared().waits_now(e.queue == nullptr || clock_.knows(e.clock))) return;
    if (e.queue == nullptr || e.queue == queue_) return;
    clock_.join(e.clock);
    add([queue = e.queue, number = e.number] { queue->run_until(number); });
  }
  void synchronize() override {
    const std::lock_guard lock(shared().mutex);
    queue_->finish(queue_->enqueued);
    host().clock.join(clock_);
  }

  void begin_capture() override {
    base::require(capture_ == nullptr, "device", "a capture begins within another");
    capture_ = std::make_unique<EmulatedGraph>();
  }
  std::unique_ptr<Graph> end_capture() override { return std::move(capture_); }
  void launch(Graph& graph) override {
    const std::lock_guard lock(shared().mutex);
    for (const Work& work : static_cast<EmulatedGraph&>(graph).work) {
      if (work.announced) {
        const auto& [what, reads, writes] = *work.announced;
        announce({.what = what, .reads = reads, .writes = writes});
      } else {
        add(work.act);
      }
    }
  }

  void* native() override { return static_cast<Stream*>(this); }
  bool checks() const override { return true; }
  void announce(const Access& access) override {
    const std::lock_guard lock(shared().mutex);
    if (capture_) {
      capture_->work.push_back({.announced = Work::Announced{std::string(access.what),
                                                             {access.reads.begin(), access.reads.end()},
                                                             {access.writes.begin(), access.writes.end()}}});
      return;
    }
    clock_.join(host().clock);
    clock_.tick(id_);
    shared().order.access(id_, clock_, access);
  }

  std::function<void()> all_until_here() {
    const std::lock_guard lock(shared().mutex);
    return [queue = queue_, number = queue_->enqueued] { queue->run_until(number); };
  }

  void add(std::function<void()> act) {
    const std::lock_guard lock(shared().mutex);
    if (capture_) {
      capture_->work.push_back({.act = std::move(act)});
      return;
    }
    queue_->waiting.push_back(std::move(act));
    ++queue_->enqueued;
  }

 private:
  const size_t id_;
  VectorClock clock_;
  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::unique_ptr<EmulatedGraph> capture_;
};

class EmulatedDevice : public Device {
 public:
  std::string_view kind() const override { return "emulated"; }
  bool emulated() const override { return true; }
  Properties properties() override {
    const auto pages = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)),
               page = static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
    return {.name = "emulated on the processor", .memory = pages * page, .free = pages * page, .processors = 2};
  }
  std::unique_ptr<Memory> allocate(int64_t bytes) override {
    return std::make_unique<HostMemory>(bytes, &emulate::Allocated::device);
  }
  std::unique_ptr<Memory> allocate_pinned(int64_t bytes) override {
    return std::make_unique<HostMemory>(bytes, &emulate::Allocated::pinned);
  }
  std::unique_ptr<Stream> stream() override {
    const std::lock_guard lock(shared().mutex);
    return std::make_unique<EmulatedStream>();
  }
  std::unique_ptr<Event> event() override { return std::make_unique<EmulatedEvent>(); }
  void announce(const Access& access) override {
    const std::lock_guard lock(shared().mutex);
    host().clock.tick(host().stream);
    shared().order.access(host().stream, host().clock, access);
  }
  void* symbol(const char*) override { return nullptr; }
};

}  // namespace

std::unique_ptr<Device> emulated_device() {
  return std::make_unique<EmulatedDevice>();
}

namespace emulate {

void enqueue(Stream& stream, std::function<void()> work) {
  static_cast<EmulatedStream&>(stream).add(std::move(work));
}

std::function<void()> all_until_here(Stream& stream) {
  return static_cast<EmulatedStream&>(stream).all_until_here();
}

Allocated allocated() {
  const std::lock_guard lock(shared().mutex);
  return shared().allocated;
}

Waits waits() {
  const std::lock_guard lock(shared().mutex);
  return shared().waits;
}

void leave_out_wait(int64_t number) {
  const std::lock_guard lock(shared().mutex);
  shared().left_out = number;
}

}  // namespace emulate
}  // namespace kintsugi::device
