// Compares each CPU kernel with the reference on the same inputs, for each SIMD target of the machine.
#pragma once

#include <functional>

#include "kintsugi/kernels/cpu/simd_targets.h"
// Highway reads the above.
#include "hwy/highway.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/kernel_test_harness.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test {

constexpr DType kFastTypes[] = {DType::f32, DType::bf16, DType::f16};

// One unit in the last place: two roundings of nearly equal numbers differ by at most that.
inline double unit_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 1.0 / 128;
    case DType::f16:
      return 1.0 / 1024;
    default:
      return 0;
  }
}

// Runs `test` with the best SIMD target, and with each lesser one.
inline void with_each_target(const std::function<void()>& test) {
  const int64_t all = hwy::SupportedTargets();
  for (int64_t left = all; left != 0; left &= left - 1) {
    const int64_t target = left & -left;
    if ((target & HWY_TARGETS) == 0) continue;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    test();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

struct Tolerance {
  double relative = 1e-5, absolute = 1e-5;
};

// Runs the trial with both sets of kernels; outputs are initialized from `outs`.
inline void compare(const Trial& trial, const std::vector<Tensor*>& ins, const std::vector<Tensor>& outs,
                    Tolerance tolerance = {}) {
  static const auto cpu = cpu_kernels();
  static const auto reference = reference_kernels();
  std::vector<Tensor> got = outs, want = outs;
  std::vector<Tensor*> got_outs, want_outs;
  for (size_t i = 0; i < outs.size(); ++i) got_outs.push_back(&got[i]), want_outs.push_back(&want[i]);
  run_kernel(*cpu, trial, ins, got_outs);
  run_kernel(*reference, trial, ins, want_outs);
  for (size_t i = 0; i < outs.size(); ++i) {
    expect_close(got[i], want[i], tolerance.relative + unit_of(got[i].type().dtype), tolerance.absolute,
                 trial.kind + " output " + std::to_string(i) + " " + std::string(name_of(got[i].type().dtype)) + " " +
                     std::to_string(trial.threads) + " threads");
  }
}

// The same, with output 0 in the memory of input `input`.
inline void compare_in_place(const Trial& trial, const std::vector<Tensor*>& ins, size_t input,
                             Tolerance tolerance = {}) {
  static const auto cpu = cpu_kernels();
  static const auto reference = reference_kernels();
  Tensor got = *ins[input], want = Tensor(ins[input]->type());
  std::vector<Tensor*> mine = ins;
  mine[input] = &got;
  run_kernel(*cpu, trial, mine, {&got});
  run_kernel(*reference, trial, ins, {&want});
  expect_close(got, want, tolerance.relative + unit_of(got.type().dtype), tolerance.absolute, trial.kind + " in place");
}

}  // namespace kintsugi::kernels::test
