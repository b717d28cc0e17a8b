#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "kintsugi/base/error.h"
#include "kintsugi/device/cuda/entry.h"
#include "kintsugi/device/device.h"
#include "kintsugi/device/emulated/emulated.h"

namespace kintsugi::device {
namespace {

constexpr const char* kModule = "kintsugi_cuda.so";

// Beside the program, or one folder above it.
std::string module_path() {
  if (const char* path = std::getenv("KINTSUGI_CUDA_MODULE"); path != nullptr && *path != '\0') return path;
  std::error_code ignored;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& folder : {here, here.parent_path()})
    if (std::filesystem::exists(folder / kModule, ignored)) return (folder / kModule).string();
  throw base::UserError("device",
                        "this build has no module for CUDA: install CUDA's compiler, nvcc, and build again, "
                        "or use parallel.device = \"cpu\"");
}

struct CudaModule {
  void* handle = nullptr;
  CudaEntry* open = nullptr;
  CudaCount* count = nullptr;
};

CudaModule load_module() {
  const std::string path = module_path();
  CudaModule m = {.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)};
  if (m.handle == nullptr) throw base::UserError("device", "the module for CUDA cannot be loaded: {}", dlerror());
  m.open = reinterpret_cast<CudaEntry*>(dlsym(m.handle, kCudaEntry));
  m.count = reinterpret_cast<CudaCount*>(dlsym(m.handle, kCudaCount));
  if (m.open == nullptr || m.count == nullptr)
    throw base::UserError("device", "{} is no module for CUDA of this version", path);
  return m;
}

// Kept: it holds kernels.
const CudaModule& cuda_module() {
  static const CudaModule module = load_module();
  return module;
}

}  // namespace

std::unique_ptr<Device> open_device(std::string_view kind, int number) {
  if (kind == "emulated") return emulated_device();
  if (kind == "cuda") return std::unique_ptr<Device>(cuda_module().open(number, cuda_module().handle));
  throw base::UserError("device", "there is no device \"{}\"; there are emulated, cuda", kind);
}

bool has_device(std::string_view kind) {
  if (kind != "cuda") return true;
  static const bool found = [] {
    try {
      return cuda_module().count() > 0;
    } catch (const base::UserError&) {  // `kintsugi devices` says why
      return false;
    }
  }();
  return found;
}

int device_of_rank(std::string_view kind, int local_rank) {
  if (kind != "cuda") return 0;
  const int count = cuda_module().count();
  if (count == 1) return 0;  // the only one, or the one that this rank is shown
  if (local_rank < count) return local_rank;
  throw base::UserError("device",
                        "this machine has {} devices, and this is rank {} of those that run on it, counted from 0: "
                        "start at most {} on each machine",
                        count, local_rank, count);
}

}  // namespace kintsugi::device
