#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test {
namespace {

TEST(OnDevice, AttentionJoin) {
  static const auto reference = reference_kernels();
  for (const int64_t head_dim : {1, 20, 64, 300}) {
    const Shape rows({{"batch", 2}, {"seq", 7}, {"kv_heads", 2}, {"group", 3}}),
        shape({{"batch", 2}, {"seq", 7}, {"kv_heads", 2}, {"group", 3}, {"head_dim", head_dim}});
    for (const DType dtype : kDeviceTypes)
      for (const DType wide : {DType::f32, dtype}) {  // what is joined may be kept in fp32
        Tensor a = random_tensor(shape, wide, 1), b = random_tensor(shape, dtype, 2);
        Tensor lse_a = random_tensor(rows, DType::f32, 3, -50, 50), lse_b = random_tensor(rows, DType::f32, 4, -50, 50);
        for (int64_t i = 0; i < lse_a.elements(); i += 5) lse_a.set(i, -INFINITY);
        for (int64_t i = 0; i < lse_b.elements(); i += 7) lse_b.set(i, -INFINITY);
        const Trial trial{.kind = "attention_join"};
        const DeviceTolerance tolerance{1e-5, 2e-6};
        compare_on_device(trial, {&a, &lse_a, &b, &lse_b}, {Tensor(shape, wide), Tensor(rows, DType::f32)}, tolerance);
        Tensor want = a, want_lse = lse_a;
        run_kernel(*reference, trial, {&want, &want_lse, &b, &lse_b}, {&want, &want_lse});
        for (const int64_t shift : {0, 1}) {
          Tensor got = a, got_lse = lse_a;
          run_on_device(trial, {&got, &got_lse, &b, &lse_b}, {&got, &got_lse}, shift);
          expect_close(got, want, tolerance.relative + device_unit_of(wide), tolerance.absolute, "o in place");
          expect_close(got_lse, want_lse, tolerance.relative, tolerance.absolute, "lse in place");
        }
      }
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test
