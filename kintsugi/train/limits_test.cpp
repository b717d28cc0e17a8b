#include "kintsugi/train/limits.h"

#include <gtest/gtest.h>

namespace kintsugi::train::limits_test {

TEST(Limits, ProductsHaveTheRateOfTheirUnit) {
  const Limits limits = {.flops = 1e9, .product_flops = 3e9, .bytes = 5e9};
  for (const char* kernel : {"contract", "attention", "attention_grad", "head", "head_grad", "head_with_grad"})
    EXPECT_EQ(limits.flops_of(kernel), 3e9) << kernel;
  for (const char* kernel : {"layer_norm", "adamw", "add", "attention_join", "all_reduce"})
    EXPECT_EQ(limits.flops_of(kernel), 1e9) << kernel;
  EXPECT_EQ(print(limits, tensor::DType::f32), "1.00 GFLOP/s (fp32), 5.00 GB/s of memory");
  EXPECT_EQ(print(limits, tensor::DType::bf16), "1.00 GFLOP/s (fp32), 3.00 GFLOP/s (products in bf16), 5.00 GB/s of memory");
}

TEST(Limits, AreMeasuredTogether) {
  base::ThreadTeam team(1);
  int met = 0;
  const auto meet = [&] { ++met; };
  const Limits wide = measure_limits(team, tensor::DType::f32, kLeastCopied, meet);
  EXPECT_EQ(met, 2);
  EXPECT_GT(wide.flops, 1e8);
  EXPECT_EQ(wide.product_flops, wide.flops);
  EXPECT_GT(wide.bytes, 1e7);
  const Limits narrow = measure_limits(team, tensor::DType::bf16, kLeastCopied, meet);
  EXPECT_EQ(met, 5);
  EXPECT_GT(narrow.product_flops, 1e8);
  EXPECT_NE(narrow.product_flops, narrow.flops);
}

}  // namespace kintsugi::train::limits_test
