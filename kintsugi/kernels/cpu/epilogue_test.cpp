// A matmul with a fused activation has the bits of both operations in sequence.
#include <array>
#include <utility>

#include "kintsugi/kernels/cpu/bf16_unit.h"
#include "kintsugi/kernels/cpu/compare_test.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test::epilogue_test {
namespace {

struct Function {
  std::string kind;
  Attributes attributes = {};
};
const Function kFunctions[] = {
    {"gelu", {{"form", "tanh"}}}, {"gelu", {{"form", "erf"}}}, {"silu"}, {"relu"}, {"relu2"}, {"tanh"}};

struct Case {
  Shape a, b, y, bias;
};
const Case kCases[] = {
    {{{"batch", 3}, {"seq", 27}, {"embed", 33}},
     {{"embed", 33}, {"ffn", 70}},
     {{"batch", 3}, {"seq", 27}, {"ffn", 70}},
     {{"ffn", 70}}},
    // Whole tiles, k in several parts; b transposed, as in the backward pass.
    {{{"seq", 64}, {"embed", 288}}, {{"ffn", 96}, {"embed", 288}}, {{"seq", 64}, {"ffn", 96}}, {{"ffn", 96}}},
    {{{"seq", 40}, {"embed", 0}}, {{"embed", 0}, {"ffn", 35}}, {{"seq", 40}, {"ffn", 35}}, {{"ffn", 35}}},
    // Few rows, with more columns than are summed at once.
    {{{"seq", 2}, {"embed", 21}}, {{"embed", 21}, {"ffn", 2100}}, {{"seq", 2}, {"ffn", 2100}}, {{"ffn", 2100}}},
    // A bias per row; swapped operands; experts, with separate rows.
    {{{"token", 9}, {"embed", 8}}, {{"embed", 8}, {"ffn", 45}}, {{"ffn", 45}, {"token", 9}}, {{"token", 9}}},
    {{{"token", 9}, {"expert", 3}, {"embed", 8}},
     {{"expert", 3}, {"embed", 8}, {"ffn", 37}},
     {{"token", 9}, {"expert", 3}, {"ffn", 37}},
     {{"ffn", 37}}},
};
// Not a matmul: the CPU's set leaves it to the reference, including the activation.
const Case kOfTheReference = {
    {{"x", 4}, {"s", 3}, {"t", 5}}, {{"t", 5}, {"s", 3}, {"z", 6}}, {{"x", 4}, {"z", 6}}, {{"z", 6}}};

void expect_same(const Tensor& got, const Tensor& want, const std::string& what) {
  EXPECT_EQ(got.values(), want.values()) << what << " " << name_of(want.type().dtype);
}

struct Set {
  const KernelSet& kernels;
  int threads;
};

// Gradients of a mean are small: some are subnormal in fp16, and bf16 units may flush them to zero.
void check(const Set& set, const Case& c, DType dtype, DType to, const Function& f) {
  const auto [kernels, threads] = set;
  SCOPED_TRACE(to_string(c.a) + " " + to_string(c.b) + " " + f.kind + " " + std::to_string(threads) + " threads");
  Tensor a = random_tensor(c.a, dtype, 1, -2, 2), b = random_tensor(c.b, dtype, 2),
         bias = random_tensor(c.bias, dtype, 3);
  Attributes attributes = f.attributes;
  attributes.set("epilogue", f.kind);
  const Trial product = {.kind = "contract", .threads = threads}, alone = {.kind = f.kind, .attributes = f.attributes},
              joined = {.kind = "contract", .attributes = attributes, .threads = threads};
  for (Tensor* added : {static_cast<Tensor*>(nullptr), &bias}) {
    Tensor x(c.y, to), y(c.y, to), got(c.y, to), kept(c.y, to), got_too(c.y, to);
    run_kernel(kernels, product, {&a, &b, added}, {&x});
    run_kernel(kernels, alone, {&x}, {&y});
    run_kernel(kernels, joined, {&a, &b, added}, {&got});
    expect_same(got, y, "y");
    run_kernel(kernels, joined, {&a, &b, added}, {&got_too, &kept});
    expect_same(got_too, y, "y beside x");
    expect_same(kept, x, "x");
  }
  Tensor x = random_tensor(c.y, to, 4, -3, 3), dy(c.y, to), dx(c.y, to), got(c.y, to);
  attributes.set("epilogue", f.kind + "_grad");
  run_kernel(kernels, product, {&a, &b}, {&dy});
  run_kernel(kernels, {.kind = f.kind + "_grad", .attributes = f.attributes}, {&x, &dy}, {&dx});
  run_kernel(kernels, {.kind = "contract", .attributes = attributes, .threads = threads}, {&a, &b, nullptr, &x},
             {&got});
  expect_same(got, dx, "dx");
}

TEST(Epilogue, OfTheReference) {
  const auto reference = reference_kernels();
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16})
    for (const Function& f : kFunctions) {
      for (const Case& c : kCases) check({*reference, 1}, c, dtype, dtype, f);
      check({*reference, 1}, kOfTheReference, dtype, dtype, f);
    }
}

TEST(Epilogue, OfEachTarget) {
  const auto cpu = cpu_kernels();
  with_each_target([&] {
    for (const Case& c : kCases)
      for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16})
        for (const Function& f : kFunctions)
          for (const int threads : {1, 3}) check({*cpu, threads}, c, dtype, dtype, f);
  });
}

// By name, so that machines without a unit skip it. The result may be wider than the operands.
class EpilogueOf : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const cpu::Bf16Unit* unit : cpu::bf16_units())
      if (unit->name == GetParam()) return cpu::use_bf16_unit(unit);
    GTEST_SKIP() << "not on this machine";
  }
  void TearDown() override { cpu::use_bf16_unit(nullptr); }
};

TEST_P(EpilogueOf, Bf16) {
  const auto cpu = cpu_kernels();
  for (const Case& c : kCases)
    for (const DType to : {DType::bf16, DType::f32})
      for (const Function& f : kFunctions)
        for (const int threads : {1, 2}) check({*cpu, threads}, c, DType::bf16, to, f);
}

// k in several sums, of which only the last is followed by the activation; and a result that bypasses the caches.
TEST_P(EpilogueOf, LargeProducts) {
  const auto cpu = cpu_kernels();
  const Case deep = {{{"seq", 35}, {"embed", 4200}},
                     {{"embed", 4200}, {"ffn", 33}},
                     {{"seq", 35}, {"ffn", 33}},
                     {{"ffn", 33}}},
             wide = {{{"seq", 1040}, {"embed", 5}},
                     {{"embed", 5}, {"ffn", 1024}},
                     {{"seq", 1040}, {"ffn", 1024}},
                     {{"ffn", 1024}}};
  for (const Case& c : {deep, wide})
    for (const DType to : {DType::bf16, DType::f32}) check({*cpu, 2}, c, DType::bf16, to, kFunctions[0]);
}

INSTANTIATE_TEST_SUITE_P(, EpilogueOf, testing::Values("amx", "avx512_bf16", "plain"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace kintsugi::kernels::test::epilogue_test
