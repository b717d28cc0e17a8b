// For tests: a gradient kernel against central differences of its forward kernel, in fp64. The code is in
// gradient_check_test.cpp, since only tests know GoogleTest.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kintsugi/kernels/kernel_test_harness.h"

namespace kintsugi::kernels::reference {

using test::Tensor;

struct GradientCheck {
  test::Trial forward;                  // the operation
  std::vector<Tensor> ins;              // its inputs that are present; the floating ones in fp64
  std::vector<tensor::Type> outs;       // its outputs
  std::vector<size_t> with_respect_to;  // the inputs that have a gradient
  // The gradients of those inputs, from (inputs, outputs, cotangent of each output).
  std::function<std::vector<Tensor>(std::vector<Tensor>&, std::vector<Tensor>&, std::vector<Tensor>&)> gradients = {};
  size_t num_cotangents = 8;  // outputs from there on have none
  uint32_t absent = 0;        // inputs that are absent, by position
};

// The sum of every output weighted by a random cotangent, differentiated with respect to every element.
void check_gradient(GradientCheck check);

// Those that are present at their positions, null where one is absent.
std::vector<Tensor*> pointers(std::vector<Tensor>& there, uint32_t absent = 0);

// Runs one kernel of the reference set.
void run_reference(const test::Trial& trial, const std::vector<Tensor*>& ins, const std::vector<Tensor*>& outs);

}  // namespace kintsugi::kernels::reference
