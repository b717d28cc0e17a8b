#include "kintsugi/kernels/cpu/compare_test.h"

namespace kintsugi::kernels::test {
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

          Tensor lse(positions, DType::f32), target(positions, DType::f32);
          run_kernel(*reference_kernels(), trial, {&x, &table, &labels}, {&lse, &target});
          Tensor dlse = random_tensor(positions, DType::f32, 4), dtarget = random_tensor(positions, DType::f32, 5);
          dlse.set(0, 0), dtarget.set(0, 0);
          trial.kind = "head_grad";
          for (const uint32_t accumulate : {0u, 2u}) {
            trial.accumulate = accumulate;
            compare(trial, {&x, &table, &labels, &lse, &dlse, &dtarget},
                    {Tensor(x_shape, dtype),
                     accumulate ? random_tensor(table_shape, DType::f32, 6) : Tensor(table_shape, DType::f32)},
                    {1e-5, 2e-5 + unit_of(dtype) * 0.01});
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace kintsugi::kernels::test
