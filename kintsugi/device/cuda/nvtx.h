// Ranges of NVTX, which Nsight Systems and Nsight Compute show: its header finds the profiler, if one started this
// program.
#pragma once

#include <cstdlib>

#include "kintsugi/device/device.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace kintsugi::device {

// Null where no profiler looks on: it names itself in NVTX_INJECTION64_PATH. KINTSUGI_NVTX=1 asks for them anyway.
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
