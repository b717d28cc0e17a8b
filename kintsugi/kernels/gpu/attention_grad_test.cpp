#include "kintsugi/kernels/gpu/attention_cases_test.h"

namespace kintsugi::kernels::test {
namespace {

using namespace attention_cases;

TEST(OnDevice, AttentionGradient) {
  for (const DType dtype : kDeviceTypes)
    for (const Case& c : kCases)
      for (const bool causal : {true, false}) check_gradient(c, dtype, causal, {});
}

TEST(OnDevice, AttentionGradientWithExtras) {
  for (const Extra& extra : kExtras)
    for (const bool causal : {true, false}) {
      check_gradient(kMixed, DType::f32, causal, extra);
      check_gradient(kMixed, DType::bf16, causal, extra);
    }
  check_gradient(kZigzag, DType::f16, true, kExtras[0]);
  check_gradient(kZigzag, DType::f16, false, kExtras[6]);
}

}  // namespace
}  // namespace kintsugi::kernels::test
