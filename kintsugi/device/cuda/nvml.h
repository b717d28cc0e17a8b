// The part of NVIDIA's management library (NVML) that is used; it comes with the driver, and is loaded if present.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <optional>

namespace kintsugi::device {

// Bytes in use on the device at that PCI bus id; nothing if NVML does not report it.
inline std::optional<int64_t> nvml_used(const char* bus) {
  struct Memory {  // nvmlMemory_t
    unsigned long long total, free, used;
  };
  struct Library {
    int (*by_bus)(const char*, void**) = nullptr;
    int (*memory)(void*, Memory*) = nullptr;
  };
  static const Library library = [] {
    Library l;
    void* const opened = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) return l;
    const auto init = reinterpret_cast<int (*)()>(::dlsym(opened, "nvmlInit_v2"));
    if (init == nullptr || init() != 0) return l;
    l.by_bus = reinterpret_cast<int (*)(const char*, void**)>(::dlsym(opened, "nvmlDeviceGetHandleByPciBusId_v2"));
    l.memory = reinterpret_cast<int (*)(void*, Memory*)>(::dlsym(opened, "nvmlDeviceGetMemoryInfo"));
    return l;
  }();
  void* card = nullptr;
  Memory memory = {};
  if (library.by_bus == nullptr || library.memory == nullptr) return std::nullopt;
  if (library.by_bus(bus, &card) != 0 || library.memory(card, &memory) != 0) return std::nullopt;
  return static_cast<int64_t>(memory.used);
}

}  // namespace kintsugi::device
