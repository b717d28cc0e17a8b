#include "kintsugi/kernels/cpu/compare_test.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

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

// The gradients of the logits, below 2 here, are rounded to bf16 before the matmul.
Tolerance of_gradients(DType dtype) {
  return {1e-5, 2e-5 + unit_of(dtype) * (dtype == DType::bf16 ? 0.5 : 0.01)};
}

struct Operands {
  Tensor x, table, labels;
};

// `biased`: with a bias, and its gradient.
void check(const Case& c, const Operands& given, int threads, bool biased) {
  SCOPED_TRACE(biased ? "biased" : "");
  Tensor x = given.x, table = given.table, labels = given.labels;
  const DType dtype = x.type().dtype;
  const Shape positions = labels.type().shape, bias_shape({{"vocab", c.vocab}});
  const Shape logits_shape({{"batch", c.batch}, {"seq", c.seq}, {"vocab", c.vocab}});
  const auto statistic = [&] { return Tensor(positions, DType::f32); };
  Tensor some = random_tensor(bias_shape, dtype, 7);
  Tensor* bias = biased ? &some : nullptr;
  Trial trial{.kind = "head", .threads = threads};
  if (c.whole) trial.indices.push_back({"vocab", DimIndex(c.segments, c.whole)});
  compare(trial, {&x, &table, &labels, bias}, {statistic(), statistic()});
  compare(trial, {&x, &table, &labels, bias}, {statistic(), statistic(), Tensor(logits_shape, DType::f32)});
  compare(trial, {&x, &table, &labels, bias},
          {statistic(), statistic(), Tensor(logits_shape, DType::f32), statistic()});

  Tensor lse = statistic(), target = statistic(), logits(logits_shape, DType::f32);
  run_kernel(*reference_kernels(), trial, {&x, &table, &labels, bias}, {&lse, &target, &logits});
  Tensor dlse = random_tensor(positions, DType::f32, 4), dtarget = random_tensor(positions, DType::f32, 5);
  dlse.set(0, 0), dtarget.set(0, 0);
  for (const bool accumulate : {false, true}) {
    const auto weight = [&](const Shape& shape) {
      return accumulate ? random_tensor(shape, DType::f32, 6) : Tensor(shape, DType::f32);
    };
    std::vector<Tensor> gradients = {Tensor(x.type()), weight(table.type().shape)};
    if (biased) gradients.push_back(weight(bias_shape));
    trial.kind = "head_grad";
    trial.accumulate = accumulate ? 6 : 0;
    for (Tensor* kept : {static_cast<Tensor*>(nullptr), &logits})
      compare(trial, {&x, &table, &labels, bias, &lse, &dlse, &dtarget, kept}, gradients, of_gradients(dtype));
    trial.kind = "head_with_grad";
    trial.accumulate <<= 2;
    gradients.insert(gradients.begin(), {statistic(), statistic()});
    compare(trial, {&x, &table, &labels, bias, &dlse, &dtarget}, gradients, of_gradients(dtype));
  }
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
          for (const bool biased : {false, true}) {
            if (c.batch == 3 && !biased) continue;
            check(c, {x, table, labels}, threads, biased);
          }
        }
      }
    }
  });
}

// More logits than are held at once; with 16 bits the table is converted in parts.
TEST(CpuHead, WholeRowsInSeveralBlocks) {
  const Shape positions({{"batch", 1}, {"seq", 600}}), x_shape({{"batch", 1}, {"seq", 600}, {"embed", 2}});
  const Shape table_shape({{"vocab", 32800}, {"embed", 2}});
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor x = random_tensor(x_shape, dtype, 1), table = random_tensor(table_shape, dtype, 2);
    Tensor labels = random_integers(positions, 3, -5, 32800);
    Tensor dlse = random_tensor(positions, DType::f32, 4), dtarget = random_tensor(positions, DType::f32, 5);
    Tensor bias = random_tensor({{"vocab", 32800}}, dtype, 6);
    compare({.kind = "head_with_grad", .threads = 3}, {&x, &table, &labels, &bias, &dlse, &dtarget},
            {Tensor(positions, DType::f32), Tensor(positions, DType::f32), Tensor(x_shape, dtype),
             Tensor(table_shape, DType::f32), Tensor({{"vocab", 32800}}, DType::f32)},
            of_gradients(dtype));
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test::head_test
