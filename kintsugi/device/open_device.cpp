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

std::unique_ptr<Device> cuda_device(int number) {
  const std::string path = module_path();
  static void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // kept: it holds kernels
  if (module == nullptr) throw base::UserError("device", "the module for CUDA cannot be loaded: {}", dlerror());
  const auto entry = reinterpret_cast<CudaEntry*>(dlsym(module, kCudaEntry));
  if (entry == nullptr) throw base::UserError("device", "{} is no module for CUDA of this version", path);
  return std::unique_ptr<Device>(entry(number, module));
}

}  // namespace

std::unique_ptr<Device> open_device(std::string_view kind, int number) {
  if (kind == "emulated") return emulated_device();
  if (kind == "cuda") return cuda_device(number);
  throw base::UserError("device", "there is no device \"{}\"; there are emulated, cuda", kind);
}

}  // namespace kintsugi::device
