// Collectives run while other instructions compute.
#pragma once

#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// A gather of a layer's weights goes to where the layer before it begins, so that it travels meanwhile.
void prefetch(program::Program& p);

// Each collective is enqueued where it stands, and waited for only where its result is used or its operand overwritten,
// or at the end of its body.
void overlap(program::Program& p);

}  // namespace kintsugi::lower
