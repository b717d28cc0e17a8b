// Peak rates of a rank, as measured on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::train {

struct Limits {
  double flops = 0;          // fp32 operations per second
  double product_flops = 0;  // matmuls in the run's dtype, operations per second
  double bytes = 0;          // memory traffic, bytes read and written per second

  double flops_of(std::string_view kernel) const;  // one of the first two
};

// Whether a kernel's work is mostly matrix multiplication: those of the model, of attention and of the head.
bool is_product(std::string_view kernel);

// Measures the team for about 200 ms. `dtype`: the run's. `copied`: bytes copied to measure memory, which needs twice
// that. Calls meet() before each part, so that several ranks measure the same concurrently.
constexpr int64_t kMostCopied = int64_t{128} << 20, kLeastCopied = int64_t{16} << 20;
Limits measure_limits(
    base::ThreadTeam& team, tensor::DType dtype, int64_t copied = kMostCopied,
    const std::function<void()>& meet = [] {});

// "104 GFLOP/s (fp32), 15.6 GB/s of memory"; for bf16 also the matmul rate.
std::string print(const Limits& limits, tensor::DType dtype);

}  // namespace kintsugi::train
