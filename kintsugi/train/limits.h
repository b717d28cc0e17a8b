// What a rank can do at most, as measured on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::train {

struct Limits {
  double flops = 0;          // fp32 operations a second
  double product_flops = 0;  // of matrix products of the run's dtype
  double bytes = 0;          // of memory, read and written, a second

  double flops_of(std::string_view kernel) const;  // of these two
};

// Whether nearly all that a kernel computes is matrix products: those of the model, of attention and of the head.
bool is_product(std::string_view kernel);

// Of the team, in about 200 ms. `dtype`: of the run. `copied`: bytes to measure the memory with, of which it takes
// twice as many. meet() is called before each part, so that several ranks measure the same at once.
constexpr int64_t kMostCopied = int64_t{128} << 20, kLeastCopied = int64_t{16} << 20;
Limits measure_limits(
    base::ThreadTeam& team, tensor::DType dtype, int64_t copied = kMostCopied,
    const std::function<void()>& meet = [] {});

// "104 GFLOP/s (fp32), 15.6 GB/s of memory"; of a run in bf16 with the rate of its products.
std::string print(const Limits& limits, tensor::DType dtype);

}  // namespace kintsugi::train
