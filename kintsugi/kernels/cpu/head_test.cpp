#include "kintsugi/kernels/cpu/compare_test.h"

namespace kintsugi::kernels::test::head_test {
namespace {

struct Case {
  int64_t batch, seq, embed, vocab;
  std::vector<tensor::Segment> segments = {};
  int64_t whole = 0;
};

const Case kCases[] = {
    {2, 9, 13, 65},
    {1, 33, 24, 70, {{130, 65}, {-1, 5}}, 195},
    {3, 700, 4, 1060},  // several blocks of rows and of the vocabulary
    {1, 1, 16, 300},
};

// The gradients of the logits, below 2 here, are rounded to bf16 before they are multiplied.
Tolerance of_gradients(DType dtype) {
  return {1e-5, 2e-5 + unit_of(dtype) * (dtype == DType::bf16 ? 0.5 : 0.01)};
}

TEST(CpuHead, AgreesWithTheReference) {
  with_each_target([] {
    for (const Case& c : kCases) {
      for (const DType dtype : kFastTypes) {
        if (c.batch == 3 && dtype != DType::f32) continue;
        for (const int threads : {1, 3}) {
          if (c.batch == 3 && threads == 1) continue;
          const Shape positions({{"batch", c.batch}, {"seq", c.seq}});
          const Shape x_shape({{"batch", c.batch}, {"seq", c.seq}, {"embed", c.embed}});
          const Shape table_shape({{"vocab", c.vocab}, {"embed", c.embed}});
          Tensor x = random_tensor(x_shape, dtype, 1), table = random_tensor(table_shape, dtype, 2);
          Tensor labels = random_integers(positions, 3, -5, c.whole ? c.whole : c.vocab);
          Trial trial{.kind = "head", .threads = threads};
          if (c.whole) trial.indices.push_back({"vocab", DimIndex(c.segments, c.whole)});
          compare(trial, {&x, &table, &labels}, {Tensor(positions, DType::f32), Tensor(positions, DType::f32)});

          const Shape logits_shape({{"batch", c.batch}, {"seq", c.seq}, {"vocab", c.vocab}});
          compare(trial, {&x, &table, &labels},
                  {Tensor(positions, DType::f32), Tensor(positions, DType::f32), Tensor(logits_shape, DType::f32)});

          Tensor lse(positions, DType::f32), target(positions, DType::f32), logits(logits_shape, DType::f32);
          run_kernel(*reference_kernels(), trial, {&x, &table, &labels}, {&lse, &target, &logits});
          Tensor dlse = random_tensor(positions, DType::f32, 4), dtarget = random_tensor(positions, DType::f32, 5);
          dlse.set(0, 0), dtarget.set(0, 0);
          for (const uint32_t accumulate : {0u, 2u}) {
            trial.kind = "head_with_grad";
            trial.accumulate = accumulate << 2;
            compare(trial, {&x, &table, &labels, &dlse, &dtarget},
                    {Tensor(positions, DType::f32), Tensor(positions, DType::f32), Tensor(x_shape, dtype),
                     accumulate ? random_tensor(table_shape, DType::f32, 6) : Tensor(table_shape, DType::f32)},
                    of_gradients(dtype));
            trial.kind = "head_grad";
            trial.accumulate = accumulate;
            for (const bool kept : {false, true}) {
              std::vector<Tensor*> ins = {&x, &table, &labels, &lse, &dlse, &dtarget};
              if (kept) ins.push_back(&logits);
              compare(trial, ins,
                      {Tensor(x_shape, dtype),
                       accumulate ? random_tensor(table_shape, DType::f32, 6) : Tensor(table_shape, DType::f32)},
                      of_gradients(dtype));
            }
          }
        }
      }
    }
  });
}

// More logits than are held at one time; with 16 bits the table is widened in parts.
TEST(CpuHead, WholeRowsInSeveralBlocks) {
  const Shape positions({{"batch", 1}, {"seq", 600}}), x_shape({{"batch", 1}, {"seq", 600}, {"embed", 2}});
  const Shape table_shape({{"vocab", 32800}, {"embed", 2}});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor x = random_tensor(x_shape, dtype, 1), table = random_tensor(table_shape, dtype, 2);
    Tensor labels = random_integers(positions, 3, -5, 32800);
    Tensor dlse = random_tensor(positions, DType::f32, 4), dtarget = random_tensor(positions, DType::f32, 5);
    compare({.kind = "head_with_grad", .threads = 3}, {&x, &table, &labels, &dlse, &dtarget},
            {Tensor(positions, DType::f32), Tensor(positions, DType::f32), Tensor(x_shape, dtype),
             Tensor(table_shape, DType::f32)},
            of_gradients(dtype));
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test::head_test
