#include "kintsugi/kernels/cpu/compare_test.h"
#include "kintsugi/kernels/cpu/contract_layout.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"

namespace kintsugi::kernels::test::contract_test {
namespace {

struct Case {
  Shape a, b, y;
  Shape bias = {};
  bool fast = true;
};

const Case kCases[] = {
    {{{"batch", 3}, {"seq", 7}, {"embed", 19}},
     {{"embed", 19}, {"ffn", 37}},
     {{"batch", 3}, {"seq", 7}, {"ffn", 37}},
     {{"ffn", 37}}},
    {{{"batch", 1}, {"seq", 1}, {"embed", 19}},
     {{"embed", 19}, {"ffn", 37}},
     {{"batch", 1}, {"seq", 1}, {"ffn", 37}},
     {{"ffn", 37}}},
    // dx = dy W^T, dW = x^T dy, and with swapped operands.
    {{{"batch", 3}, {"seq", 7}, {"ffn", 37}}, {{"embed", 19}, {"ffn", 37}}, {{"batch", 3}, {"seq", 7}, {"embed", 19}}},
    {{{"batch", 3}, {"seq", 7}, {"embed", 19}}, {{"batch", 3}, {"seq", 7}, {"ffn", 37}}, {{"embed", 19}, {"ffn", 37}}},
    {{{"batch", 3}, {"seq", 7}, {"ffn", 37}}, {{"batch", 3}, {"seq", 7}, {"embed", 19}}, {{"embed", 19}, {"ffn", 37}}},
    {{{"embed", 19}, {"ffn", 37}}, {{"batch", 3}, {"seq", 7}, {"embed", 19}}, {{"batch", 3}, {"seq", 7}, {"ffn", 37}}},
    // Several own and summed dims.
    {{{"batch", 2}, {"seq", 5}, {"embed", 12}},
     {{"embed", 12}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 8}},
     {{"batch", 2}, {"seq", 5}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 8}},
     {{"kv_heads", 2}, {"group", 3}, {"head_dim", 8}}},
    {{{"batch", 2}, {"seq", 5}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 8}},
     {{"kv_heads", 2}, {"group", 3}, {"head_dim", 8}, {"embed", 12}},
     {{"batch", 2}, {"seq", 5}, {"embed", 12}},
     {{"embed", 12}}},
    // Batch dims: experts, outside and inside; one bias per row of y.
    {{{"expert", 3}, {"token", 9}, {"embed", 8}},
     {{"expert", 3}, {"embed", 8}, {"ffn", 5}},
     {{"expert", 3}, {"token", 9}, {"ffn", 5}},
     {{"expert", 3}, {"ffn", 5}}},
    {{{"token", 9}, {"expert", 3}, {"embed", 8}},
     {{"expert", 3}, {"embed", 8}, {"ffn", 5}},
     {{"token", 9}, {"expert", 3}, {"ffn", 5}},
     {{"token", 9}}},
    // Decoding: a few rows.
    {{{"batch", 2}, {"seq", 1}, {"embed", 45}},
     {{"embed", 45}, {"ffn", 131}},
     {{"batch", 2}, {"seq", 1}, {"ffn", 131}},
     {{"ffn", 131}}},
    {{{"batch", 2}, {"seq", 1}, {"ffn", 131}},
     {{"embed", 45}, {"ffn", 131}},
     {{"batch", 2}, {"seq", 1}, {"embed", 45}}},
    {{{"batch", 7}, {"seq", 1}, {"ffn", 331}},
     {{"embed", 45}, {"ffn", 331}},
     {{"batch", 7}, {"seq", 1}, {"embed", 45}}},
    // The same, with a sum in several slices; of one row and of experts.
    {{{"batch", 8}, {"seq", 1}, {"embed", 445}},
     {{"embed", 445}, {"ffn", 131}},
     {{"batch", 8}, {"seq", 1}, {"ffn", 131}},
     {{"ffn", 131}}},
    {{{"batch", 2}, {"seq", 1}, {"embed", 645}},
     {{"embed", 645}, {"ffn", 131}},
     {{"batch", 2}, {"seq", 1}, {"ffn", 131}},
     {{"ffn", 131}}},
    {{{"ffn", 300}}, {{"ffn", 300}, {"embed", 70}}, {{"embed", 70}}, {{"embed", 70}}},
    {{{"expert", 5}, {"token", 2}, {"ffn", 300}},
     {{"expert", 5}, {"ffn", 300}, {"embed", 70}},
     {{"expert", 5}, {"token", 2}, {"embed", 70}},
     {{"expert", 5}, {"embed", 70}}},
    // Dots, outer products, a contraction over everything.
    {{{"a", 40}}, {{"a", 40}}, {}},
    {{{"a", 40}}, {{"b", 30}}, {{"a", 40}, {"b", 30}}},
    {{{"a", 40}}, {{"b", 30}}, {{"b", 30}, {"a", 40}}},
    // Not a matmul: summed dims in another order; an innermost batch dim is one.
    {{{"x", 4}, {"s", 3}, {"t", 5}}, {{"t", 5}, {"s", 3}, {"z", 6}}, {{"x", 4}, {"z", 6}}, {}, false},
    {{{"x", 4}, {"s", 3}, {"batch", 5}},
     {{"s", 3}, {"z", 6}, {"batch", 5}},
     {{"batch", 5}, {"x", 4}, {"z", 6}},
     {},
     false},
};

