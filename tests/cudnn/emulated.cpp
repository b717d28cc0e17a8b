// The calls of cuDNN, compiled for the emulated device: a stream's handle is the stream. They and the frontend query
// the runtime for the device and its compute capability; what else the frontend references is for norms, which are not
// used.
#include "kintsugi/kernels/gpu/cuda/cudnn.cpp"
#include "kintsugi/kernels/gpu/cuda/cudnn_convolution.cpp"
#include "kintsugi/kernels/gpu/cuda/cudnn_library.cpp"

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : attribute == cudaDevAttrMultiProcessorCount ? 132 : 0;
  return cudaSuccess;
}
// The driver's current context, which is not needed.
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult*) {
  return cudaErrorSymbolNotFound;
}
const char* cudaGetErrorString(cudaError_t) {
  return "there is no runtime here";
}
