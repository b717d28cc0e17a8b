// The module for NVIDIA's cards with a stand-in of their runtime: memory is the host's, work is done at once, kernels
// do nothing. KINTSUGI_STANDIN_CUDA in the environment says what is wrong, in words with blanks between:
//   driver=N     the driver's version, as CUDA numbers them; 0: there is none
//   devices=N    how many cards there are
//   major=N      their generation
//   free=N       bytes of each that are free
//   gives=N      bytes that an allocation may have
//   opens=N      the error of opening a card
//   fails=N      the error of all that is waited for, `after` so many waits
#include <cstring>
#include <string>

#include "kintsugi/comm/gpu/reduce_in_order.h"
#include "kintsugi/device/cuda/cuda_device.cu"
#include "kintsugi/kernels/gpu/rows.h"
#include "kintsugi/run/gpu/draw.h"

namespace {

int64_t word(std::string_view name, int64_t otherwise) {
  const char* text = std::getenv("KINTSUGI_STANDIN_CUDA");
  const std::string all = std::string(" ") + (text == nullptr ? "" : text), wanted = fmt::format(" {}=", name);
  const size_t at = all.find(wanted);
  return at == all.npos ? otherwise : std::strtoll(all.c_str() + at + wanted.size(), nullptr, 10);
}

constexpr int64_t kMemory = int64_t{8} << 30;

// Waiting operations.
cudaError_t done() {
  static int64_t left = word("after", 0);
  return left-- > 0 ? cudaSuccess : static_cast<cudaError_t>(word("fails", cudaSuccess));
}

void* any() {
  static int one;
  return &one;
}

}  // namespace

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = static_cast<int>(word("driver", CUDART_VERSION));
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(word("devices", 1));
  const int64_t driver = word("driver", CUDART_VERSION);
  if (driver < CUDART_VERSION) return cudaErrorInsufficientDriver;
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int number) {
  *p = {};
  std::strcpy(p->name, "a card of the stand-in");
  p->uuid.bytes[0] = static_cast<char>(number + 1);
  p->major = static_cast<int>(word("major", 9));
  p->warpSize = 32, p->multiProcessorCount = 9;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char*, int, int) {
  return cudaErrorInvalidValue;
}
cudaError_t cudaSetDevice(int) {
  return static_cast<cudaError_t>(word("opens", cudaSuccess));
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = kMemory;
  *free = static_cast<size_t>(word("free", kMemory));
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** data, size_t bytes) {
  if (static_cast<int64_t>(bytes) > word("gives", kMemory)) return cudaErrorMemoryAllocation;
  *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  return cudaMalloc(data, bytes);
}
cudaError_t cudaFree(void* data) {
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  return cudaFree(data);
}
cudaError_t cudaMemset(void* data, int value, size_t bytes) {
  std::memset(data, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* data, int value, size_t bytes, cudaStream_t) {
  return cudaMemset(data, value, bytes);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "as the stand-in was told";
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
      return "cudaErrorECCUncorrectable";
    case cudaErrorUnknown:
      return "cudaErrorUnknown";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorDevicesUnavailable:
      return "cudaErrorDevicesUnavailable";
    default:
      return "another error";
  }
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned) {
  *made = static_cast<cudaStream_t>(any());
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return done();
}
cudaError_t cudaStreamQuery(cudaStream_t) {
  return done();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned) {
  *made = static_cast<cudaEvent_t>(any());
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
  return done();
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return done();
}
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = static_cast<cudaGraph_t>(any());
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t, unsigned long long) {
  *made = static_cast<cudaGraphExec_t>(any());
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t) {
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) {
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) {
  return cudaSuccess;
}

__attribute__((visibility("default"))) void kintsugi_device_draw_1(kintsugi::device::Stream&,
                                                                   const kintsugi::run::Drawn&) {}

__attribute__((visibility("default"))) void kintsugi_device_rows_11(
    std::span<const kintsugi::kernels::DeviceRow>* rows) {
  constexpr auto nothing = [](const kintsugi::kernels::KernelCall&) {};
  static constexpr kintsugi::kernels::DeviceRow kRows[] = {
      {"accumulate", nothing},
      {"adamw", nothing},
      {"add", nothing},
      {"attention", nothing},
      {"attention_grad", nothing},
      {"attention_join", nothing},
      {"broadcast", nothing},
      {"cache_write", nothing},
      {"cast", nothing},
      {"class_loss", nothing},
      {"class_loss_grad", nothing},
      {"contract", nothing},
      {"cross_entropy", nothing},
      {"cross_entropy_grad", nothing},
      {"dropout", nothing},
      {"embedding", nothing},
      {"embedding_grad", nothing},
      {"fill", nothing},
      {"first", nothing},
      {"first_grad", nothing},
      {"gated", nothing},
      {"gated_grad", nothing},
      {"gelu", nothing},
      {"gelu_grad", nothing},
      {"halo_add", nothing},
      {"halo_pack", nothing},
      {"halo_place", nothing},
      {"head", nothing},
      {"head_grad", nothing},
      {"head_with_grad", nothing},
      {"join_columns", nothing},
      {"layer_norm", nothing},
      {"layer_norm_grad", nothing},
      {"logsumexp", nothing},
      {"loss_scale", nothing},
      {"mask", nothing},
      {"position", nothing},
      {"position_grad", nothing},
      {"relu", nothing},
      {"relu_grad", nothing},
      {"relu2", nothing},
      {"relu2_grad", nothing},
      {"rms_norm", nothing},
      {"rms_norm_grad", nothing},
      {"rotary", nothing},
      {"scale", nothing},
      {"sgd", nothing},
      {"silu", nothing},
      {"silu_grad", nothing},
      {"split_columns", nothing},
      {"squared_error", nothing},
      {"squared_error_grad", nothing},
      {"stack", nothing},
      {"sum", nothing},
      {"sum_blocks", nothing},
      {"sum_squares", nothing},
      {"take", nothing},
      {"tanh", nothing},
      {"tanh_grad", nothing},
      {"unstack", nothing},
      {"update_scale", nothing},
  };
  *rows = kRows;
}

}  // extern "C"
