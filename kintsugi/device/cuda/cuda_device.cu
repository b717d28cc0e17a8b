// The device interface over NVIDIA's runtime.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/device/cuda/check.h"
#include "kintsugi/device/cuda/entry.h"
#include "kintsugi/device/cuda/nvml.h"
#include "kintsugi/device/cuda/nvtx.h"
#include "kintsugi/device/no_device.h"
#include "kintsugi/device/no_memory.h"

namespace kintsugi::device {
namespace {

class CudaMemory : public Memory {
 public:
  CudaMemory(std::byte* data, int64_t bytes) : Memory(data, bytes) {}
  ~CudaMemory() override { cudaFree(data_); }
};

class PinnedMemory : public Memory {
 public:
  PinnedMemory(std::byte* data, int64_t bytes) : Memory(data, bytes) {}
  ~PinnedMemory() override { cudaFreeHost(data_); }
};

// Polls often at first, since most waits are short.
template <typename Query>
void wait_until(const Query& query, const std::function<void()>& meanwhile) {
  constexpr std::chrono::microseconds kMost{1000};
  for (std::chrono::microseconds pause{1};; pause = std::min(2 * pause, kMost)) {
    const cudaError_t error = query();
    if (error != cudaErrorNotReady) return check(error, "in its work");
    if (pause == kMost) meanwhile();
    std::this_thread::sleep_for(pause);
  }
}

class CudaEvent : public Event {
 public:
  CudaEvent() { check(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming), "to make an event"); }
  ~CudaEvent() override { cudaEventDestroy(handle); }
  bool done() override {
    if (captured()) return true;
    const cudaError_t error = cudaEventQuery(handle);
    if (error == cudaErrorNotReady) return false;
    check(error, "in its work");
    return true;
  }
  void wait() override {
    if (!captured()) check(cudaEventSynchronize(handle), "in its work");
  }
  void wait(const std::function<void()>& meanwhile) override {
    if (!meanwhile) return wait();
    if (!captured()) wait_until([&] { return cudaEventQuery(handle); }, meanwhile);
  }

  cudaEvent_t handle = nullptr;
};

class CudaGraph : public Graph {
 public:
  explicit CudaGraph(cudaGraph_t graph) {
    const cudaError_t error = cudaGraphInstantiate(&handle, graph, 0);
    cudaGraphDestroy(graph);
    check(error, "to make a graph of the step");
  }
  ~CudaGraph() override { cudaGraphExecDestroy(handle); }

  cudaGraphExec_t handle = nullptr;
};

class CudaStream : public Stream {
 public:
  CudaStream() { check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "to make a stream"); }
  ~CudaStream() override { cudaStreamDestroy(handle_); }

  void copy(void* to, const void* from, int64_t bytes) override {
    works();
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, handle_), "to copy");
  }
  void zero(void* to, int64_t bytes) override {
    works();
    check(cudaMemsetAsync(to, 0, static_cast<size_t>(bytes), handle_), "to fill memory");
  }
  void put(Event& event) override {
    check(cudaEventRecord(static_cast<CudaEvent&>(event).handle, handle_), "to record an event");
  }
  void follow(Event& event) override {
    check(cudaStreamWaitEvent(handle_, static_cast<CudaEvent&>(event).handle, 0), "to wait for an event");
  }
  void synchronize() override { check(cudaStreamSynchronize(handle_), "in its work"); }
  void synchronize(const std::function<void()>& meanwhile) override {
    if (!meanwhile) return synchronize();
    wait_until([&] { return cudaStreamQuery(handle_); }, meanwhile);
  }

  void begin() override {
    check(cudaStreamBeginCapture(handle_, cudaStreamCaptureModeThreadLocal), "to capture a step");
  }
  std::unique_ptr<Graph> end() override {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(handle_, &graph), "to capture a step");
    return std::make_unique<CudaGraph>(graph);
  }
  void start(Graph& graph) override {
    check(cudaGraphLaunch(static_cast<CudaGraph&>(graph).handle, handle_), "to start a step");
  }
  void* handle() override { return handle_; }

 private:
  cudaStream_t handle_ = nullptr;
};

// Reports that no device can be used.
[[noreturn]] void refuse(cudaError_t error) {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  const auto version = [](int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); };
  if (driver == 0)
    throw NoDevice("device",
                   "this machine has no driver for NVIDIA's devices: it needs one for CUDA {} or newer, "
                   "from the distribution (nvidia-driver) or from NVIDIA",
                   version(CUDART_VERSION));
  if (error == cudaErrorInsufficientDriver)
    throw base::UserError("device",
                          "the driver of this machine knows CUDA {}, this build needs {}: a newer driver, or a "
                          "build with an older nvcc",
                          version(driver), version(CUDART_VERSION));
  if (error == cudaErrorNoDevice)
    throw NoDevice("device",
                   "this machine shows no NVIDIA device; CUDA_VISIBLE_DEVICES hides those that it does "
                   "not name");
  throw base::UserError("device", "no NVIDIA device can be used: {} ({})", cudaGetErrorString(error),
                        cudaGetErrorName(error));
}

