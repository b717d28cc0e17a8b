// The instructions of a body as the software of a measurement runs them: in its order, and with its kernel fusions.
#pragma once

#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/kernel_costs.h"
#include "kintsugi/simulate/software.h"

namespace kintsugi::simulate {

// Each instruction once; an instruction fused into another takes no time.
std::vector<Arranged> arranged(const program::Program& p, const program::Body& body, const Software& software);

}  // namespace kintsugi::simulate
