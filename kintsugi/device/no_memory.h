// The error for device or pinned host memory that cannot be allocated.
#pragma once

#include <string>
#include <utility>

#include "kintsugi/base/error.h"

namespace kintsugi::device {

// Thrown by Device::allocate() with the requested and the free bytes. Callers that know what the memory is for add
// that.
class NoMemory : public base::UserError {
 public:
  explicit NoMemory(std::string said) : UserError("device", "{}", said), said_(std::move(said)) {}
  const std::string& said() const { return said_; }

 private:
  std::string said_;
};

}  // namespace kintsugi::device
