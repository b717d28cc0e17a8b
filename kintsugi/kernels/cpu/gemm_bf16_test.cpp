// bf16 matmuls on each unit, compared with fp64 sums, with NaN wherever nothing should be read.
#include "kintsugi/kernels/cpu/gemm_bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kintsugi/kernels/cpu/bf16_unit.h"
#include "kintsugi/kernels/cpu/compare_test.h"

namespace kintsugi::kernels::cpu::gemm_bf16_test {
namespace {

using tensor::bf16;
using tensor::DType;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A matrix in bf16 or fp32 with a gap after each line; lines are rows, or columns if transposed.
struct Matrix {
  Matrix(int64_t rows, int64_t columns, bool transposed, DType dtype, uint64_t seed)
      : row(transposed ? 1 : columns + 3), column(transposed ? rows + 3 : 1), type(dtype) {
    const int64_t lines = transposed ? columns : rows, length = transposed ? rows : columns;
    memory = test::Memory((lines * (length + 3)) * tensor::size_of(dtype));
    for (int64_t i = 0; i < lines * (length + 3); ++i) set(i, kNan);
    const auto key = random_key(seed, "test");
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        set(i * row + j * column,
            static_cast<float>(random_word(key, 0, static_cast<uint64_t>(i * columns + j))) / 2147483648.0f - 1);
  }
  void set(int64_t at, float x) {
    if (type == DType::f32) {
      reinterpret_cast<float*>(memory.data())[at] = x;
    } else {
      bf16s()[at] = bf16(x);
    }
  }
  float raw(int64_t at) const {
    if (type == DType::f32) return reinterpret_cast<const float*>(memory.data())[at];
    return static_cast<float>(reinterpret_cast<const bf16*>(memory.data())[at]);
  }
  float get(int64_t i, int64_t j) const { return raw(i * row + j * column); }
  bf16* bf16s() { return reinterpret_cast<bf16*>(memory.data()); }

  int64_t row, column;
  DType type;
  test::Memory memory{0};
};

struct Case {
  int64_t m, n, k;
  bool a_transposed = false, b_transposed = false;
  DType out = DType::f32;
  bool accumulate = false;
  int bias = 0;  // 1: for each column, in bf16; 2: for each row, in fp32
};

struct Operands {
  explicit Operands(const Case& c)
      : a(c.m, c.k, c.a_transposed, DType::bf16, 1),
        b(c.k, c.n, c.b_transposed, DType::bf16, 2),
        bias(1, std::max(c.m, c.n), false, c.bias == 2 ? DType::f32 : DType::bf16, 3),
        y(c.m, c.n, false, c.out, 4) {
    product = {.m = c.m, .n = c.n, .k = c.k, .a = a.bf16s(), .a_row = a.row, .a_column = a.column, .b = b.bf16s()};
    product.b_row = b.row, product.b_column = b.column;
    product.c = y.memory.data(), product.c_dtype = c.out, product.c_row = y.row;
    product.accumulate = c.accumulate;
    if (c.bias) product.bias = {bias.memory.data(), bias.type, c.bias == 2, c.bias == 1};
  }
  Matrix a, b, bias, y;
  Bf16Product product;
};

void run(const Bf16Product& p, int threads, bool alone = false) {
  Scratch size;
  take_bf16_scratch({p}, threads, alone, size);
  test::Memory memory(size.bytes());
  Scratch scratch({memory.data(), static_cast<size_t>(size.bytes())});
  const Bf16Scratch taken = take_bf16_scratch({p}, threads, alone, scratch);
  base::ThreadTeam team(threads);
  if (alone) {
    multiply_alone(p, taken, threads - 1);
  } else {
    multiply(p, taken, team);
  }
  EXPECT_TRUE(memory.guard_is_whole());
}

void check(const Case& c, int threads) {
  SCOPED_TRACE(testing::Message() << c.m << " x " << c.n << " x " << c.k << " transposed " << c.a_transposed
                                  << c.b_transposed << " accumulate " << c.accumulate << " bias " << c.bias);
  Operands o(c);
  const Matrix before = o.y;
  run(o.product, threads);
  EXPECT_TRUE(o.y.memory.guard_is_whole());
  const double rounding = c.out == DType::bf16 ? 1.0 / 256 : 1e-6;
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = c.accumulate ? before.get(i, j) : 0;
      for (int64_t l = 0; l < c.k; ++l) sum += static_cast<double>(o.a.get(i, l)) * o.b.get(l, j);
      if (c.bias) sum += o.bias.get(0, c.bias == 1 ? j : i);
      ASSERT_NEAR(o.y.get(i, j), sum, std::abs(sum) * rounding + 1e-6 + 1e-7 * static_cast<double>(c.k))
          << "at " << i << ", " << j;
    }
    for (int64_t j = c.n; j < c.n + 3; ++j) ASSERT_TRUE(std::isnan(o.y.get(i, j))) << "wrote behind row " << i;
  }
}

// Scratch for a matmul suffices for one with smaller k, whose panels are shorter but more numerous.
TEST(Bf16Scratch, IsEnoughForSmallerProducts) {
  const auto size = [](int64_t m, int64_t n, int64_t k) {
    Scratch scratch;
    return take_bf16_scratch({{.m = m, .n = n, .k = k, .a_column = 1, .b_row = 1}}, 2, false, scratch).thread_size;
  };
  for (const int64_t n : {1, 300, 5000})
    for (int64_t k = 32; k <= 4096; k += 32)
      for (const int64_t less : {k - 31, k / 2, k - 1})
        EXPECT_LE(size(40, n, less), size(40, n, k)) << n << " " << k << " " << less;
}

