#include "kintsugi/kernels/gpu/attention_cases_test.h"

namespace kintsugi::kernels::test {
namespace {

using namespace attention_cases;

TEST(OnDevice, AttentionGradient) {
  for (const Case& c : kCases) {
    for (const bool causal : {true, false}) check_gradient(c, DType::bf16, causal, {});
    check_gradient(c, DType::f32, true, {});
  }
  check_gradient(kCases[1], DType::f16, true, {});
}

TEST(OnDevice, AttentionGradientWithExtras) {
  bool causal = false;
  for (const Extra& extra : kExtras) {
    causal = !causal;
    check_gradient(kMixed, DType::f32, !causal, extra);
    check_gradient(kMixed, DType::bf16, causal, extra);
  }
  check_gradient(kZigzag, DType::f16, true, kExtras[0]);
  check_gradient(kZigzag, DType::f16, false, kExtras[6]);
}

// Wide heads exceed these devices with the usual kernels.
TEST(OnDevice, AttentionWithLittleSharedMemory) {
  const SharedMemory little(kLittleShared);
  for (const Case& c : kCases) {
    if (c.head_dim <= 64) continue;
    for (const DType dtype : {DType::bf16, DType::f32}) {
      check_forward(c, dtype, true, {});
      check_gradient(c, dtype, true, {});
    }
  }
}

TEST(OnDevice, AttentionGradientInColumns) {
  for (const Case& c : kCases) {
    if (c.seq != c.key_seq || c.heads_first) continue;
    check_gradient_in_columns(c, DType::bf16, true, {});
    check_gradient_in_columns(c, DType::f32, false, {});
  }
  check_gradient_in_columns(kCases[1], DType::f16, true, {});
}

TEST(OnDevice, AttentionGradientInColumnsWithExtras) {
  const Case several = {"several heads", 2, 70, 70, 2, 2, 16, {}, {}, 0, true};
  for (Extra extra : kExtras) {
    extra.accumulate = false;
    check_gradient_in_columns(several, DType::bf16, true, extra);
    check_gradient_in_columns(several, DType::f32, false, extra);
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test
