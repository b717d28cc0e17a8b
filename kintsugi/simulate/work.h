// What a step computes, counted by the definitions that are in use.
#pragma once

#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::simulate {

// FLOPs of a step on all ranks together.
//
// model: three times those of the forward pass, of causal attention those of the pairs that are computed; nothing that
// is computed again counts. full_attention: the same with all pairs of attention (Chowdhery et al. 2022, appendix B).
// hardware: all that is computed.
struct Work {
  double model = 0, full_attention = 0, hardware = 0;
};

Work work_of(const std::vector<program::Program>& stages);

}  // namespace kintsugi::simulate
