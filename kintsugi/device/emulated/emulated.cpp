#include "kintsugi/device/emulated/emulated.h"

#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"
#include "kintsugi/device/emulate.h"
#include "kintsugi/device/emulated/access_order.h"
#include "kintsugi/device/no_memory.h"

namespace kintsugi::device {
namespace {

// KINTSUGI_EMULATE: faults with their numbers, separated by blanks.
std::map<std::string, int64_t> read_faults() {
  constexpr std::array<std::string_view, 5> kNames = {"memory", "pinned", "launches", "fails_after", "hangs_after"};
  const char* const text = std::getenv("KINTSUGI_EMULATE");
  std::istringstream words(text == nullptr ? "" : text);
  std::map<std::string, int64_t> faults;
  for (std::string word; words >> word;) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals), number = word.substr(std::min(equals + 1, word.size()));
    const bool is_number =
        !number.empty() && number.size() < 19 && number.find_first_not_of("0123456789") == number.npos;
    if (!is_number || std::ranges::count(kNames, name) == 0)
      throw base::UserError("device", "KINTSUGI_EMULATE: \"{}\" is none of {}=N", base::one_line(word, 60),
                            fmt::join(kNames, "=N, "));
    faults[name] = std::stoll(number);
  }
  return faults;
}

// The number of a fault.
std::optional<int64_t> fault(const std::string& name) {
  static const std::map<std::string, int64_t> all = read_faults();
  const auto found = all.find(name);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

// State shared by all emulated devices of the process. A waiting thread executes the work of any stream, so the lock is
// held while kernels run.
struct Shared {
  std::recursive_mutex mutex;
  AccessOrder order;
  emulate::Waits waits;
  int64_t left_out = -1;
  uint64_t enqueued = 0;  // outside captures
  emulate::Allocated allocated;
  bool logs = false;
  std::map<size_t, std::vector<std::string>> log;  // by stream
  const std::optional<int64_t> memory = fault("memory"), pinned = fault("pinned");
  std::optional<int64_t> fails_after = fault("fails_after"), launches = fault("launches"),
                         hangs_after = fault("hangs_after");

  void note(size_t stream, std::string_view what) {
    if (logs) log[stream].emplace_back(what);
  }
  // Whether execution has stopped.
  bool hangs() {
    const std::lock_guard lock(mutex);
    return hangs_after && *hangs_after < 0;
  }
  // Counts a wait, and returns whether it happens.
  bool waits_now(bool known) {
    if (known) ++waits.known;
    return waits.all++ != left_out;
  }
};

Shared& shared() {
  static auto* all = new Shared();  // never destroyed: static values may free memory at exit
  return *all;
}

// Releases the lock, held once by this thread, for a scope.
struct Unlocked {
  Unlocked() { shared().mutex.unlock(); }
  ~Unlocked() { shared().mutex.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
};

// What this host thread knows to have completed.
struct Host {
  size_t stream = 0;
  VectorClock clock;
  bool captures = false;
};

Host& host() {
  thread_local Host own = {.stream = shared().order.add_stream(), .clock = {}};
  return own;
}

// CUDA fails and invalidates the capture if the capturing thread queries earlier work.
void require_no_capture() {
  if (host().captures) throw base::UserError("device", "a thread that captures looks at what was enqueued before");
}

class HostMemory : public Memory {
 public:
  // `counted`: the member of `allocated` that counts it.
  HostMemory(int64_t bytes, int64_t emulate::Allocated::*counted)
      : Memory(map(bytes, counted), bytes), counted_(counted) {
    if (data_ == nullptr) return;
    const std::lock_guard lock(shared().mutex);
    shared().order.look_at(data_, bytes_);
    shared().allocated.*counted_ += bytes;
  }
  ~HostMemory() override {
    if (data_ == nullptr) return;
    while (shared().hangs()) std::this_thread::sleep_for(std::chrono::seconds(1));  // as vendor runtimes do
    const std::lock_guard lock(shared().mutex);
    base::if_memory_lasts([this] { shared().order.forget(data_, bytes_); });
    shared().allocated.*counted_ -= bytes_;
    give_back(data_, bytes_);
  }

 private:
  static std::byte* map(int64_t bytes, int64_t emulate::Allocated::*counted) {
    if (bytes == 0) return nullptr;
    const bool on_device = counted == &emulate::Allocated::device;
    const auto refuse = [&](int64_t free) {
      const std::string said = fmt::format(
          "{} gives no more memory: {} are asked for, and {} are free", on_device ? "the device" : "the host",
          base::format_bytes(static_cast<uint64_t>(bytes)), base::format_bytes(static_cast<uint64_t>(free)));
      if (on_device) throw NoMemory(said);
      throw base::UserError("device", "{}", said);
    };
    {
      const std::lock_guard lock(shared().mutex);
      const auto& most = on_device ? shared().memory : shared().pinned;
      const int64_t free = most.value_or(INT64_MAX) - shared().allocated.*counted;
      if (bytes > free) refuse(free);
    }
    std::byte* const data = take(bytes);
    if (data == nullptr) refuse(0);
    return data;
  }
#if defined(__SANITIZE_ADDRESS__)  // which only knows the surroundings of heap memory
  static std::byte* take(int64_t bytes) {
    void* data = nullptr;
    if (::posix_memalign(&data, 256, static_cast<size_t>(bytes)) != 0) return nullptr;
    return static_cast<std::byte*>(std::memset(data, 0, static_cast<size_t>(bytes)));
  }
  static void give_back(std::byte* data, int64_t) {
    ::free(data);
  }
#else
  static std::byte* take(int64_t bytes) {
    void* data =
        ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
  }
  static void give_back(std::byte* data, int64_t bytes) {
    ::munmap(data, static_cast<size_t>(bytes));
  }
#endif

  int64_t emulate::Allocated::*const counted_;
};

constexpr auto kPatience = std::chrono::seconds(60);

// The work of a stream. Outlives the stream while others wait for it.
struct Queue {
  std::deque<std::function<void()>> waiting;
  uint64_t enqueued = 0, done = 0;
  bool runs = false;

  // Called by a host thread that holds the lock once. Work that is not ready is retried while others proceed.
  void finish(uint64_t number, const std::function<void()>& meanwhile = {}) {
    const auto limit = std::chrono::steady_clock::now() + kPatience;
    while (true) {
      try {
        return run_until(number);
      } catch (const emulate::NotYet&) {
        if (std::chrono::steady_clock::now() > limit && !shared().hangs())
          throw base::UserError("device", "work waits for what no thread has enqueued");
      }
      const Unlocked others_go_on;
      if (meanwhile) meanwhile();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // Requires the lock. Does nothing once the stream has ended.
  void run_until(uint64_t number) {
    while (done < number && !waiting.empty()) {
      if (shared().fails_after && --*shared().fails_after < 0)
        throw base::UserError("device", "the device failed; enqueued work is discarded");
      if (shared().hangs_after && --*shared().hangs_after < 0) throw emulate::NotYet();
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

class EmulatedStream;

// A piece of captured work: its stream, in enqueue order, and exactly one of the other members.
struct Kept {
  struct Announced {
    std::string what;
    std::vector<std::span<const std::byte>> reads, writes;
  };
  size_t stream = 0;
  std::optional<Announced> announced = {};
  std::function<void()> act = {};
  std::function<void(Stream&)> each = {};             // called with the stream that replaces it at launch
  std::optional<size_t> recorded = {}, awaited = {};  // events of the capture
};

// A capture. Stream 0 is the one in which it began.
struct Recording {
  std::vector<Kept> kept;
  std::vector<EmulatedStream*> streams;  // null: the stream has ended
  std::vector<VectorClock> known;        // [stream] what it follows
  std::vector<VectorClock> events;
  uint64_t before = 0;  // enqueued outside captures when it began
};

// Done once its stream has executed all work enqueued before it was recorded.
class EmulatedEvent : public Event {
 public:
  bool done() override {
    if (captured()) return true;
    require_no_capture();
    const std::lock_guard lock(shared().mutex);
    return queue == nullptr || queue->done >= number;
  }
  void wait() override { wait({}); }
  void wait(const std::function<void()>& meanwhile) override {
    if (captured()) return;
    require_no_capture();
    if (meanwhile) meanwhile();
    const std::lock_guard lock(shared().mutex);
    if (queue == nullptr || !shared().waits_now(host().clock.knows(clock))) return;
    queue->finish(number, meanwhile);
    host().clock.join(clock);
  }

  std::shared_ptr<Queue> queue;
  uint64_t number = 0;
  VectorClock clock;
  std::shared_ptr<Recording> recording;  // in which it was recorded
  size_t place = 0;                      // index in its events
};

class EmulatedStream : public Stream {
 public:
  EmulatedStream() : id_(shared().order.add_stream()) {}
  ~EmulatedStream() override {
    const std::lock_guard lock(shared().mutex);
    queue_->waiting.clear();
    if (recording_) recording_->streams[place_] = nullptr;
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
  void put(Event& event) override {
    const std::lock_guard lock(shared().mutex);
    shared().note(id_, "record");
    auto& e = static_cast<EmulatedEvent&>(event);
    e.recording = recording_;
    if (recording_) {
      e.place = recording_->events.size();
      recording_->events.push_back(recording_->known[place_]);
      keep().recorded = e.place;
      return;
    }
    clock_.join(host().clock);
    e.queue = queue_;
    e.number = queue_->enqueued;
    e.clock = clock_;
  }
  void follow(Event& event) override {
    const std::lock_guard lock(shared().mutex);
    shared().note(id_, "wait");
    const auto& e = static_cast<EmulatedEvent&>(event);
    if (shared().waits_now(knows(e))) follow_uncounted(e);
  }
  void synchronize() override { synchronize({}); }
  void synchronize(const std::function<void()>& meanwhile) override {
    require_no_capture();
    if (meanwhile) meanwhile();
    const std::lock_guard lock(shared().mutex);
    queue_->finish(queue_->enqueued, meanwhile);
    host().clock.join(clock_);
  }

  void begin() override {
    const std::lock_guard lock(shared().mutex);
    base::require(recording_ == nullptr, "device", "a capture begins within another");
    auto recording = std::make_shared<Recording>();
    recording->before = shared().enqueued;
    host().captures = true;
    join(std::move(recording));
  }
  std::unique_ptr<Graph> end() override;
  void start(Graph& graph) override;

  void* handle() override { return static_cast<Stream*>(this); }
  bool checks() const override { return true; }
  void announce(const Access& access) override {
    const std::lock_guard lock(shared().mutex);
    works();
    shared().note(id_, access.what);
    if (recording_) {
      keep_work().announced = Kept::Announced{std::string(access.what),
                                              {access.reads.begin(), access.reads.end()},
                                              {access.writes.begin(), access.writes.end()}};
      return;
    }
    clock_.join(host().clock);
    clock_.tick(id_);
    shared().order.access(id_, clock_, access);
  }

  void note_launch() {
    const std::lock_guard lock(shared().mutex);
    shared().note(id_, "launch");
  }

  std::function<void()> all_until_here() {
    const std::lock_guard lock(shared().mutex);
    return [queue = queue_, number = queue_->enqueued] { queue->run_until(number); };
  }

  void add(std::function<void()> act) {
    const std::lock_guard lock(shared().mutex);
    works();
    if (recording_) {
      keep_work().act = std::move(act);
      return;
    }
    queue_->waiting.push_back(std::move(act));
    ++queue_->enqueued;
    last_ = ++shared().enqueued;
  }

  void at_each_launch(const std::function<void(Stream&)>& f) {
    const std::lock_guard lock(shared().mutex);
    works();
    if (!recording_) return f(*this);
    keep_work().each = f;
  }

 private:
  void join(std::shared_ptr<Recording> recording) {
    // Vendor runtimes do not report this, but a launch of the capture would lack that work.
    base::require(last_ <= recording->before, "device",
                  "a stream becomes part of a capture after it has worked outside of it meanwhile");
    recording_ = std::move(recording);
    place_ = recording_->streams.size();
    recording_->streams.push_back(this);
    recording_->known.emplace_back();
  }
  Kept& keep() { return recording_->kept.emplace_back(Kept{.stream = place_}); }
  Kept& keep_work() {
    recording_->known[place_].tick(place_);
    return keep();
  }
  bool knows(const EmulatedEvent& e) const {
    if (!recording_ && !e.recording) return e.queue == nullptr || clock_.knows(e.clock);
    return recording_ == e.recording && recording_->known[place_].knows(recording_->events[e.place]);
  }
  void follow_uncounted(const EmulatedEvent& e) {
    if (recording_ || e.recording) return follow_within(e);
    if (e.queue == nullptr || e.queue == queue_) return;
    clock_.join(e.clock);
    add([queue = e.queue, number = e.number] { queue->run_until(number); });
  }
  // Each of these is an error in vendor runtimes too.
  void follow_within(const EmulatedEvent& e) {
    if (!recording_ && e.recording->streams[0] && e.recording->streams[0]->recording_ == e.recording) join(e.recording);
    base::require(recording_ != nullptr, "device", "what was captured is waited for outside of its capture");
    base::require(recording_ == e.recording, "device", "what is captured waits for what is not");
    keep().awaited = e.place;
    recording_->known[place_].join(recording_->events[e.place]);
  }

  const size_t id_;
  VectorClock clock_;
  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::shared_ptr<Recording> recording_;  // that this stream is part of
  size_t place_ = 0;                      // index in its streams
  uint64_t last_ = 0;                     // of all work enqueued outside captures
};

// Has its own streams and events, except for stream 0.
class EmulatedGraph : public Graph {
 public:
  std::vector<Kept> kept;
  std::vector<std::unique_ptr<EmulatedStream>> others;
  std::vector<EmulatedEvent> events;
};

std::unique_ptr<Graph> EmulatedStream::end() {
  const std::lock_guard lock(shared().mutex);
  base::require(recording_ != nullptr && place_ == 0, "device", "a capture ends where none began");
  host().captures = false;
  const std::shared_ptr<Recording> all = recording_;
  for (EmulatedStream* stream : all->streams)
    if (stream) stream->recording_ = nullptr;
  for (const VectorClock& known : all->known)
    base::require(all->known[0].knows(known), "device", "a capture ends before it has waited for all its streams");
  auto graph = std::make_unique<EmulatedGraph>();
  graph->kept = std::move(all->kept);
  for (size_t s = 1; s < all->streams.size(); ++s) graph->others.push_back(std::make_unique<EmulatedStream>());
  graph->events = std::vector<EmulatedEvent>(all->events.size());
  return graph;
}

void EmulatedStream::start(Graph& graph) {
  const std::lock_guard lock(shared().mutex);
  auto& g = static_cast<EmulatedGraph&>(graph);
  for (const Kept& kept : g.kept) {
    EmulatedStream& in = kept.stream == 0 ? *this : *g.others[kept.stream - 1];
    if (kept.announced) {
      const auto& [what, reads, writes] = *kept.announced;
      in.announce({.what = what, .reads = reads, .writes = writes});
    }
    if (kept.act) in.add(kept.act);
    if (kept.each) kept.each(in);
    if (kept.recorded) in.put(g.events[*kept.recorded]);
    if (kept.awaited) in.follow_uncounted(g.events[*kept.awaited]);
  }
}

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
  {
    const std::lock_guard lock(shared().mutex);
    if (shared().launches && --*shared().launches < 0)
      throw base::UserError("device", "the device failed at the launch of a kernel");
  }
  static_cast<EmulatedStream&>(stream).add(std::move(work));
  static_cast<EmulatedStream&>(stream).note_launch();
}

void at_each_launch(Stream& stream, const std::function<void(Stream&)>& f) {
  static_cast<EmulatedStream&>(stream).at_each_launch(f);
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

void start_log() {
  const std::lock_guard lock(shared().mutex);
  shared().log.clear();
  shared().logs = true;
}

std::vector<std::vector<std::string>> take_log() {
  const std::lock_guard lock(shared().mutex);
  shared().logs = false;
  std::vector<std::vector<std::string>> streams;
  for (auto& [stream, work] : shared().log) streams.push_back(std::move(work));
  return streams;
}

}  // namespace emulate
}  // namespace kintsugi::device
