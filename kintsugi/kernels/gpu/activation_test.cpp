#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

TEST(OnDevice, Activations) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t size : {1, 7, 64, 1000, 4099}) {
      Tensor x = random_tensor({{"embed", size}}, dtype, 1, -4, 4), dy = random_tensor({{"embed", size}}, dtype, 2);
      const Tensor y = random_tensor({{"embed", size}}, dtype, 3);
      for (const char* kind : {"gelu", "silu", "relu", "relu2", "tanh"})
        for (const char* form : {"tanh", "erf"})
          for (const uint32_t accumulate : {0u, 1u}) {
            const Attributes attributes = {{"form", form}};
            compare_on_device({.kind = kind, .attributes = attributes, .accumulate = accumulate}, {&x}, {y});
            compare_on_device({.kind = std::string(kind) + "_grad", .attributes = attributes, .accumulate = accumulate},
                              {&x, &dy}, {y});
          }
    }
}

// Far from zero, where squares and exponentials are infinite.
TEST(OnDevice, ActivationsOfLargeNumbers) {
  const std::vector<double> values = {-3e38, -1e20, -1e19, -1e5, -90, 90, 1e5, 1e19, 1e20, 3e38};
  const Shape shape({{"embed", static_cast<int64_t>(values.size())}});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor x(shape, dtype, values), one = filled(shape, dtype, 1);
    const Tensor y(shape, dtype);
    for (const char* kind : {"gelu", "silu", "relu", "tanh"})
      for (const char* form : {"tanh", "erf"}) {
        const Attributes attributes = {{"form", form}};
        compare_on_device({.kind = kind, .attributes = attributes}, {&x}, {y});
        compare_on_device({.kind = std::string(kind) + "_grad", .attributes = attributes}, {&x, &one}, {y});
      }
    for (const char* activation : {"gelu_tanh", "gelu", "silu", "relu"})
      compare_on_device({.kind = "gated_grad", .attributes = {{"activation", activation}}}, {&x, &one, &one}, {y, y});
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test
