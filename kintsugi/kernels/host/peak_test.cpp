#include "kintsugi/kernels/host/peak.h"

#include <gtest/gtest.h>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/bf16_unit.h"

namespace kintsugi::kernels::host::peak_test {
namespace {

TEST(Peak, IsPlausible) {
  base::ThreadTeam team(2);
  base::ThreadTeam one(1);
  for (const tensor::DType dtype : {tensor::DType::f32, tensor::DType::bf16}) {
    const double both = measure_peak_flops(team, dtype);
    EXPECT_GT(both, 1e8) << name_of(dtype);
    EXPECT_LT(measure_peak_flops(one, dtype), 1.5 * both) << name_of(dtype);
  }
  EXPECT_EQ(measure_peak_flops(one, tensor::DType::f16) > 1e8, true);
  for (const cpu::Bf16Unit* unit : cpu::bf16_units()) EXPECT_GT(measure_peak_flops(one, *unit), 1e8) << unit->name;
  EXPECT_FALSE(simd_target().empty());
  EXPECT_EQ(bf16_unit_name(), cpu::bf16_unit().name);
}

}  // namespace
}  // namespace kintsugi::kernels::host::peak_test
