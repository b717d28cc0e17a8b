#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

TEST(OnDevice, Embedding) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t vocab : {1, 17, 200}) {
      Tensor tokens = random_integers({{"batch", 3}, {"seq", 50}}, 1, 0, vocab);
      Tensor table = random_tensor({{"vocab", vocab}, {"embed", 37}}, dtype, 2);
      Tensor dy = random_tensor({{"batch", 3}, {"seq", 50}, {"embed", 37}}, dtype, 3);
      const Tensor y = random_tensor(dy.type().shape, dtype, 4), sum = random_tensor(table.type().shape, DType::f32, 5);
      for (const uint32_t accumulate : {0u, 1u}) {
        compare_on_device({.kind = "embedding", .accumulate = accumulate}, {&tokens, &table}, {y});
        compare_on_device({.kind = "embedding_grad", .accumulate = accumulate}, {&tokens, &dy}, {sum}, {1e-4, 1e-4});
      }
      // A part of the table, and padding at the end of seq.
      if (vocab < 17) continue;
      const std::vector<NamedIndex> part = {{"vocab", DimIndex({{5, vocab - 9}, {-1, 9}}, vocab)},
                                            {"seq", DimIndex({{20, 40}, {-1, 10}}, 60)}};
      compare_on_device({.kind = "embedding", .indices = part}, {&tokens, &table}, {y});
    }
}

}  // namespace
}  // namespace kintsugi::kernels::test
