// Counts the work of a step by the common definitions.
#pragma once

#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::simulate {

// FLOPs of a step over all ranks.
//
// model: three times those of the forward pass, counting only computed pairs of causal attention, without
// recomputation. full_attention: the same with all pairs of attention (Chowdhery et al. 2022, appendix B). hardware:
// everything that is computed.
struct Work {
  double model = 0, full_attention = 0, hardware = 0;
};

Work work_of(const std::vector<program::Program>& stages);

}  // namespace kintsugi::simulate
