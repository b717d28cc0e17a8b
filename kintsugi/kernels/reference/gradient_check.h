// For tests: compares a gradient kernel with central differences of its forward kernel, in fp64. Implemented in
// gradient_check_test.cpp, since only tests depend on GoogleTest.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kintsugi/kernels/kernel_test_harness.h"

namespace kintsugi::kernels::reference {

using test::Tensor;

struct GradientCheck {
  test::Trial forward;                  // the operation
  std::vector<Tensor> ins;              // its inputs that are present; floating-point ones in fp64
  std::vector<tensor::Type> outs;       // its outputs
  std::vector<size_t> with_respect_to;  // inputs to differentiate
  // Computes the gradients of those inputs from (inputs, outputs, cotangents of outputs).
  std::function<std::vector<Tensor>(std::vector<Tensor>&, std::vector<Tensor>&, std::vector<Tensor>&)> gradients = {};
  size_t num_cotangents = 8;  // outputs from there on have none
  uint32_t absent = 0;        // mask of absent inputs, by position
};

// Differentiates the sum of all outputs, weighted by random cotangents, with respect to every element.
void check_gradient(GradientCheck check);

// Those present, at their positions; null if absent.
std::vector<Tensor*> pointers(std::vector<Tensor>& there, uint32_t absent = 0);

// Runs one kernel of the reference set.
void run_reference(const test::Trial& trial, const std::vector<Tensor*>& ins, const std::vector<Tensor*>& outs);

}  // namespace kintsugi::kernels::reference
