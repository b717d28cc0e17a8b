#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

TEST(OnDevice, SumsOfSquares) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t size : {1, 1000, 1024, 5000}) {
      Tensor g = random_tensor({{"flat", size}}, dtype, 1);
      compare_on_device({.kind = "sum_squares"}, {&g}, {Tensor({{"block", (size + 1023) / 1024}}, DType::f64)});
    }
}

TEST(OnDevice, UpdateScale) {
  for (const int lists : {1, 3, 300})
    for (const double count : {0.0, 7.0}) {
      std::vector<Tensor> blocks;
      for (int i = 0; i < lists; ++i)
        blocks.push_back(random_tensor({{"block", 1 + i * 7 % 50}}, DType::f64,
                                       static_cast<uint64_t>(i + 1000 * (count > 0)), 0, 2));
      Tensor counted = filled({}, DType::f64, count), scale = filled({}, DType::f64, 4);
      std::vector<Tensor*> ins = {&counted, &scale}, all;
      for (Tensor& b : blocks) ins.push_back(&b), all.push_back(&b);
      const Tensor out({}, DType::f64);
      for (const double clip : {0.0, 0.5})
        compare_on_device({.kind = "update_scale", .attributes = {{"clip", clip}}}, ins, {out, out, out},
                          {1e-13, 1e-13});
      compare_on_device({.kind = "sum_blocks"}, all, {out}, {1e-13, 1e-13});
    }
}

// Several lists at once, with two dtypes.
TEST(OnDevice, SumsOfSquaresOfLists) {
  std::vector<Tensor> lists, blocks;
  for (int64_t i = 0; i < 32; ++i) {
    const int64_t size = 1 + i * 977 % 3000;
    lists.push_back(random_tensor({{"list" + std::to_string(i), size}}, i < 20 ? DType::f32 : DType::bf16,
                                  static_cast<uint64_t>(i)));
    blocks.push_back(Tensor({{"block", (size + 1023) / 1024}}, DType::f64));
  }
  std::vector<Tensor*> ins;
  for (Tensor& list : lists) ins.push_back(&list);
  compare_on_device({.kind = "sum_squares"}, ins, blocks);
}

// With several pieces, and with lists of both dtypes.
TEST(OnDevice, SumsOfLongLists) {
  Tensor a = random_tensor({{"block", 20000}}, DType::f64, 1, 0, 2),
         b = random_tensor({{"block", 8192}}, DType::f32, 2), c = random_tensor({{"block", 5}}, DType::f64, 3);
  const Tensor out = filled({}, DType::f64, 3);
  for (const uint32_t accumulate : {0u, 1u})
    compare_on_device({.kind = "sum_blocks", .accumulate = accumulate}, {&a, &b, &c}, {out}, {1e-13, 1e-13});
}

// The sum of earlier lists as one more list gives the bits of all lists at once, as stages add them.
TEST(OnDevice, SumsOfListsInParts) {
  std::vector<Tensor> lists;
  for (uint64_t i = 0; i < 300; ++i)
    lists.push_back(random_tensor({{"block", 1 + static_cast<int64_t>(i * 37 % 90)}}, DType::f64, i, 0, 1e3));
  lists[7] = random_tensor({{"block", 9000}}, DType::f64, 7, 0, 1e3);
  Tensor whole({}, DType::f64), part({}, DType::f64);
  std::vector<Tensor*> all, rest;
  for (Tensor& list : lists) all.push_back(&list);
  run_on_device({.kind = "sum_blocks"}, all, {&whole});
  run_on_device({.kind = "sum_blocks"}, {all.begin(), all.begin() + 120}, {&part});
  Tensor before({{"block", 1}}, DType::f64, part.values());
  rest = {&before};
  rest.insert(rest.end(), all.begin() + 120, all.end());
  run_on_device({.kind = "sum_blocks"}, rest, {&part});
  EXPECT_EQ(part.get(0), whole.get(0));
  compare_on_device({.kind = "sum_blocks"}, all, {whole}, {1e-13, 1e-13});
}

