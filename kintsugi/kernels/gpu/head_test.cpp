#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test::device_head_test {
namespace {

struct Case {
  int64_t batch, seq, embed, vocab;
  std::vector<tensor::Segment> segments = {};
  int64_t whole = 0;
  int64_t block_logits = 1 << 30;
};

const Case kCases[] = {
    {2, 9, 13, 65},
    {1, 17, 24, 70, {{130, 65}, {-1, 5}}, 195},
    {1, 12, 8, 72, {{-1, 3}, {10, 30}, {60, 39}}, 130},
    {3, 5, 16, 300, {}, 0, 8 << 10},  // several blocks of rows
    {1, 0, 5, 9},
};

// Logits, below 4 here, and their gradients, below 2, are rounded to the dtype of x.
DeviceTolerance of_logits(DType dtype) {
  return {2e-5 + device_unit_of(dtype) * 0.5, 2e-5 + device_unit_of(dtype) * 1.5};
}
DeviceTolerance of_gradients(DType dtype) {
  return {1e-4 + device_unit_of(dtype) * 0.5, 5e-5 + device_unit_of(dtype) * 4};
}

void check(const Case& c, DType dtype, bool biased) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " vocab " + std::to_string(c.vocab) + (biased ? " biased" : ""));
  const Shape positions({{"batch", c.batch}, {"seq", c.seq}}), bias_shape({{"vocab", c.vocab}});
  const Shape x_shape({{"batch", c.batch}, {"seq", c.seq}, {"embed", c.embed}});
  const Shape logits_shape({{"batch", c.batch}, {"seq", c.seq}, {"vocab", c.vocab}});
  Tensor x = random_tensor(x_shape, dtype, 1),
         table = random_tensor({{"vocab", c.vocab}, {"embed", c.embed}}, dtype, 2);
  Tensor labels = random_integers(positions, 3, -5, c.whole ? c.whole : c.vocab);
  const auto statistic = [&] { return Tensor(positions, DType::f32); };
  Tensor some = random_tensor(bias_shape, dtype, 7);
  Tensor* bias = biased ? &some : nullptr;
  Trial trial{.kind = "head", .attributes = {{"block_logits", c.block_logits}}};
  if (c.whole) trial.indices.push_back({"vocab", DimIndex(c.segments, c.whole)});
  compare_on_device(trial, {&x, &table, &labels, bias}, {statistic(), statistic(), absent()}, of_logits(dtype));
  compare_on_device(trial, {&x, &table, &labels, bias}, {statistic(), statistic(), Tensor(logits_shape, DType::f32)});
  compare_on_device(trial, {&x, &table, &labels, bias}, {statistic(), statistic(), absent(), statistic()},
                    of_logits(dtype));

  Tensor lse = statistic(), target = statistic(), logits(logits_shape, DType::f32);
  run_kernel(*reference_kernels(), trial, {&x, &table, &labels, bias}, {&lse, &target, &logits});
  Tensor dlse = random_tensor(positions, DType::f32, 4), dtarget = random_tensor(positions, DType::f32, 5);
  for (int64_t i = 0; i < positions.elements(); i += 5) dlse.set(i, 0), dtarget.set(i, 0);
  for (const bool accumulate : {false, true}) {
    const auto weight = [&](const Shape& shape) {
      return accumulate ? random_tensor(shape, DType::f32, 6) : Tensor(shape, DType::f32);
    };
    std::vector<Tensor> gradients = {Tensor(x.type()), weight(table.type().shape), absent()};
    if (biased) gradients[2] = weight(bias_shape);
    trial.kind = "head_grad";
    trial.accumulate = accumulate ? 6 : 0;
    for (Tensor* kept : {static_cast<Tensor*>(nullptr), &logits})
      compare_on_device(trial, {&x, &table, &labels, bias, &lse, &dlse, &dtarget, kept}, gradients,
                        of_gradients(dtype));
    trial.kind = "head_with_grad";
    trial.accumulate <<= 2;
    gradients.insert(gradients.begin(), {statistic(), statistic()});
    compare_on_device(trial, {&x, &table, &labels, bias, &dlse, &dtarget}, gradients, of_gradients(dtype));
  }
}

TEST(OnDevice, Head) {
  for (const Case& c : kCases)
    for (const DType dtype : kDeviceTypes)
      for (const bool biased : {false, true}) check(c, dtype, biased);
}

// Rows of logits that exceed shared memory, whose end is read again from global memory.
TEST(OnDevice, HeadOfLongRows) {
  for (const auto& [dtype, vocab] : {std::pair(DType::bf16, 49'700), std::pair(DType::f32, 25'001)}) {
    SCOPED_TRACE(name_of(dtype));
    Tensor x = random_tensor({{"batch", 2}, {"embed", 8}}, dtype, 1),
           table = random_tensor({{"vocab", vocab}, {"embed", 8}}, dtype, 2);
    Tensor labels({{"batch", 2}}, DType::i32, {5, static_cast<double>(vocab - 3)});
    Tensor dlse({{"batch", 2}}, DType::f32, {3000, -2000}), dtarget({{"batch", 2}}, DType::f32, {-1, 1});
    const Tensor statistic({{"batch", 2}}, DType::f32);
    compare_on_device({.kind = "head_with_grad"}, {&x, &table, &labels, nullptr, &dlse, &dtarget},
                      {statistic, statistic, Tensor(x.type()), Tensor(table.type().shape, DType::f32), absent()},
                      of_gradients(dtype));
  }
}

// A row whose position does not count contributes nothing, whatever its logits.
TEST(OnDevice, HeadWithoutWeight) {
  Tensor x = random_tensor({{"batch", 3}, {"embed", 4}}, DType::f32, 1),
         table = random_tensor({{"vocab", 10}, {"embed", 4}}, DType::f32, 2);
  for (int64_t e = 0; e < 4; ++e) x.set(4 + e, 1e38), table.set(e, 1e38);
  Tensor labels({{"batch", 3}}, DType::i32, {3, 4, 5}), dlse({{"batch", 3}}, DType::f32, {1, 0, 1}),
      dtarget({{"batch", 3}}, DType::f32, {-1, 0, -1});
  for (int64_t e = 0; e < 4; ++e) x.set(e, 0), x.set(8 + e, 0);
  Tensor lse({{"batch", 3}}, DType::f32), target(lse.type()), dx(x.type()), dtable(table.type());
  run_on_device({.kind = "head_with_grad"}, {&x, &table, &labels, nullptr, &dlse, &dtarget},
                {&lse, &target, &dx, &dtable});
  for (int64_t e = 0; e < 4; ++e) EXPECT_EQ(dx.get(4 + e), 0);
  for (int64_t i = 0; i < dtable.elements(); ++i) EXPECT_EQ(dtable.get(i), 0);
}

// Their exponentials are infinite.
TEST(OnDevice, HeadOfLargeLogits) {
  Tensor x({{"batch", 1}, {"embed", 1}}, DType::f32, {1}), labels({{"batch", 1}}, DType::i32, {137});
  for (const int64_t at : {0, 5, 137, 299}) {
    Tensor table = filled({{"vocab", 300}, {"embed", 1}}, DType::f32, 0);
    table.set(at, 200);
    const Tensor statistic({{"batch", 1}}, DType::f32);
    compare_on_device({.kind = "head", .attributes = {{"block_logits", int64_t{1} << 20}}},
                      {&x, &table, &labels, nullptr}, {statistic, statistic, absent()});
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test::device_head_test
