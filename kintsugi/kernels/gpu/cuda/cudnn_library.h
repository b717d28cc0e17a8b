// NVIDIA cuDNN, loaded on first use; optional. Its header-only frontend builds graphs and calls the library by name;
// those functions are defined in cudnn_library.cpp and forward to the loaded library.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn_frontend.h>

#include <mutex>

namespace kintsugi::kernels {

// The functions of the library that are used.
struct Cudnn {
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnGetLastErrorString) last_error_string = nullptr;
  decltype(&cudnnGetStream) get_stream = nullptr;
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
};

// Null if the library is missing, or older than the oldest version tested.
const Cudnn* cudnn();

// A library handle of the current device, which one thread uses at a time.
class CudnnHandle {
 public:
  explicit CudnnHandle(const Cudnn& library);
  int device() const { return device_; }
  cudnnHandle_t get() const { return handle_; }  // null if there is none

 private:
  std::lock_guard<std::mutex> lock_;
  int device_ = 0;
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace kintsugi::kernels
