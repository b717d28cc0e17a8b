#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

TEST(OnDevice, Norms) {
  for (const DType dtype : kDeviceTypes)
    for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{1, 1},
                                      {3, 7},
                                      {37, 130},
                                      {70, 768},
                                      {40, 1024},
                                      {5, 1600},
                                      {6, 4096},
                                      {3, 5001},
                                      {2, 8200}}) {
      const Shape shape({{"seq", rows}, {"embed", width}}), row({{"embed", width}});
      Tensor x = random_tensor(shape, dtype, 1, -2, 3), dy = random_tensor(shape, dtype, 2);
      Tensor gamma = random_tensor(row, dtype, 3, 0.5, 1.5), beta = random_tensor(row, dtype, 4);
      const Tensor y = random_tensor(shape, dtype, 5), sum = random_tensor(row, DType::f32, 6);
      const double loose = dtype == DType::f32 ? 1e-4 : 2e-2;
      for (const uint32_t accumulate : {0u, 7u}) {
        const Attributes attributes = {{"epsilon", 1e-5}, {"gamma_offset", 1.0}}, plain = {{"epsilon", 1e-5}};
        compare_on_device({.kind = "layer_norm", .attributes = plain, .accumulate = accumulate & 1},
                          {&x, &gamma, &beta}, {y}, {1e-4, loose});
        compare_on_device({.kind = "layer_norm", .attributes = plain}, {&x, &gamma}, {y}, {1e-4, loose});
        compare_on_device({.kind = "rms_norm", .attributes = attributes, .accumulate = accumulate & 1}, {&x, &gamma},
                          {y}, {1e-4, loose});
        compare_on_device({.kind = "layer_norm_grad", .attributes = plain, .accumulate = accumulate}, {&x, &gamma, &dy},
                          {y, sum, sum}, {1e-4, loose});
        compare_on_device({.kind = "rms_norm_grad", .attributes = attributes, .accumulate = accumulate & 3},
                          {&x, &gamma, &dy}, {y, sum}, {1e-4, loose});
      }
    }
}

}  // namespace
}  // namespace kintsugi::kernels::test
