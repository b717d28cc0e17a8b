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

}  // namespace
}  // namespace kintsugi::kernels::test
