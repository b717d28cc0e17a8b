#include "kintsugi/compile/strategy_costs.h"

#include <gtest/gtest.h>

namespace kintsugi::compile::strategy_costs_test {

TEST(StrategyCosts, AsText) {
  const std::vector<StrategyCosts> list = {
      {.name = "one rank", .splits = "nothing", .passes = 2, .states = 6 << 20, .arena = 2 << 20, .flops = 1e9},
      {.name = "data",
       .splits = "batch",
       .passes = 1,
       .calls = 12,
       .sent = 1 << 20,
       .states = 4 << 20,
       .arena = 2 << 20,
       .flops = 2.6e8},
      {.name = "tensor", .splits = "kv_heads, ffn", .refused = "[plan] no"},
  };
  EXPECT_EQ(print(list, 4),
            "strategies for 4 ranks: what each rank sends in a step, holds, and computes\n"
            "  strategy  calls      sent   states    arena   memory  saves    work\n"
            "  one rank      0       0 B  6.0 MiB  2.0 MiB  8.0 MiB     0%  100.0%\n"
            "  data         12   1.0 MiB  4.0 MiB  2.0 MiB  6.0 MiB    25%   26.0%\n"
            "            what is split  passes\n"
            "  one rank  nothing             2\n"
            "  data      batch               1\n"
            "  tensor    kv_heads, ffn\n"
            "    [plan] no\n");
}

}  // namespace kintsugi::compile::strategy_costs_test
