#include "kintsugi/kernels/gpu/cuda/cudnn_library.h"

#include <nvrtc.h>

#include <map>
#include <memory>

#include "kintsugi/base/shared_library.h"

namespace kintsugi::kernels {

const Cudnn* cudnn() {
  static const std::unique_ptr<Cudnn> found = []() -> std::unique_ptr<Cudnn> {
    constexpr size_t kOldest = 91900;
    const char* const names[] = {"libcudnn.so.9"};
    base::VendorLibrary opened(names);
    if (!opened) return nullptr;
    auto l = std::make_unique<Cudnn>();
    opened.find("cudnnBackendCreateDescriptor", l->create_descriptor);
    opened.find("cudnnBackendDestroyDescriptor", l->destroy_descriptor);
    opened.find("cudnnBackendExecute", l->execute);
    opened.find("cudnnBackendFinalize", l->finalize);
    opened.find("cudnnBackendGetAttribute", l->get_attribute);
    opened.find("cudnnBackendSetAttribute", l->set_attribute);
    opened.find("cudnnCreate", l->create);
    opened.find("cudnnGetErrorString", l->error_string);
    opened.find("cudnnGetLastErrorString", l->last_error_string);
    opened.find("cudnnGetStream", l->get_stream);
    opened.find("cudnnGetVersion", l->version);
    opened.find("cudnnSetStream", l->set_stream);
    return opened.found_all() && l->version() >= kOldest ? std::move(l) : nullptr;
  }();
  return found.get();
}

namespace {

std::mutex& handle_mutex() {
  static auto* one = new std::mutex();  // never destroyed: threads may outlive static values
  return *one;
}
std::map<int, cudnnHandle_t>& handles_by_device() {
  static auto* all = new std::map<int, cudnnHandle_t>();
  return *all;
}

}  // namespace

CudnnHandle::CudnnHandle(const Cudnn& library) : lock_(handle_mutex()) {
  if (cudaGetDevice(&device_) != cudaSuccess) return;
  cudnnHandle_t& handle = handles_by_device()[device_];
  if (handle == nullptr && library.create(&handle) != CUDNN_STATUS_SUCCESS) handle = nullptr;
  handle_ = handle;
}

}  // namespace kintsugi::kernels

// Functions called by the frontend.
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  return kintsugi::kernels::cudnn()->create_descriptor(type, made);
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return kintsugi::kernels::cudnn()->destroy_descriptor(descriptor);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return kintsugi::kernels::cudnn()->finalize(descriptor);
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  return kintsugi::kernels::cudnn()->set_attribute(descriptor, name, type, count, values);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t* count, void* values) {
  return kintsugi::kernels::cudnn()->get_attribute(descriptor, name, type, most, count, values);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  return kintsugi::kernels::cudnn()->execute(handle, plan, pack);
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return kintsugi::kernels::cudnn()->error_string(status);
}
void cudnnGetLastErrorString(char* text, size_t most) {
  kintsugi::kernels::cudnn()->last_error_string(text, most);
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return kintsugi::kernels::cudnn()->get_stream(handle, stream);
}
size_t cudnnGetVersion() {
  return kintsugi::kernels::cudnn()->version();
}

// The frontend compiles norms at run time; they are not used here.
nvrtcResult nvrtcCreateProgram(nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram, int, const char* const*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