int count_devices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) refuse(error);
  return count;
}

void require_generation(int number) {
  cudaDeviceProp p;
  check(cudaGetDeviceProperties(&p, number), "to say what it is");
  if (p.major < kOldestMajor)
    throw base::UserError("device",
                          "{} is of generation {}.{}, and cards are computed on from {}.0 on (A100): parallel.device = "
                          "\"cpu\" computes on the processor",
                          p.name, p.major, p.minor, kOldestMajor);
}

class CudaDevice : public Device {
 public:
  CudaDevice(int number, void* module) : number_(number), count_(count_devices()), module_(module) {
    if (number < 0 || number >= count_)
      throw base::UserError("device", "there is no device {}: this machine has {}", number, count_);
    require_generation(number);
    const std::optional<int64_t> before = used();
    check(cudaSetDevice(number), "to be opened");
    check(cudaFree(nullptr), "to be opened");
    const std::optional<int64_t> after = used();
    if (before && after) context_ = *after - *before;
  }

  std::string_view kind() const override { return "cuda"; }
  int count() override { return count_; }
  Properties properties() override {
    cudaDeviceProp p;
    check(cudaGetDeviceProperties(&p, number_), "to say what it is");
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "to say how much memory it has");
    int driver = 0;
    check(cudaDriverGetVersion(&driver), "to say what its driver knows");
    return {.name = p.name,
            .memory = static_cast<int64_t>(total),
            .free = static_cast<int64_t>(free),
            .processors = p.multiProcessorCount,
            .warp = p.warpSize,
            .major = p.major,
            .minor = p.minor,
            .context = context_,
            .driver = driver,
            .identity = std::string(p.uuid.bytes, sizeof p.uuid.bytes)};
  }
  std::unique_ptr<Memory> allocate(int64_t bytes) override {
    void* data = nullptr;
    if (bytes > 0) {
      if (cudaMalloc(&data, static_cast<size_t>(bytes)) != cudaSuccess) {
        cudaGetLastError();
        const Properties p = properties();
        throw NoMemory(fmt::format("{} does not give the {} that are needed: {} of {} are free", p.name,
                                   base::format_bytes(static_cast<uint64_t>(bytes)),
                                   base::format_bytes(static_cast<uint64_t>(p.free)),
                                   base::format_bytes(static_cast<uint64_t>(p.memory))));
      }
      check(cudaMemset(data, 0, static_cast<size_t>(bytes)), "to fill memory");
      check(cudaDeviceSynchronize(), "to fill memory");
    }
    return std::make_unique<CudaMemory>(static_cast<std::byte*>(data), bytes);
  }
  std::unique_ptr<Memory> allocate_pinned(int64_t bytes) override {
    void* data = nullptr;
    if (bytes > 0) {
      const cudaError_t error = cudaHostAlloc(&data, static_cast<size_t>(bytes), cudaHostAllocPortable);
      if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();  // optional: the run can do without it
        throw base::UserError("device", "the host gives no more memory that can be pinned: {} are asked for",
                              base::format_bytes(static_cast<uint64_t>(bytes)));
      }
      check(error, "to pin memory of the host");
    }
    return std::make_unique<PinnedMemory>(static_cast<std::byte*>(data), bytes);
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<CudaStream>(); }
  std::unique_ptr<Event> event() override { return std::make_unique<CudaEvent>(); }
  Ranges* ranges() override { return nvtx_ranges(); }
  void* symbol(const char* name) override { return dlsym(module_, name); }

 private:
  // Bytes in use on the device by all processes, according to the driver.
  std::optional<int64_t> used() const {
    char bus[32] = {};
    return cudaDeviceGetPCIBusId(bus, sizeof bus, number_) == cudaSuccess ? nvml_used(bus) : std::nullopt;
  }

  int number_, count_;
  void* module_;
  int64_t context_ = 0;
};

}  // namespace
}  // namespace kintsugi::device

extern "C" __attribute__((visibility("default"))) kintsugi::device::Device* kintsugi_cuda_device_7(int number,
                                                                                                   void* module) {
  return new kintsugi::device::CudaDevice(number, module);
}

extern "C" __attribute__((visibility("default"))) int kintsugi_cuda_count_1() {
  return kintsugi::device::count_devices();
}

extern "C" __attribute__((visibility("default"))) void kintsugi_cuda_suits_1(int number) {
  kintsugi::device::require_generation(number);
}
