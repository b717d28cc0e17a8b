#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test {
namespace {

constexpr DType kWithScalars[] = {DType::f64, DType::f32, DType::bf16, DType::f16};

// An output that aliases an input gives the same.
void compare_in_place(const Trial& trial, std::vector<Tensor*> ins, size_t place, DeviceTolerance tolerance = {}) {
  static const auto reference = reference_kernels();
  Tensor want(ins[place]->type());
  run_kernel(*reference, trial, ins, {&want});
  for (int64_t shift : {0, 1}) {
    Tensor got = *ins[place];
    std::vector<Tensor*> now = ins;
    now[place] = &got;
    run_on_device(trial, now, {&got}, shift);
    expect_close(got, want, tolerance.relative + device_unit_of(got.type().dtype), tolerance.absolute,
                 trial.kind + " in place");
  }
}

TEST(OnDevice, FillOfAnyTypes) {
  for (const double value : {0.0, 3.5}) {
    std::vector<Tensor> outs;
    for (int64_t i = 0; i < 70; ++i)  // more than one launch takes
      outs.emplace_back(Shape({{"flat", i % 7 == 0 ? 1000 + i : i % 5}}), kWithScalars[i % 4]);
    if (value == 0) {
      outs.emplace_back(Shape({{"seq", 9}}), DType::i32);
      outs.emplace_back(Shape({{"seq", 33}}), DType::u8);
    }
    for (Tensor& y : outs)
      if (y.elements() > 0) y.fill(7);
    for (int64_t shift : {0, 1, 3}) {
      device::emulate::set_warp(shift == 1 ? 64 : 32);
      std::vector<Tensor> got = outs;
      std::vector<Tensor*> list;
      for (Tensor& y : got) list.push_back(&y);
      run_on_device({.kind = "fill", .attributes = {{"value", value}}}, {}, list, shift);
      for (const Tensor& y : got)
        EXPECT_EQ(y.values(), std::vector<double>(static_cast<size_t>(y.elements()), value)) << shift;
    }
  }
  device::emulate::set_warp(32);
}

TEST(OnDevice, CodesAreCopied) {
  for (const int64_t size : {1, 37, 5000}) {
    Tensor x(Shape({{"flat", size}}), DType::u8);
    for (int64_t i = 0; i < size; ++i) x.set(i, static_cast<double>(i * 7 % 256));
    compare_on_device({.kind = "accumulate"}, {&x}, {Tensor(x.type())}, {0, 0});
  }
}

TEST(OnDevice, CastAccumulateScaleOfEveryPair) {
  for (const DType from : kWithScalars)
    for (const DType to : kWithScalars)
      for (const int64_t size : {1, 7, 64, 2051}) {
        Tensor x = random_tensor({{"n", size}}, from, 1, -90, 90);
        const Tensor y = random_tensor({{"n", size}}, to, 2);
        compare_on_device({.kind = "cast"}, {&x}, {y}, {1e-7, 0});
        compare_on_device({.kind = "accumulate"}, {&x}, {y}, {1e-7, 0});
        compare_on_device({.kind = "accumulate", .accumulate = 1}, {&x}, {y}, {1e-6, 1e-5});
        if (from != to) continue;
        const Trial scale{.kind = "scale", .attributes = {{"by", 0.3}}};
        compare_on_device(scale, {&x}, {y}, {1e-6, 0});
        compare_in_place(scale, {&x}, 0, {1e-6, 0});
      }
}

// As in the reference, a bf16 tie is a tie in fp64 too, not only after a first rounding.
TEST(OnDevice, CastRoundsOnce) {
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor x({{"n", 8}}, DType::f64,
           {1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-40, 1 + 3 * 0x1p-8 - 0x1p-40, 1e300, -0.25, -infinity, 1e-300, -1 - 0x1p-8});
  Tensor y(x.type().shape, DType::bf16);
  run_on_device({.kind = "cast"}, {&x}, {&y});
  expect_close(y, {1, 1 + 0x1p-7, 1 + 0x1p-7, infinity, -0.25, -infinity, 0, -1}, 0, 0);
}

TEST(OnDevice, AddRepeatsOperandsInAnyOrder) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t embed : {5, 64}) {
      const Shape y({{"batch", 3}, {"seq", 9}, {"embed", embed}});
      Tensor a = random_tensor(y, dtype, 1), b = random_tensor({{"seq", 9}, {"embed", embed}}, dtype, 2);
      Tensor c = random_tensor({{"embed", embed}}, dtype, 3);
      Tensor d = random_tensor({{"batch", 3}, {"embed", embed}}, dtype, 4);
      Tensor e = random_tensor({{"embed", embed}, {"batch", 3}}, dtype, 5), f = random_tensor({{"seq", 9}}, dtype, 6);
      Tensor scalar = random_tensor({}, dtype, 7), same = random_tensor(y, dtype, 8);
      const Tensor out = random_tensor(y, dtype, 9);
      const std::vector<std::vector<Tensor*>> lists = {
          {&a}, {&a, &same}, {&a, &same, &a}, {&a, &b, &c, &scalar}, {&c, &a}, {&a, &d}, {&e, &f, &d, &a, &same, &b}};
      for (const std::vector<Tensor*>& list : lists)
        for (const uint32_t accumulate : {0u, 1u})
          compare_on_device({.kind = "add", .accumulate = accumulate}, list, {out});
      compare_in_place({.kind = "add"}, {&a, &same}, 0);
      compare_in_place({.kind = "add"}, {&b, &same, &a}, 2);
    }
  Tensor one({}, DType::f64, {1}), two({}, DType::f64, {2 + 0x1p-40});
  compare_on_device({.kind = "add"}, {&one, &two}, {Tensor({}, DType::f64)}, {0, 0});
  Tensor none({{"batch", 0}, {"embed", 3}}, DType::f32), row({{"embed", 3}}, DType::f32, {1, 2, 3});
  run_on_device({.kind = "add"}, {&none, &row}, {&none});
  // More points than threads.
  Tensor x = random_tensor({{"batch", 2}, {"flat", 300001}}, DType::bf16, 1);
  Tensor row_of({{"flat", 300001}}, DType::bf16, std::vector<double>(300001, 0.5));
  if (device_under_test().kind() != "emulated") compare_on_device({.kind = "add"}, {&x, &row_of}, {Tensor(x.type())});
}