// By name, so that machines without a unit skip it.
class Bf16Units : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const Bf16Unit* unit : bf16_units())
      if (unit->name == GetParam()) return use_bf16_unit(unit);
    GTEST_SKIP() << "not on this machine";
  }
  void TearDown() override { use_bf16_unit(nullptr); }
};

TEST_P(Bf16Units, MultiplyEachSizeInEachStrideOrder) {
  const int64_t sizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65};
  int count = 0;
  for (const int64_t m : sizes)
    for (const int64_t n : sizes)
      for (const int64_t k : {1, 2, 15, 31, 32, 33, 64, 97})
        for (const bool a : {false, true})
          for (const bool b : {false, true}) {
            const int i = count++ * 7;
            check({m, n, k, a, b, i % 2 ? DType::f32 : DType::bf16, i % 3 == 1, i % 5 % 3}, 1 + i % 11 % 3);
            if (HasFatalFailure()) return;
          }
}

TEST_P(Bf16Units, MultiplyInSeveralBlocks) {
  for (const bool transposed : {false, true}) {
    check({65, 200, 5000, transposed, transposed, DType::bf16, false, 1}, 2);  // of b's columns
    if (HasFatalFailure()) return;
  }
  check({70, 33, 4500, true, false, DType::f32, true, 1}, 2);  // of k
  check({1100, 33, 4064, true, false, DType::bf16, true}, 2);  // of packed rows of a
  check({70, 100, 290, false, false, DType::f32}, 2);          // of k, of which one is a step and a bit
}

// Its lines are whole cache lines, since the matrix has gaps of three.
TEST_P(Bf16Units, MultiplyToWhatNoCacheHolds) {
  check({1030, 1021, 40, true, false, DType::f32}, 2);
}

// Few rows, more columns than are summed at once, and k in parts and slices.
TEST_P(Bf16Units, MultiplyFewRows) {
  for (const int64_t m : {1, 3, 8, 9})
    for (const bool transposed : {false, true}) {
      check({m, 5003, 71, false, transposed, DType::bf16, false, 1}, 2);
      check({m, 301, 901, false, transposed, DType::bf16, true, 1}, 2);
      check({m, 37, 4500, transposed, transposed, DType::f32, true, 1}, 3);
      if (HasFatalFailure()) return;
    }
}

TEST_P(Bf16Units, NoProductsAreTheBiasOrNothing) {
  check({33, 5, 0, false, false, DType::f32, false, 1}, 1);
  check({33, 5, 0, false, false, DType::bf16, true, 0}, 2);
  check({33, 5, 0, true, false, DType::f32}, 1);
}

// The bits of c do not depend on threads, nor on which rows and columns are computed together: those of `part` are also
// computed alone.
void check_bits(const Case& c, base::Range rows, base::Range columns) {
  SCOPED_TRACE(testing::Message() << c.m << " x " << c.n << " x " << c.k << " transposed " << c.a_transposed
                                  << c.b_transposed);
  Operands whole(c), alone(c), part(c);
  run(whole.product, 1);
  for (const int threads : {2, 3}) {
    Operands other(c);
    run(other.product, threads);
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j) ASSERT_EQ(whole.y.get(i, j), other.y.get(i, j)) << threads;
  }
  run(alone.product, 3, true);
  Bf16Product& p = part.product;
  p.m = rows.size(), p.n = columns.size();
  p.a += rows.begin * p.a_row, p.b += columns.begin * p.b_column;
  p.c += (rows.begin * p.c_row + columns.begin) * 4;
  p.bias.data += columns.begin * 2;
  run(p, 2);
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < c.n; ++j) {
      ASSERT_EQ(whole.y.get(i, j), alone.y.get(i, j));
      if (i < rows.begin || i >= rows.end || j < columns.begin || j >= columns.end) continue;
      ASSERT_EQ(whole.y.get(i, j), part.y.get(i, j)) << i << " " << j;
    }
}

TEST_P(Bf16Units, BitsDoNotDependOnTheRest) {
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      for (const int64_t k : {160, 161}) check_bits({100, 150, k, a, b, DType::f32, true, 1}, {13, 63}, {21, 98});
      for (const int64_t k : {160, 700, 2500}) check_bits({7, 150, k, a, b, DType::f32, true, 1}, {2, 5}, {21, 98});
      if (HasFatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(, Bf16Units, testing::Values("amx", "avx512_bf16", "plain"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Bf16Unit, PlainOnEachTarget) {
  use_bf16_unit(bf16_units().back());
  test::with_each_target([] {
    for (const bool transposed : {false, true}) check({35, 50, 77, transposed, transposed, DType::bf16, true, 1}, 1);
  });
  use_bf16_unit(nullptr);
}

TEST(Bf16Unit, PlainIsEverywhere) {
  ASSERT_FALSE(bf16_units().empty());
  EXPECT_EQ(bf16_units().back()->name, "plain");
  EXPECT_EQ(&bf16_unit(), bf16_units()[0]);
}

}  // namespace
}  // namespace kintsugi::kernels::cpu::gemm_bf16_test
