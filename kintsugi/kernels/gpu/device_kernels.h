// The kernels of devices.
#pragma once

#include <memory>

#include "kintsugi/device/device.h"
#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

// Enqueued in a stream. The emulation's are in the program, others in the module of the device.
std::unique_ptr<KernelSet> device_kernels(std::unique_ptr<device::Device> device, bool tf32 = false);
// For planning without a device: their abilities and workspaces. Cannot be run.
std::unique_ptr<KernelSet> planned_device_kernels();

}  // namespace kintsugi::kernels
