#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

TEST(OnDevice, Embedding) {
  for (const DType dtype : kDeviceTypes)
    for (const auto& [vocab, embed] : {std::pair<int64_t, int64_t>{1, 37}, {17, 64}, {200, 37}}) {
      Tensor tokens = random_integers({{"batch", 3}, {"seq", 50}}, 1, 0, vocab);
      Tensor table = random_tensor({{"vocab", vocab}, {"embed", embed}}, dtype, 2);
      Tensor dy = random_tensor({{"batch", 3}, {"seq", 50}, {"embed", embed}}, dtype, 3);
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
      const std::vector<NamedIndex> vocabulary = {part[0]};
      compare_on_device({.kind = "embedding_grad", .indices = vocabulary}, {&tokens, &dy}, {sum}, {1e-4, 1e-4});
    }
}

// Tokens of several blocks, whose rows start and end anywhere in the sorted list, and vocabularies of one, two and
// three digits.
TEST(OnDevice, EmbeddingGradOfManyTokens) {
  for (const auto& [seq, vocab, embed] : {std::array<int64_t, 3>{5000, 1, 8},
                                          {5000, 40, 16},
                                          {9000, 700, 3},
                                          {40000, 300, 1},
                                          {2500, 300000, 1},
                                          {300, 50, 4200}}) {
    Tensor tokens = random_integers({{"seq", seq}}, 1, -1, vocab);
    for (int64_t i = 0; i < seq; i += 3) tokens.set(i, static_cast<double>(vocab / 2));  // one is frequent
    Tensor dy = random_tensor({{"seq", seq}, {"embed", embed}}, DType::bf16, 2);
    const Tensor sum = random_tensor({{"vocab", vocab}, {"embed", embed}}, DType::f32, 3);
    for (const uint32_t accumulate : {0u, 1u})
      compare_on_device({.kind = "embedding_grad", .accumulate = accumulate}, {&tokens, &dy}, {sum}, {1e-3, 1e-3});
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test
