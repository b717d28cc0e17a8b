#include "kintsugi/kernels/cpu/compare_test.h"

namespace kintsugi::kernels::test::elementwise_test {
namespace {

const Shape kShape({{"batch", 3}, {"seq", 7}, {"embed", 413}});

struct Case {
  const char* kind;
  Attributes attributes;
  int inputs, outputs;
  int in_place;  // output 0 may be the memory of this input; -1: of none
};

const Case kCases[] = {
    {"gelu", {{"form", "tanh"}}, 1, 1, 0},
    {"gelu", {{"form", "erf"}}, 1, 1, 0},
    {"gelu_grad", {{"form", "tanh"}}, 2, 1, 1},
    {"gelu_grad", {{"form", "erf"}}, 2, 1, 1},
    {"silu", {}, 1, 1, 0},
    {"silu_grad", {}, 2, 1, 1},
    {"relu", {}, 1, 1, 0},
    {"relu_grad", {}, 2, 1, 1},
    {"relu2", {}, 1, 1, 0},
    {"relu2_grad", {}, 2, 1, 1},
    {"tanh", {}, 1, 1, 0},
    {"tanh_grad", {}, 2, 1, 1},
    {"scale", {{"by", 0.3}}, 1, 1, 0},
    {"fill", {{"value", 0.3}}, 0, 1, -1},
    {"gated", {{"activation", "silu"}}, 2, 1, -1},
    {"gated", {{"activation", "gelu"}}, 2, 1, -1},
    {"gated", {{"activation", "gelu_tanh"}}, 2, 1, -1},
    {"gated", {{"activation", "relu"}}, 2, 1, -1},
    {"gated", {{"activation", "relu2"}}, 2, 1, -1},
    {"gated_grad", {{"activation", "relu2"}}, 3, 2, -1},
    {"gated_grad", {{"activation", "silu"}}, 3, 2, -1},
    {"gated_grad", {{"activation", "gelu"}}, 3, 2, -1},
    {"dropout", {{"p", 0.3}, {"key", "layer0"}}, 1, 1, 0},
    {"add", {}, 3, 1, 0},
};

TEST(CpuElementwise, AgreesWithTheReference) {
  with_each_target([] {
    for (const Case& c : kCases) {
      for (const DType dtype : kFastTypes) {
        for (const int threads : {1, 3}) {
          SCOPED_TRACE(to_string(c.attributes));
          std::vector<Tensor> values;
          for (int i = 0; i < c.inputs; ++i)
            values.push_back(random_tensor(kShape, dtype, static_cast<uint64_t>(i), i == 0 ? -9 : -1, i == 0 ? 9 : 1));
          std::vector<Tensor*> ins;
          for (Tensor& x : values) ins.push_back(&x);
          const Trial trial{.kind = c.kind,
                            .attributes = c.attributes,
                            .numbers = {.seed = 3, .step = 2, .batch_offset = 4},
                            .threads = threads};
          const Tolerance tolerance{2e-6, 1e-6};
          compare(trial, ins, std::vector<Tensor>(static_cast<size_t>(c.outputs), Tensor(kShape, dtype)), tolerance);
          if (c.in_place >= 0) compare_in_place(trial, ins, static_cast<size_t>(c.in_place), tolerance);
        }
      }
    }
  });
}

// Far from zero an activation reaches its limit, and never becomes NaN.
TEST(CpuElementwise, ActivationsAtTheEnds) {
  for (const char* kind : {"gelu", "gelu_grad", "silu", "silu_grad", "tanh", "tanh_grad"}) {
    for (const char* form : {"tanh", "erf"}) {
      SCOPED_TRACE(form);
      Tensor x({{"n", 10}}, DType::f32, {-1e30, -1e10, -300, -40, -15, 15, 40, 300, 1e10, 1e30});
      Tensor dy = filled({{"n", 10}}, DType::f32, 1);
      std::vector<Tensor*> ins = {&x};
      if (std::string_view(kind).ends_with("_grad")) ins.push_back(&dy);
      compare({.kind = kind, .attributes = {{"form", form}}}, ins, {Tensor({{"n", 10}}, DType::f32)}, {1e-5, 1e-6});
    }
  }
}

TEST(CpuDropout, FollowsTheIndexOfTheWhole) {
  const Shape shape({{"batch", 2}, {"seq", 11}, {"embed", 37}});
  Tensor x = random_tensor(shape, DType::f32, 1);
  const std::vector<std::vector<NamedIndex>> placements = {
      {{"seq", DimIndex({{5, 11}}, 40)}},
      {{"seq", DimIndex({{0, 4}, {30, 3}, {-1, 4}}, 33)}},
      {{"embed", DimIndex({{3, 37}}, 41)}},
      {{"embed", DimIndex({{0, 10}, {90, 20}, {-1, 7}}, 110)}},
      {{"batch", DimIndex({{1ll << 33, 2}}, 1ll << 34)}},
  };
  for (const auto& indices : placements)
    compare({.kind = "dropout", .attributes = {{"p", 0.5}, {"key", "k"}}, .indices = indices, .threads = 2}, {&x},
            {Tensor(shape, DType::f32)});
}

TEST(CpuAdd, RepeatsOperandsAndLeavesTheRestToTheReference) {
  for (const DType dtype : kFastTypes) {
    const Shape y({{"batch", 3}, {"seq", 1500}, {"embed", 5}});
    Tensor a = random_tensor(y, dtype, 1), b = random_tensor({{"seq", 1500}, {"embed", 5}}, dtype, 2);
    Tensor c = random_tensor({{"embed", 5}}, dtype, 3), d = random_tensor({{"batch", 3}, {"embed", 5}}, dtype, 4);
    Tensor scalar = random_tensor({}, dtype, 5);
    compare({.kind = "add", .threads = 2}, {&a, &b, &c, &scalar}, {Tensor(y, dtype)});
    compare({.kind = "add", .threads = 2}, {&c, &a}, {Tensor(y, dtype)});
    compare({.kind = "add", .threads = 2}, {&a, &d}, {Tensor(y, dtype)});
    compare({.kind = "broadcast", .threads = 2}, {&b}, {Tensor(y, dtype)}, {0, 0});
    compare({.kind = "broadcast", .threads = 2}, {&d}, {Tensor(y, dtype)}, {0, 0});
  }
}

TEST(CpuCast, EveryPair) {
  with_each_target([] {
    for (const DType from : {DType::f64, DType::f32, DType::bf16, DType::f16})
      for (const DType to : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
        Tensor x = random_tensor({{"n", 1003}}, from, 1, -70000, 70000);
        Tensor small({{"n", 6}}, from, {1e-7, -3e-8, 6e-5, 65519, 1e30, std::nan("")});
        for (const int threads : {1, 2}) {
          compare({.kind = "cast", .threads = threads}, {&x}, {Tensor({{"n", 1003}}, to)}, {0, 0});
          compare({.kind = "accumulate", .accumulate = 1, .threads = threads}, {&x},
                  {random_tensor({{"n", 1003}}, to, 2)}, {1e-6, 1e-5});
        }
        compare({.kind = "cast"}, {&small}, {Tensor({{"n", 6}}, to)}, {1e-6, 0});
      }
  });
}

}  // namespace
}  // namespace kintsugi::kernels::test::elementwise_test
