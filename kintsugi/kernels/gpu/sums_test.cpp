#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

TEST(OnDevice, SumOverAnyDimsToAnyOrder) {
  const Shape x_shape({{"batch", 3}, {"seq", 17}, {"kv_heads", 2}, {"embed", 8}});
  const Shape outs[] = {Shape({{"embed", 8}}),
                        Shape({{"kv_heads", 2}, {"embed", 8}}),
                        Shape({{"seq", 17}, {"kv_heads", 2}, {"embed", 8}}),
                        Shape({{"batch", 3}, {"kv_heads", 2}, {"embed", 8}}),
                        Shape({{"batch", 3}, {"seq", 17}, {"embed", 8}}),
                        Shape({{"batch", 3}, {"seq", 17}, {"kv_heads", 2}}),
                        Shape({{"batch", 3}}),
                        Shape({}),
                        Shape({{"seq", 17}}),
                        Shape({{"seq", 17}, {"embed", 8}}),
                        Shape({{"embed", 8}, {"batch", 3}}),
                        Shape({{"embed", 8}, {"seq", 17}, {"batch", 3}}),
                        x_shape};
  for (const DType dtype : kDeviceTypes) {
    Tensor x = random_tensor(x_shape, dtype, 1);
    for (const Shape& shape : outs)
      for (const uint32_t accumulate : {0u, 1u})
        for (const DType out : {dtype, dtype == DType::f32 ? DType::f64 : DType::f32})
          compare_on_device({.kind = "sum", .accumulate = accumulate}, {&x}, {random_tensor(shape, out, 2)},
                            {1e-5, 3e-5});
  }
}

// Slices of rows or columns, whole or not, and the rest of a vector.
TEST(OnDevice, SumOfManyRowsAndLongRows) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (const auto& [above, rows, columns] : std::initializer_list<std::array<int64_t, 3>>{{1, 1500, 8},
                                                                                            {1, 260, 300},
                                                                                            {1, 259, 37},
                                                                                            {3, 130, 24},
                                                                                            {1, 9001, 1},
                                                                                            {2, 8200, 1},
                                                                                            {3, 4197, 1},
                                                                                            {1, 33, 65},
                                                                                            {1, 32, 65},
                                                                                            {5, 4, 16},
                                                                                            {19, 3, 1},
                                                                                            {1, 0, 5},
                                                                                            {1, 1, 1}}) {
      Tensor x = random_tensor({{"batch", above}, {"seq", rows}, {"embed", columns}}, dtype, 1);
      for (const DType out : {DType::f32, DType::f64})
        for (const uint32_t accumulate : {0u, 1u})
          compare_on_device(
              {.kind = "sum", .accumulate = accumulate}, {&x},
              {random_tensor({{"batch", above}, {"embed", columns}}, out, 2)},
              dtype == DType::f64 && out == DType::f64 ? DeviceTolerance{1e-12, 1e-12} : DeviceTolerance{1e-5, 1e-4});
    }
}

// Some columns of a wider value.
TEST(OnDevice, SumOfColumns) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (const auto& [rows, all, first, count] : std::initializer_list<std::array<int64_t, 4>>{{1500, 24, 8, 8},
                                                                                               {1500, 25, 8, 8},
                                                                                               {1500, 24, 3, 8},
                                                                                               {260, 900, 300, 600},
                                                                                               {9001, 3, 2, 1},
                                                                                               {32, 65, 0, 64},
                                                                                               {5, 24, 16, 8},
                                                                                               {5, 3, 1, 1},
                                                                                               {0, 4, 1, 2}})
      for (const uint32_t accumulate : {0u, 1u}) {
        Tensor x = random_tensor({{"seq", rows}, {"columns", all}}, dtype, 1);
        compare_on_device({.kind = "sum", .attributes = {{"first", first}}, .accumulate = accumulate}, {&x},
                          {random_tensor({{"columns", count}}, DType::f32, 2)}, {1e-5, 1e-4});
      }
}

TEST(OnDevice, LogSumExpOfParts) {
  for (const int64_t parts : {1, 2, 7})
    for (const int64_t n : {1, 3, 300, 3000}) {
      Tensor x = random_tensor({{"part", parts}, {"batch", 1}, {"seq", n}}, DType::f32, 1, -90, 90);
      for (int64_t i = 0; i < x.elements(); i += 3) x.set(i, -INFINITY);
      if (n > 3) x.set(4, NAN), x.set(5, INFINITY);
      compare_on_device({.kind = "logsumexp"}, {&x}, {Tensor({{"batch", 1}, {"seq", n}}, DType::f32)});
    }
}

}  // namespace
}  // namespace kintsugi::kernels::test
