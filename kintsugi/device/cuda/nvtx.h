// NVTX ranges, shown by Nsight Systems and Nsight Compute: the header finds the profiler that started this program.
#pragma once

#include <cstdlib>

#include "kintsugi/device/device.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace kintsugi::device {

// Null unless a profiler is attached (NVTX_INJECTION64_PATH is set) or KINTSUGI_NVTX=1 requests ranges.
inline Ranges* nvtx_ranges() {
#if __has_include(<nvtx3/nvToolsExt.h>)
  class NvtxRanges : public Ranges {
    void begin(const char* name) override { nvtxRangePushA(name); }
    void end() override { nvtxRangePop(); }
  };
  static NvtxRanges ranges;
  const auto given = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  return given("NVTX_INJECTION64_PATH") || given("KINTSUGI_NVTX") ? &ranges : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace kintsugi::device
