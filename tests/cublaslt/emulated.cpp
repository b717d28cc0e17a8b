// The calls of cuBLASLt, compiled for the emulated device: a stream's handle is the stream.
#define dim3 cuda_dim3
#include <cublasLt.h>
#undef dim3
// The emulation defines these names too.
#undef __global__
#undef __device__
#undef __host__
#undef __forceinline__
#undef __launch_bounds__
#undef __shared__
#undef __restrict__

#include <thread>

#include "kintsugi/kernels/gpu/cuda/cublaslt.cu"
#include "tests/cublaslt/measuring.h"

namespace {

bool hangs = false;

}  // namespace

void kintsugi::tests::cublaslt::hang_when_measured() {
  gpu_emulated::patience = std::chrono::milliseconds(200);
  hangs = true;
}

extern "C" cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
extern "C" cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 9;
  return cudaSuccess;
}
// A stream and a clock for measurements. Nothing is computed in this stream; the stand-in recognizes it.
extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(&kintsugi::tests::cublaslt::measuring_stream);
  return cudaSuccess;
}
extern "C" cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
extern "C" cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(event);
  return cudaSuccess;
}
extern "C" cudaError_t cudaEventDestroy(cudaEvent_t) {
  return cudaSuccess;
}
extern "C" cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  return cudaSuccess;
}
extern "C" cudaError_t cudaEventSynchronize(cudaEvent_t) {
  while (hangs) std::this_thread::sleep_for(std::chrono::seconds(1));
  return cudaSuccess;
}
extern "C" cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = kintsugi::tests::cublaslt::measured_milliseconds();
  return cudaSuccess;
}
