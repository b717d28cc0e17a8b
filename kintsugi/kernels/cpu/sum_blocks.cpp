#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

// Added by one thread in the order of blocks: there are a thousand times fewer of them than elements.
void sum_blocks(const KernelCall& call) {
  double sum = 0;
  for (const tensor::View& blocks : call.ins)
    for (const double block : blocks.as<double>()) sum += block;
  call.outs[0].as<double>()[0] = sum;
}

}  // namespace kintsugi::kernels::cpu
