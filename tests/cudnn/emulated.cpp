// The calls of cuDNN, compiled for the emulated device: their handle of a stream is the stream. Of the runtime they and
// the frontend ask for the device and its generation; what else the frontend names is for norms, which are not used.
#include "kintsugi/kernels/gpu/cuda/cudnn.cpp"

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : attribute == cudaDevAttrMultiProcessorCount ? 132 : 0;
  return cudaSuccess;
}
// For the driver's current context, which is not needed: it does without.
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult*) {
  return cudaErrorSymbolNotFound;
}
const char* cudaGetErrorString(cudaError_t) {
  return "there is no runtime here";
}
