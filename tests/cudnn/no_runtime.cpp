// CUDA runtime functions that cuDNN's frontend references but does not call for attention.
#include <cstdlib>
#define NOT_HERE(name)    \
  extern "C" int name() { \
    std::abort();         \
  }
NOT_HERE(cudaDeviceSynchronize)
NOT_HERE(cudaEventCreate)
NOT_HERE(cudaEventDestroy)
NOT_HERE(cudaEventElapsedTime)
NOT_HERE(cudaEventRecord)
NOT_HERE(cudaEventSynchronize)
NOT_HERE(cudaGetLastError)
NOT_HERE(cudaGraphRetainUserObject)
NOT_HERE(cudaKernelSetAttributeForDevice)
NOT_HERE(cudaLaunchKernel)
NOT_HERE(cudaLibraryGetKernel)
NOT_HERE(cudaLibraryLoadData)
NOT_HERE(cudaLibraryUnload)
NOT_HERE(cudaMemcpyAsync)
NOT_HERE(cudaMemsetAsync)
NOT_HERE(cudaPointerGetAttributes)
NOT_HERE(cudaStreamGetCaptureInfo)
NOT_HERE(cudaStreamSynchronize)
NOT_HERE(cudaThreadExchangeStreamCaptureMode)
NOT_HERE(cudaUserObjectCreate)
NOT_HERE(cudaUserObjectRelease)
