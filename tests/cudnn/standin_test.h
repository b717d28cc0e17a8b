// Loads the cuDNN stand-in for the tests of this program.
#pragma once

#include "tests/cudnn/standin.h"

namespace kintsugi::tests::cudnn {

// Loaded on first use, which is before the first call.
Standin& standin();

}  // namespace kintsugi::tests::cudnn
