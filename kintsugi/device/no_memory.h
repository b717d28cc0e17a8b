// That a device, or the host beside it, does not give memory.
#pragma once

#include <string>
#include <utility>

#include "kintsugi/base/error.h"

namespace kintsugi::device {

// Of the device, what Device::allocate throws: what was asked for and what is free. Who knows what the memory is for
// says that too.
class NoMemory : public base::UserError {
 public:
  explicit NoMemory(std::string said) : UserError("device", "{}", said), said_(std::move(said)) {}
  const std::string& said() const { return said_; }

 private:
  std::string said_;
};

}  // namespace kintsugi::device
