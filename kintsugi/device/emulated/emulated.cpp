#include "kintsugi/device/emulated/emulated.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/device/emulate.h"

namespace kintsugi::device {
namespace {

class HostMemory : public Memory {
 public:
  explicit HostMemory(int64_t bytes) : Memory(map(bytes), bytes) {}
  ~HostMemory() override {
    if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes_));
  }

 private:
  static std::byte* map(int64_t bytes) {
    if (bytes == 0) return nullptr;
    void* data =
        ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
      throw base::UserError("device", "the emulated device does not give {}",
                            base::format_bytes(static_cast<uint64_t>(bytes)));
    return static_cast<std::byte*>(data);
  }
};

class EmulatedStream;

// Done once its stream has done all that was enqueued before it was recorded.
class EmulatedEvent : public Event {
 public:
  bool done() override;
  void wait() override;

  EmulatedStream* stream = nullptr;
  uint64_t number = 0;
};

class EmulatedGraph : public Graph {
 public:
  std::vector<std::function<void()>> work;
};

class EmulatedStream : public Stream {
 public:
  void copy(void* to, const void* from, int64_t bytes) override {
    add([=] { std::memcpy(to, from, static_cast<size_t>(bytes)); });
  }
  void zero(void* to, int64_t bytes) override {
    add([=] { std::memset(to, 0, static_cast<size_t>(bytes)); });
  }
  void record(Event& event) override {
    auto& e = static_cast<EmulatedEvent&>(event);
    e.stream = this;
    e.number = enqueued_;
  }
  void wait(Event& event) override {
    const auto& e = static_cast<EmulatedEvent&>(event);
    if (e.stream == nullptr || e.stream == this) return;
    add([stream = e.stream, number = e.number] { stream->run_until(number); });
  }
  void synchronize() override { run_until(enqueued_); }

  void begin_capture() override {
    base::require(capture_ == nullptr, "device", "a capture begins within another");
    capture_ = std::make_unique<EmulatedGraph>();
  }
  std::unique_ptr<Graph> end_capture() override { return std::move(capture_); }
  void launch(Graph& graph) override {
    for (const auto& work : static_cast<EmulatedGraph&>(graph).work) add(work);
  }

  void add(std::function<void()> work) {
    if (capture_) {
      capture_->work.push_back(std::move(work));
      return;
    }
    waiting_.push_back(std::move(work));
    ++enqueued_;
  }
  void run_until(uint64_t number) {
    while (done_ < number) {
      const std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      work();
      ++done_;
    }
  }
  uint64_t done() const { return done_; }

 private:
  std::deque<std::function<void()>> waiting_;
  uint64_t enqueued_ = 0, done_ = 0;
  std::unique_ptr<EmulatedGraph> capture_;
};

bool EmulatedEvent::done() {
  return stream == nullptr || stream->done() >= number;
}
void EmulatedEvent::wait() {
  if (stream != nullptr) stream->run_until(number);
}

class EmulatedDevice : public Device {
 public:
  std::string_view kind() const override { return "emulated"; }
  Properties properties() override {
    const auto pages = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)),
               page = static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
    return {.name = "emulated on the processor", .memory = pages * page, .free = pages * page, .processors = 2};
  }
  std::unique_ptr<Memory> allocate(int64_t bytes) override { return std::make_unique<HostMemory>(bytes); }
  std::unique_ptr<Memory> allocate_pinned(int64_t bytes) override { return std::make_unique<HostMemory>(bytes); }
  std::unique_ptr<Stream> stream() override { return std::make_unique<EmulatedStream>(); }
  std::unique_ptr<Event> event() override { return std::make_unique<EmulatedEvent>(); }
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

}  // namespace emulate
}  // namespace kintsugi::device
