// The list of kernels that a device module exports. Increment the number in the name when DeviceRow or what it uses
// changes.
#pragma once

#include <span>
#include <string_view>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

struct DeviceRow {
  std::string_view kind;
  void (*run)(const KernelCall&);
  int64_t (*workspace)(const KernelShapes&) = nullptr;
  bool prepares = false;
  std::span<const Ability> abilities = {};
  int64_t thin_rows = 0;
  bool (*together)(std::span<const KernelCall>) = nullptr;
};

using DeviceRows = void(std::span<const DeviceRow>* rows);
inline constexpr const char* kDeviceRows = "kintsugi_device_rows_11";

}  // namespace kintsugi::kernels
