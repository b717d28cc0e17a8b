#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

// A single thread adds blocks in order: they are a thousand times fewer than elements.
void sum_blocks(const KernelCall& call) {
  double sum = 0;
  for (const tensor::View& blocks : call.ins)
    for (const double block : blocks.as<double>()) sum += block;
  call.outs[0].as<double>()[0] = sum;
}

}  // namespace kintsugi::kernels::cpu
