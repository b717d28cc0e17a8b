#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

TEST(OnDevice, PositionAndItsGradient) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t embed : {37, 64})
      for (const auto& indices : std::vector<std::vector<NamedIndex>>{
               {},
               {{"seq", DimIndex({{7, 9}}, 16)}},
               {{"seq", DimIndex({{2, 4}, {12, 3}, {-1, 2}}, 16)}},
               {{"seq", DimIndex({{13, 9}}, 40)}},
               {{"seq", DimIndex({{2, 9}}, 40)}, {"position", DimIndex({{8, 10}, {0, 3}, {-1, 3}}, 40)}}}) {
        const Shape table_shape({{"position", 16}, {"embed", embed}}), y_shape({{"seq", 9}, {"embed", embed}});
        Tensor table = random_tensor(table_shape, dtype, 1), dy = random_tensor(y_shape, dtype, 2);
        compare_on_device({.kind = "position", .indices = indices}, {&table}, {Tensor(y_shape, dtype)}, {0, 0});
        for (const DType sums : {DType::f32, dtype})
          for (const uint32_t accumulate : {0u, 1u})
            compare_on_device({.kind = "position_grad", .indices = indices, .accumulate = accumulate}, {&dy},
                              {random_tensor(table_shape, sums, 3)});
      }
}

}  // namespace
}  // namespace kintsugi::kernels::test
