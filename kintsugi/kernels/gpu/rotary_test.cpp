#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test {
namespace {

void compare_both(const Trial& trial, Tensor& x) {
  static const auto reference = reference_kernels();
  const DeviceTolerance tolerance{1e-6, 2e-6};
  compare_on_device(trial, {&x}, {Tensor(x.type())}, tolerance);
  Tensor want = x;
  run_kernel(*reference, trial, {&want}, {&want});
  for (const int64_t shift : {0, 1}) {
    Tensor got = x;
    run_on_device(trial, {&got}, {&got}, shift);
    expect_close(got, want, tolerance.relative + device_unit_of(x.type().dtype), tolerance.absolute, "in place");
  }
}

TEST(OnDevice, RotaryInBothForms) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t head_dim : {44, 64}) {
      Tensor x =
          random_tensor({{"batch", 2}, {"seq", 9}, {"kv_heads", 2}, {"group", 3}, {"head_dim", head_dim}}, dtype, 1);
      for (const int64_t inverse : {0, 1})
        for (const int64_t interleaved : {0, 1})
          for (const DimIndex& seq : {DimIndex(9), DimIndex({{7, 5}, {131000, 4}}, 200000)})
            compare_both({.kind = "rotary",
                          .attributes = {{"theta", 10000.0}, {"inverse", inverse}, {"interleaved", interleaved}},
                          .indices = {{"seq", seq}}},
                         x);
    }
}

TEST(OnDevice, RotaryOfSomeDimsAndScaledFrequencies) {
  const Attributes scalings[] = {
      {{"dims", int64_t{44}}, {"scaling", "linear"}, {"factor", 4.0}},
      {{"dims", int64_t{32}}, {"magnitude", 1.2}},
      {{"scaling", "yarn"}, {"factor", 4.0}, {"original", int64_t{512}}, {"beta_fast", 32.0}, {"beta_slow", 1.0}},
      {{"scaling", "llama3"}, {"factor", 8.0}, {"original", int64_t{512}}, {"low_factor", 1.0}, {"high_factor", 4.0}},
      {{"dims", int64_t{4}}, {"scaling", "list"}, {"factors", "1.5 20"}},
      {{"dims", int64_t{0}}},
  };
  for (const DType dtype : kDeviceTypes)
    for (const int64_t head_dim : {50, 64})
      for (const Attributes& scaling : scalings)
        for (const int64_t interleaved : {0, 1}) {
          Tensor x = random_tensor({{"batch", 2}, {"seq", 9}, {"kv_heads", 2}, {"head_dim", head_dim}}, dtype, 1);
          Trial trial{.kind = "rotary",
                      .attributes = {{"theta", 10000.0}, {"inverse", int64_t{0}}, {"interleaved", interleaved}},
                      .indices = {{"seq", DimIndex({{7, 5}, {1000, 4}}, 2000)}}};
          for (const auto& [name, value] : scaling.list()) trial.attributes.set(name, value);
          compare_both(trial, x);
        }
}

// Queries and keys, and operands with other heads.
TEST(OnDevice, RotaryTogether) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t head_dim : {16, 12}) {
      const auto of = [&](int64_t kv_heads, int64_t width) {
        return random_tensor({{"batch", 2}, {"seq", 3}, {"kv_heads", kv_heads}, {"head_dim", width}}, dtype, 1);
      };
      Tensor q = of(6, 16), k = of(2, head_dim);
      const Trial trial{.kind = "rotary",
                        .attributes = {{"theta", 10000.0}, {"inverse", int64_t{0}}, {"interleaved", int64_t{0}}},
                        .indices = {{"seq", DimIndex({{5, 3}}, 8)}}};
      for (const int64_t shift : {0, 1}) compare_together(trial, {{&q}, {&k}}, {{q}, {k}}, shift);
    }
}

// Several positions per block, and a last block with fewer.
TEST(OnDevice, RotaryOfManyPositions) {
  Tensor x = random_tensor({{"batch", 3}, {"seq", 1111}, {"head_dim", 16}}, DType::bf16, 1);
  const Trial trial{.kind = "rotary",
                    .attributes = {{"theta", 10000.0}, {"inverse", int64_t{0}}, {"interleaved", int64_t{0}}}};
  compare_on_device(trial, {&x}, {Tensor(x.type())});
}

}  // namespace
}  // namespace kintsugi::kernels::test
