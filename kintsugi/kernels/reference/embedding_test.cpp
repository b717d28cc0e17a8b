#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::embedding_test {
namespace {

using namespace test;

const Shape kTokens = {{"batch", 2}, {"seq", 3}};
const Shape kTable = {{"vocab", 4}, {"embed", 3}};
const Shape kY = {{"batch", 2}, {"seq", 3}, {"embed", 3}};

TEST(ReferenceEmbedding, Gradient) {
  for (const DimIndex& vocab : {DimIndex(4), DimIndex({{2, 3}, {-1, 1}}, 8)}) {
    const std::vector<NamedIndex> indices = {{"vocab", vocab}};
    GradientCheck check{.forward = {.kind = "embedding", .indices = indices},
                        .ins = {Tensor(kTokens, DType::i32, {3, 0, -1, 3, 7, 2}), random_tensor(kTable, DType::f64, 1)},
                        .outs = {{kY, DType::f64}},
                        .with_respect_to = {1}};
    check.gradients = [&](auto& ins, auto&, auto& dy) {
      std::vector<Tensor> d = {Tensor(kTable, DType::f64)};
      run_reference({.kind = "embedding_grad", .indices = indices}, {&ins[0], &dy[0]}, {&d[0]});
      return d;
    };
    check_gradient(check);
  }
}

TEST(ReferenceEmbedding, SharesOfTheVocabularyAdd) {
  Tensor tokens(kTokens, DType::i32, {3, 0, -1, 1, 9, 2}), table = random_tensor(kTable, DType::f32, 1);
  Tensor y(kY, DType::f32), sum = filled(kY, DType::f32, 0);
  run_reference({.kind = "embedding"}, {&tokens, &table}, {&y});
  for (int64_t e = 0; e < 3; ++e) {
    EXPECT_EQ(y.get(e), table.get(9 + e));
    EXPECT_EQ(y.get(6 + e), 0);   // a negative token
    EXPECT_EQ(y.get(12 + e), 0);  // one that is not here
  }
  const std::vector<std::vector<tensor::Segment>> shares = {{{0, 3}}, {{3, 1}, {-1, 2}}};
  for (int64_t part : {0, 1}) {
    Tensor share({{"vocab", 3}, {"embed", 3}}, DType::f32), mine(kY, DType::f32);
    for (int64_t i = 0; i < (part == 0 ? 9 : 3); ++i) share.set(i, table.get(part * 9 + i));
    const DimIndex vocab(shares[static_cast<size_t>(part)], 4);
    run_reference({.kind = "embedding", .indices = {{"vocab", vocab}}}, {&tokens, &share}, {&mine});
    for (int64_t i = 0; i < sum.elements(); ++i) sum.set(i, sum.get(i) + mine.get(i));
  }
  expect_close(sum, y, 0, 0);
}

TEST(ReferenceEmbedding, GradientAccumulates) {
  Tensor tokens(kTokens, DType::i32, {1, 1, 1, 1, 1, -1}), dy = filled(kY, DType::bf16, 1);
  Tensor dtable = filled(kTable, DType::f32, 2);
  run_reference({.kind = "embedding_grad", .accumulate = 1}, {&tokens, &dy}, {&dtable});
  expect_close(dtable, {2, 2, 2, 7, 7, 7, 2, 2, 2, 2, 2, 2}, 0, 0);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::embedding_test
