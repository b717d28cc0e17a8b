// The error for a machine or build without a device of some kind.
#pragma once

#include "kintsugi/base/error.h"

namespace kintsugi::device {

// Distinct from other errors of opening a device (too old, in use), so that a caller that may choose stops looking.
class NoDevice : public base::UserError {
  using base::UserError::UserError;
};

}  // namespace kintsugi::device