TEST(CpuContract, AgreesWithTheReference) {
  with_each_target([] {
    for (const Case& c : kCases) {
      for (const DType dtype : kFastTypes) {
        for (const int threads : {1, 2, 3}) {
          for (const bool has_bias : {false, true}) {
            for (const uint32_t accumulate : {0u, 1u}) {
              if (has_bias && c.bias.rank() == 0) continue;
              SCOPED_TRACE(to_string(c.a) + " " + to_string(c.b) + " " + to_string(c.y));
              Tensor a = random_tensor(c.a, dtype, 1), b = random_tensor(c.b, dtype, 2),
                     bias = random_tensor(c.bias, dtype, 3);
              std::vector<Tensor*> ins = {&a, &b};
              if (has_bias) ins.push_back(&bias);
              const Trial trial{.kind = "contract", .accumulate = accumulate, .threads = threads};
              for (const DType to : {dtype, DType::f32}) {
                compare(trial, ins, {accumulate ? random_tensor(c.y, to, 4) : Tensor(c.y, to)},
                        {1e-5, 2e-5 + unit_of(to) * 0.05});
              }
            }
          }
        }
      }
    }
  });
}

// b in int8 codes, with a scale per column: x W, dy W^T, and few rows. The columns may be several dims.
TEST(CpuContract, CodesWithAScalePerColumn) {
  struct Codes {
    Shape a, b, scale, y;
  };
  const Codes cases[] = {
      {{{"batch", 2}, {"seq", 9}, {"embed", 37}},
       {{"embed", 37}, {"heads", 3}, {"dim", 7}},
       {{"heads", 3}, {"dim", 7}},
       {{"batch", 2}, {"seq", 9}, {"heads", 3}, {"dim", 7}}},
      {{{"batch", 2}, {"seq", 9}, {"heads", 3}, {"dim", 7}},
       {{"embed", 37}, {"heads", 3}, {"dim", 7}},
       {{"heads", 3}, {"dim", 7}},
       {{"batch", 2}, {"seq", 9}, {"embed", 37}}},
      {{{"batch", 3}, {"seq", 1}, {"ffn", 300}},
       {{"ffn", 300}, {"embed", 70}},
       {{"embed", 70}},
       {{"batch", 3}, {"seq", 1}, {"embed", 70}}},
  };
  with_each_target([&] {
    for (const Codes& c : cases)
      for (const DType dtype : kFastTypes)
        for (const int threads : {1, 3}) {
          SCOPED_TRACE(to_string(c.a) + " " + to_string(c.b));
          Tensor a = random_tensor(c.a, dtype, 1), b = random_tensor(c.b, DType::i8, 2, -127.5, 127.5),
                 scale = random_tensor(c.scale, DType::f32, 3, 0.001, 0.01);
          const Type y = {c.y, dtype};
          const std::vector<const Type*> ins = {&a.type(), &b.type(), nullptr, nullptr, nullptr, &scale.type()},
                                         outs = {&y};
          EXPECT_TRUE(cpu::contract_takes({cpu::Types(ins), cpu::Types(outs), Attributes()}));
          compare({.kind = "contract", .threads = threads}, {&a, &b, nullptr, nullptr, nullptr, &scale}, {Tensor(y)},
                  {1e-5, 2e-5 + unit_of(dtype) * 0.05});
        }
  });
}

TEST(CpuContract, FewRowsHaveTheSameBitsForAnyThreads) {
  const auto kernels = cpu_kernels();
  for (const Case& c : kCases) {
    if (!c.a.has("seq") || c.a.size("seq") != 1) continue;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Tensor a = random_tensor(c.a, dtype, 1), b = random_tensor(c.b, dtype, 2), one(c.y, DType::f32);
      run_kernel(*kernels, {.kind = "contract", .threads = 1}, {&a, &b}, {&one});
      for (const int threads : {2, 3, 4}) {
        Tensor several(c.y, DType::f32);
        run_kernel(*kernels, {.kind = "contract", .threads = threads}, {&a, &b}, {&several});
        for (int64_t i = 0; i < one.elements(); ++i)
          ASSERT_EQ(one.get(i), several.get(i)) << to_string(c.a) << " " << threads;
      }
    }
  }
}

TEST(CpuContract, KnowsProductsOfMatrices) {
  for (const Case& c : kCases) {
    const Type a = {c.a, DType::f32}, b = {c.b, DType::f32}, y = {c.y, DType::f32};
    const std::vector<const Type*> ins = {&a, &b, nullptr, nullptr, nullptr, nullptr}, outs = {&y};
    const Attributes none;
    EXPECT_EQ(cpu::contract_takes({cpu::Types(ins), cpu::Types(outs), none}), c.fast)
        << to_string(c.a) << " " << to_string(c.b) << " " << to_string(c.y);
  }
}

TEST(CpuContract, OfFp64) {
  with_each_target([] {
    for (const Case& c : kCases)
      for (const int threads : {1, 3})
        for (const uint32_t accumulate : {0u, 1u}) {
          SCOPED_TRACE(to_string(c.a) + " " + to_string(c.b) + " " + to_string(c.y));
          Tensor a = random_tensor(c.a, DType::f64, 1), b = random_tensor(c.b, DType::f64, 2),
                 bias = random_tensor(c.bias, DType::f64, 3), added = random_tensor(c.y, DType::f64, 4);
          std::vector<Tensor*> ins = {&a, &b};
          if (c.bias.rank() > 0) ins.push_back(&bias);
          Trial trial{.kind = "contract", .accumulate = accumulate, .threads = threads};
          compare(trial, ins, {random_tensor(c.y, DType::f64, 5)}, {1e-13, 1e-12});
          ins.resize(5);
          ins[4] = &added;
          trial.accumulate = 0;
          trial.attributes = {{"epilogue", "relu"}};
          compare(trial, ins, {Tensor(c.y, DType::f64)}, {1e-13, 1e-12});
        }
  });
}

}  // namespace
}  // namespace kintsugi::kernels::test::contract_test
