// The instructions of a body as the software of a measurement runs them: in its order, and with its kernels where one
// does what are several here.
#pragma once

#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/kernel_costs.h"
#include "kintsugi/simulate/software.h"

namespace kintsugi::simulate {

// Each instruction once; one that another does the work of takes no time.
std::vector<Arranged> arranged(const program::Program& p, const program::Body& body, const Software& software);

}  // namespace kintsugi::simulate
