// The kernels that costs and software profiles distinguish.
#pragma once

#include <cstdint>

#include "kintsugi/program/instruction.h"

namespace kintsugi::simulate {

// norm: of layers, by any formula. adamw: a weight's update. other: any not listed, and instructions without a kernel.
enum class KernelKind : uint8_t {
  other,
  contract,
  grouped,
  attention,
  attention_grad,
  head,
  head_grad,
  head_with_grad,
  norm,
  norm_grad,
  rotary,
  dropout,
  add,
  stack,
  unstack,
  adamw,
};
KernelKind kind_of(const program::Instruction& i);

}  // namespace kintsugi::simulate
