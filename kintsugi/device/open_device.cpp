#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "kintsugi/base/error.h"
#include "kintsugi/device/cuda/entry.h"
#include "kintsugi/device/device.h"
#include "kintsugi/device/emulated/emulated.h"
#include "kintsugi/device/no_device.h"

namespace kintsugi::device {
namespace {

constexpr const char* kModule = "kintsugi_cuda.so";

// The module named in the environment, or "".
std::string named_module() {
  const char* const path = std::getenv("KINTSUGI_CUDA_MODULE");
  return path == nullptr ? "" : path;
}

// Next to the program, or one folder above it.
std::string module_path() {
  if (const std::string path = named_module(); !path.empty()) return path;
  std::error_code ignored;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& folder : {here, here.parent_path()})
    if (std::filesystem::exists(folder / kModule, ignored)) return (folder / kModule).string();
  throw NoDevice("device",
                 "{} not found next to the program ({}) or one folder above; it is built if nvcc is found; set "
                 "KINTSUGI_CUDA_MODULE to its path, or use parallel.device = \"cpu\"",
                 kModule, here.string());
}

struct CudaModule {
  void* handle = nullptr;
  CudaEntry* open = nullptr;
  CudaCount* count = nullptr;
  CudaSuits* suits = nullptr;
};

CudaModule load_module() {
  const std::string path = module_path();
  CudaModule m = {.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)};
  if (m.handle == nullptr)
    throw base::UserError("device", "the module for CUDA{} cannot be loaded: {}",
                          named_module().empty() ? "" : ", which KINTSUGI_CUDA_MODULE names,", dlerror());
  m.open = reinterpret_cast<CudaEntry*>(dlsym(m.handle, kCudaEntry));
  m.count = reinterpret_cast<CudaCount*>(dlsym(m.handle, kCudaCount));
  m.suits = reinterpret_cast<CudaSuits*>(dlsym(m.handle, kCudaSuits));
  if (m.open == nullptr || m.count == nullptr || m.suits == nullptr)
    throw base::UserError("device", "{} is not a CUDA module of this version", path);
  return m;
}

// Never unloaded: it holds kernels.
const CudaModule& cuda_module() {
  static const CudaModule module = load_module();
  return module;
}

}  // namespace

std::unique_ptr<Device> open_device(std::string_view kind, int number) {
  if (kind == "emulated") return emulated_device();
  if (kind == "cuda") return std::unique_ptr<Device>(cuda_module().open(number, cuda_module().handle));
  throw base::UserError("device", "unknown device \"{}\"; known devices: emulated, cuda", kind);
}

const Found& find_device(std::string_view kind) {
  static const Found always = {.usable = true};
  if (kind != "cuda") return always;
  static const Found found = []() -> Found {
    try {
      if (cuda_module().count() == 0) return {};
      cuda_module().suits(0);
      return {.usable = true};
    } catch (const NoDevice&) {  // `kintsugi devices` reports the reason
      return {};
    } catch (const base::UserError& error) {
      return {.why_not = error.what()};
    }
  }();
  return found;
}

int device_of_rank(std::string_view kind, int local_rank) {
  if (kind != "cuda") return 0;
  const int count = cuda_module().count();
  if (count == 1) return 0;  // the only one, or the one visible to this rank
  if (local_rank < count) return local_rank;
  throw base::UserError(
      "device", "this machine has {} devices, but this is its rank {} (from 0): start at most {} ranks per machine",
      count, local_rank, count);
}

}  // namespace kintsugi::device
