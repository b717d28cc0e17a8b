// The calls of cuBLASLt, compiled for the emulated device: their handle of a stream is the stream.
#define dim3 cuda_dim3
#include <cublasLt.h>
#undef dim3
// The emulation has these words too.
#undef __global__
#undef __device__
#undef __host__
#undef __forceinline__
#undef __launch_bounds__
#undef __shared__
#undef __restrict__

#include "kintsugi/kernels/gpu/cuda/cublaslt.cu"

extern "C" cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
extern "C" cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 9;
  return cudaSuccess;
}
