// A device without a device: its memory is the host's, and a stream does its work as late as it may, when somebody
// waits for it. So what was not waited for is not there, as on a real one.
#pragma once

#include <memory>

#include "kintsugi/device/device.h"

namespace kintsugi::device {

std::unique_ptr<Device> emulated_device();

}  // namespace kintsugi::device
