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

// So few rows that each is a block's work: for a generated token, with all options of a call.
TEST(OnDevice, AttentionOfFewRows) {
  const Case cases[] = {
      {"one query", 1, 1, 300, 3, 1, 64, {{170, 1}}, {}, 300},
      {"grouped", 2, 1, 150, 2, 4, 128, {{149, 1}}, {}, 150},
      {"a head that no word divides", 1, 2, 20, 1, 2, 20, {{10, 2}}, {}, 20},
      {"heads first, with starts", 2, 3, 70, 2, 1, 40, {{60, 3}}, {}, 70, true, true},
      {"widest", 1, 3, 40, 1, 2, 256, {{30, 3}}, {}, 40},
      {"runs with padding", 1, 4, 90, 1, 2, 24, {{30, 3}, {-1, 1}}, {{0, 20}, {24, 50}, {-1, 20}}, 100, true},
  };
  bool causal = false;
  for (const Case& c : cases)
    for (const DType dtype : kDeviceTypes) {
      causal = !causal;
      check_forward(c, dtype, true, {});
      check_forward(c, dtype, causal, kExtras[1]);
    }
  for (const Extra& extra : kExtras)
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const Case& c : {cases[1], cases[5]}) check_forward(c, dtype, causal = !causal, extra);
}

// So many keys that several blocks share them: a row's visible keys are in the last, the first or a middle one, or
// start there.
TEST(OnDevice, AttentionOfFewRowsAndManyKeys) {
  const Case cases[] = {
      {"one query", 1, 1, 2500, 2, 1, 16, {{2300, 1}}, {}, 2500},
      {"early", 1, 1, 2500, 1, 2, 16, {{3, 1}}, {}, 2500},
      {"at a cut", 2, 2, 3100, 1, 2, 24, {{2047, 2}}, {}, 3100, true},
      {"heads first, with starts", 2, 1, 2100, 2, 1, 16, {{2090, 1}}, {}, 2100, true, true},
  };
  bool causal = false;
  for (const Case& c : cases)
    for (const DType dtype : kDeviceTypes) {
      check_forward(c, dtype, true, {});
      check_forward(c, dtype, causal = !causal, kExtras[1]);
    }
  for (const Extra& extra : kExtras) check_forward(cases[2], DType::bf16, causal = !causal, extra);
}

}  // namespace
}  // namespace kintsugi::kernels::test