TEST(OnDevice, Adamw) {
  for (const DType gradient : {DType::f32, DType::bf16})
    for (const double finite : {1.0, 0.0})
      for (const int64_t size : {1, 777}) {
        const Shape shape({{"flat", size}});
        Tensor w = random_tensor(shape, DType::f32, 1), g = random_tensor(shape, gradient, 2),
               m = random_tensor(shape, DType::f32, 3), v = random_tensor(shape, DType::f32, 4, 0, 1);
        Tensor factor = filled({}, DType::f64, 0.3), good = filled({}, DType::f64, finite),
               updates = filled({}, DType::f64, 4);
        const Attributes attributes = {
            {"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}, {"weight", "bf16"}};
        const Trial trial = {.kind = "adamw", .attributes = attributes, .numbers = {.learning_rate = 0.01}};
        compare_on_device(trial, {&w, &g, &m, &v, &factor, &good, &updates}, {w, m, v, Tensor(shape, DType::bf16)});
        compare_on_device(trial, {&w, &g, &m, &v, &factor, &good, &updates}, {w, m, v});
        Trial adam = trial;
        adam.attributes.set("coupled_decay", int64_t{1});
        compare_on_device(adam, {&w, &g, &m, &v, &factor, &good, &updates}, {w, m, v});
      }
}

// Several lists, and one whose elements are not read four at a time, which cannot be one launch.
TEST(OnDevice, AdamwOfLists) {
  for (const DType gradient : {DType::f32, DType::bf16})
    for (const bool odd : {false, true}) {
      constexpr size_t kLists = 5;
      const Attributes attributes = {
          {"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}, {"weight", "bf16"}};
      Tensor factor = filled({}, DType::f64, 0.3), good = filled({}, DType::f64, 1),
             updates = filled({}, DType::f64, 4);
      std::vector<std::vector<Tensor>> made[2];
      for (const bool at_once : {false, true}) {
        CallsInARow calls(0);
        std::vector<std::vector<Tensor>> ins, &outs = made[at_once];
        for (size_t i = 0; i < kLists; ++i) {
          const Shape shape({{"flat", odd && i == 3 ? 1022 : int64_t{1024} << i % 3}});
          const auto random = [&](DType dtype, uint64_t seed) {
            return random_tensor(shape, dtype, 10 * i + seed, 0, 1);
          };
          ins.push_back({random(DType::f32, 1), random(gradient, 2), random(DType::f32, 3), random(DType::f32, 4)});
          outs.push_back({ins[i][0], ins[i][2], ins[i][3], Tensor(shape, DType::bf16)});
        }
        for (size_t i = 0; i < kLists; ++i) {
          Trial trial = {.kind = "adamw", .attributes = attributes, .numbers = {.learning_rate = 0.01}};
          if (i % 2 == 1) trial.attributes.set("weight_decay", 0.0);
          std::vector<Tensor*> of_call = {&ins[i][0], &ins[i][1], &ins[i][2], &ins[i][3], &factor, &good, &updates};
          calls.add(trial, of_call, {&outs[i][0], &outs[i][1], &outs[i][2], &outs[i][3]});
          for (const size_t shared : {4, 5, 6})
            if (i > 0) calls.read_operand_of(i, shared, 0);
        }
        EXPECT_EQ(calls.run(at_once, 64), !at_once || !odd);
      }
      if (odd) continue;
      for (size_t i = 0; i < kLists; ++i)
        for (size_t o = 0; o < 4; ++o) EXPECT_EQ(made[0][i][o].values(), made[1][i][o].values()) << i << " " << o;
    }
}

TEST(OnDevice, Sgd) {
  for (const DType gradient : {DType::f32, DType::bf16})
    for (const double finite : {1.0, 0.0})
      for (const int64_t size : {1, 777}) {
        const Shape shape({{"flat", size}});
        Tensor w = random_tensor(shape, DType::f32, 1), g = random_tensor(shape, gradient, 2),
               m = random_tensor(shape, DType::f32, 3);
        Tensor factor = filled({}, DType::f64, 0.3), good = filled({}, DType::f64, finite);
        const Trial trial = {.kind = "sgd",
                             .attributes = {{"momentum", 0.9}, {"weight_decay", 0.1}, {"weight", "bf16"}},
                             .numbers = {.learning_rate = 0.01}};
        compare_on_device(trial, {&w, &g, &m, &factor, &good}, {w, m, Tensor(shape, DType::bf16)});
        compare_on_device(trial, {&w, &g, &m, &factor, &good}, {w, m});
        Trial nesterov = trial;
        nesterov.attributes.set("nesterov", int64_t{1});
        compare_on_device(nesterov, {&w, &g, &m, &factor, &good}, {w, m});
      }
}

}  // namespace
}  // namespace kintsugi::kernels::test
