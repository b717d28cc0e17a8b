// That a machine, or this build, has no device of a kind.
#pragma once

#include "kintsugi/base/error.h"

namespace kintsugi::device {

// Beside other errors of opening one, as that it is too old or taken: whoever may choose looks no further.
class NoDevice : public base::UserError {
  using base::UserError::UserError;
};

}  // namespace kintsugi::device