TEST(OnDevice, BroadcastToAnotherTypeAndOrder) {
  for (const DType from : kWithScalars)
    for (const DType to : kWithScalars) {
      const Tensor y({{"batch", 3}, {"seq", 10}, {"embed", 24}}, to);
      for (const Shape& shape : {Shape({}), Shape({{"embed", 24}}), Shape({{"embed", 24}, {"batch", 3}}),
                                 Shape({{"seq", 10}, {"embed", 24}}), Shape({{"batch", 3}, {"seq", 10}})}) {
        Tensor x = random_tensor(shape, from, 1);
        compare_on_device({.kind = "broadcast"}, {&x}, {y}, {1e-7, 0});
      }
    }
}

TEST(OnDevice, Gated) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t size : {1, 64, 1003})
      for (const char* activation : {"silu", "gelu", "gelu_tanh", "relu", "relu2"})
        for (const uint32_t accumulate : {0u, 2u, 3u}) {
          Tensor gate = random_tensor({{"ffn", size}}, dtype, 1, -9, 9), up = random_tensor({{"ffn", size}}, dtype, 2);
          Tensor dy = random_tensor({{"ffn", size}}, dtype, 3);
          const Tensor y = random_tensor({{"ffn", size}}, dtype, 4);
          const Attributes attributes = {{"activation", activation}};
          compare_on_device({.kind = "gated", .attributes = attributes, .accumulate = accumulate & 1u}, {&gate, &up},
                            {y});
          compare_on_device({.kind = "gated_grad", .attributes = attributes, .accumulate = accumulate},
                            {&gate, &up, &dy}, {y, y});
        }
  Tensor far({{"ffn", 6}}, DType::f32, {-1e30, -300, -90, 90, 300, 1e30}), one = filled({{"ffn", 6}}, DType::f32, 1);
  for (const char* activation : {"silu", "gelu", "gelu_tanh"}) {
    compare_on_device({.kind = "gated", .attributes = {{"activation", activation}}}, {&far, &one},
                      {Tensor(far.type())});
    compare_on_device({.kind = "gated_grad", .attributes = {{"activation", activation}}}, {&far, &one, &one},
                      {Tensor(far.type()), Tensor(far.type())});
  }
}

TEST(OnDevice, MaskClearsPaddingAndNothingElse) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i32, DType::u8})
    for (const int64_t width : {7, 16}) {
      const Shape shape({{"batch", 3}, {"seq", 5}, {"embed", width}});
      const std::vector<std::vector<NamedIndex>> paddings = {
          {},
          {{"batch", DimIndex({{4, 2}, {-1, 1}}, 6)}},
          {{"seq", DimIndex({{0, 1}, {-1, 1}, {8, 2}, {-1, 1}}, 12)}},
          {{"batch", DimIndex({{-1, 1}, {4, 2}}, 6)},
           {"seq", DimIndex({{0, 1}, {-1, 1}, {8, 2}, {-1, 1}}, 12)},
           {"embed", DimIndex({{7, width - 2}, {-1, 2}}, 20)}}};
      Tensor x(shape, dtype);
      for (int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i % 251 + 1));
      for (const auto& indices : paddings) {
        const Trial trial{.kind = "mask", .indices = indices};
        compare_on_device(trial, {&x}, {Tensor(shape, dtype)}, {0, 0});
        static const auto reference = reference_kernels();
        Tensor want = x, got = x;
        run_kernel(*reference, trial, {&want}, {&want});
        run_on_device(trial, {&got}, {&got}, 1);
        EXPECT_EQ(got.values(), want.values());
      }
    }
  Tensor x({{"seq", 4}}, DType::f32, {1, NAN, INFINITY, -INFINITY});
  run_on_device({.kind = "mask", .indices = {{"seq", DimIndex({{0, 1}, {-1, 3}}, 1)}}}, {&x}, {&x});
  EXPECT_EQ(x.values(), (std::vector<double>{1, 0, 0, 0}));
}

TEST(OnDevice, LossScale) {
  for (const double finite : {0.0, 1.0})
    for (const double scale : {1.0, 1024.0, 16777216.0})
      for (const double good : {0.0, 1.0, 2.0}) {
        Tensor f({}, DType::f64, {finite}), s({}, DType::f64, {scale}), g({}, DType::f64, {good});
        const Trial trial{.kind = "loss_scale", .attributes = {{"growth_interval", int64_t{3}}}};
        compare_on_device(trial, {&f, &s, &g}, {Tensor({}, DType::f64), Tensor({}, DType::f64)}, {0, 0});
        static const auto reference = reference_kernels();
        Tensor want_s = s, want_g = g;
        run_kernel(*reference, trial, {&f, &want_s, &want_g}, {&want_s, &want_g});
        run_on_device(trial, {&f, &s, &g}, {&s, &g});
        EXPECT_EQ(s.get(0), want_s.get(0));
        EXPECT_EQ(g.get(0), want_g.get(0));
      }
}

}  // namespace
}  // namespace kintsugi::kernels::test
