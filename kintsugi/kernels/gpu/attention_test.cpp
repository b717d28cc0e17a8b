#include "kintsugi/kernels/gpu/attention_cases_test.h"

namespace kintsugi::kernels::test {
namespace {

using namespace attention_cases;

TEST(OnDevice, Attention) {
  for (const Case& c : kCases) {
    for (const bool causal : {true, false}) check_forward(c, DType::bf16, causal, {});
    check_forward(c, DType::f32, true, {});
  }
  check_forward(kCases[1], DType::f16, true, {});
}

TEST(OnDevice, AttentionWithExtras) {
  bool causal = false;
  for (const Extra& extra : kExtras) {
    causal = !causal;
    check_forward(kMixed, DType::f32, !causal, extra);
    check_forward(kMixed, DType::bf16, causal, extra);
  }
  check_forward(kZigzag, DType::f16, true, kExtras[0]);
  check_forward(kZigzag, DType::f16, false, kExtras[6]);
}

}  // namespace
}  // namespace kintsugi::kernels::test
