// Operations inserted by the partitioner: pieces cut, assembled, cleared and joined.
#include "kintsugi/base/error.h"
#include "kintsugi/kernels/cpu/compare_test.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test::pieces_test {
namespace {

using Segments = std::vector<tensor::Segment>;

std::vector<const KernelSet*> both() {
  static const auto reference = reference_kernels(), cpu = cpu_kernels();
  return {reference.get(), cpu.get()};
}

Tensor counting(Shape shape, DType dtype) {
  Tensor x(std::move(shape), dtype);
  for (int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i % 251 + 1));
  return x;
}

struct StackCase {
  const char* name;
  Shape shape;
  const char* dim;
  std::vector<Segments> parts;
  bool alone = false;  // one part without a dim `part`
};

std::vector<StackCase> stack_cases() {
  const Shape x({{"batch", 3}, {"seq", 8}, {"embed", 5}});
  return {
      {"halves of the middle", x, "seq", {{{0, 4}}, {{4, 4}}}},
      {"zigzag", x, "seq", {{{0, 2}, {6, 2}}, {{2, 2}, {4, 2}}}},
      {"padded, of the first", x, "batch", {{{0, 2}}, {{2, 1}, {-1, 1}}}},
      {"padded twice, of the last", x, "embed", {{{0, 2}}, {{2, 2}}, {{4, 1}, {-1, 1}}, {{-1, 2}}}},
      {"a slice", x, "seq", {{{3, 2}, {7, 1}, {-1, 1}}}, true},
      {"one part with its dim", x, "seq", {{{0, 8}}}},
      {"single positions", x, "seq", {{{5, 1}}, {{3, 1}}, {{0, 1}}, {{1, 1}}, {{2, 1}}, {{4, 1}}, {{7, 1}}, {{6, 1}}}},
      {"long runs", Shape({{"flat", 70001}}), "flat", {{{0, 35001}}, {{35001, 35000}, {-1, 1}}}},
      {"long rows", Shape({{"batch", 2}, {"flat", 40000}}), "batch", {{{1, 1}}, {{0, 1}}}},
  };
}

// The content of part p, element by element.
void check_stack(const StackCase& c, DType dtype, int threads) {
  SCOPED_TRACE(std::string(c.name) + " " + std::string(name_of(dtype)));
  const auto axis = static_cast<size_t>(c.shape.find(c.dim));
  const int64_t size = c.shape[axis].size, below = c.shape.stride(axis), above = c.shape.elements() / (size * below);
  Trial trial{.kind = "stack", .attributes = {{"dim", std::string(c.dim)}}, .threads = threads};
  for (const Segments& s : c.parts) trial.indices.push_back({c.dim, DimIndex(s, size)});
  const int64_t length = trial.indices[0].index.local(), parts = static_cast<int64_t>(c.parts.size());
  std::vector<tensor::Dim> dims = c.shape.dims();
  dims[axis].size = length;
  if (!c.alone) dims.insert(dims.begin(), {"part", parts});

  Tensor x = counting(c.shape, dtype), want(Shape(dims), dtype);
  int64_t to = 0;
  for (int64_t p = 0; p < parts; ++p)
    for (int64_t a = 0; a < above; ++a)
      for (int64_t i = 0; i < length; ++i)
        for (int64_t b = 0; b < below; ++b) {
          const int64_t from = trial.indices[static_cast<size_t>(p)].index[i];
          want.set(to++, from < 0 ? 0.0 : x.get((a * size + from) * below + b));
        }
  for (const KernelSet* set : both()) {
    Tensor y(Shape(dims), dtype);
    trial.kind = "stack";
    run_kernel(*set, trial, {&x}, {&y});
    EXPECT_EQ(y.values(), want.values()) << set->name();
    if (c.alone) continue;  // a slice does not say all of x
    Tensor back(c.shape, dtype);
    trial.kind = "unstack";
    run_kernel(*set, trial, {&y}, {&back});
    EXPECT_EQ(back.values(), x.values()) << set->name();
  }
}

TEST(Stack, AndBackIsWhatWasThere) {
  for (const StackCase& c : stack_cases())
    for (const DType dtype : {DType::f64, DType::bf16, DType::i32, DType::u8})
      for (const int threads : {1, 3}) check_stack(c, dtype, threads);
}

TEST(Stack, OnePartGoesToItsPlaceAndTheRestStays) {
  for (const KernelSet* set : both()) {
    Tensor y = counting({{"batch", 2}, {"seq", 3}}, DType::f32), x = filled({{"batch", 2}, {"seq", 4}}, DType::f32, -7);
    run_kernel(
        *set, {.kind = "unstack", .attributes = {{"dim", "seq"}}, .indices = {{"seq", DimIndex({{2, 2}, {-1, 1}}, 4)}}},
        {&y}, {&x});
    EXPECT_EQ(x.values(), (std::vector<double>{-7, -7, 1, 2, -7, -7, 4, 5})) << set->name();
  }
}

// Rows of `seq` of a block [3 8 5], to and from packed rows, element by element.
TEST(Halo, RowsArePackedPlacedAndAdded) {
  const Shape block({{"batch", 3}, {"seq", 8}, {"embed", 5}}), longer({{"batch", 3}, {"seq", 11}, {"embed", 5}});
  const auto in_block = [](int64_t rows, int64_t b, int64_t row, int64_t e) { return (b * rows + row) * 5 + e; };
  const auto in_packed = [](int64_t b, int64_t row, int64_t e) { return (row * 3 + b) * 5 + e; };
  const DimIndex packed({{6, 2}, {0, 1}}, 8), placed({{-1, 1}, {9, 1}, {0, 8}, {8, 1}}, 10),
      added({{-1, 1}, {0, 8}, {-1, 2}, {7, 1}, {7, 1}}, 8);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
    for (const int threads : {1, 3}) {
      Tensor x = counting(block, dtype), received = counting({{"halo", 2}, {"batch", 3}, {"embed", 5}}, dtype),
             wide = counting(longer, dtype);
      for (const KernelSet* set : both()) {
        SCOPED_TRACE(std::string(set->name()) + " " + std::string(name_of(dtype)));
        Trial trial{.kind = "halo_pack", .attributes = {{"dim", "seq"}}, .threads = threads};
        Tensor rows({{"halo", 3}, {"batch", 3}, {"embed", 5}}, dtype), y(longer, dtype), sums(block, dtype);
        trial.indices = {{"seq", packed}};
        run_kernel(*set, trial, {&x}, {&rows});
        trial.kind = "halo_place";
        trial.indices = {{"seq", placed}};
        run_kernel(*set, trial, {&x, &received}, {&y});
        trial.kind = "halo_add";
        trial.indices = {{"seq", added}};
        run_kernel(*set, trial, {&wide, &received}, {&sums});
        for (int64_t b = 0; b < 3; ++b)
          for (int64_t e = 0; e < 5; ++e) {
            for (int64_t row = 0; row < 3; ++row)
              EXPECT_EQ(rows.get(in_packed(b, row, e)), x.get(in_block(8, b, packed[row], e)));
            for (int64_t row = 0; row < 11; ++row) {
              const int64_t from = placed[row];
              const double want = from < 0   ? 0
                                  : from < 8 ? x.get(in_block(8, b, from, e))
                                             : received.get(in_packed(b, from - 8, e));
              EXPECT_EQ(y.get(in_block(11, b, row, e)), want);
            }
            for (int64_t row = 0; row < 7; ++row)
              EXPECT_EQ(sums.get(in_block(8, b, row, e)), wide.get(in_block(11, b, row + 1, e)));
            const double last =
                wide.get(in_block(11, b, 8, e)) + received.get(in_packed(b, 0, e)) + received.get(in_packed(b, 1, e));
            EXPECT_NEAR(sums.get(in_block(8, b, 7, e)), last, dtype == DType::bf16 ? 2.0 : 0.0);
          }
      }
    }
}

// A rank's own rows first, then, in place, those that it received.
TEST(Halo, RowsArePlacedInTwoCalls) {
  const Shape block({{"batch", 3}, {"seq", 8}, {"embed", 5}}), longer({{"batch", 3}, {"seq", 11}, {"embed", 5}});
  const DimIndex placed({{-1, 1}, {9, 1}, {0, 9}}, 10);
  Tensor x = counting(block, DType::f32), received = counting({{"halo", 2}, {"batch", 3}, {"embed", 5}}, DType::f32);
  for (const KernelSet* set : both())
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(std::string(set->name()));
      Tensor want(longer, DType::f32), y(longer, DType::f32);
      Trial trial{.kind = "halo_place", .attributes = {{"dim", "seq"}}, .threads = threads};
      trial.indices = {{"seq", placed}};
      run_kernel(*set, trial, {&x, &received}, {&want});
      trial.attributes.set("place", "own");
      run_kernel(*set, trial, {&x}, {&y});
      for (int64_t i = 0; i < y.elements(); ++i) {
        const int64_t source = placed[i / 5 % 11];
        if (source < 8) {
          EXPECT_EQ(y.get(i), want.get(i));
        } else {
          EXPECT_TRUE(std::isnan(y.get(i)));
        }
      }
      trial.attributes.set("place", "received");
      trial.attributes.set("rows", int64_t{8});
      run_kernel(*set, trial, {&y, &received}, {&y});
      expect_close(y, want, 0, 0);
    }
}

std::string error_of(const Trial& trial, Tensor& x, Tensor& y) {
  std::string text;
  for (const KernelSet* set : both()) {
    try {
      run_kernel(*set, trial, {&x}, {&y});
      return "no error";
    } catch (const base::InternalError& e) {
      EXPECT_TRUE(text.empty() || text == e.what());
      text = e.what();
    }
  }
  return text;
}

TEST(Stack, WhatDoesNotFitIsSaid) {
  Tensor x = counting({{"batch", 2}, {"seq", 4}}, DType::f32);
  Tensor y({{"part", 2}, {"batch", 2}, {"seq", 2}}, DType::f32),
      other({{"part", 2}, {"seq", 2}, {"batch", 2}}, DType::f32);
  Trial trial{.kind = "stack", .attributes = {{"dim", "seq"}}, .indices = {{"seq", DimIndex({{0, 2}}, 4)}}};
  EXPECT_EQ(error_of(trial, x, y), "[kernel] internal error: 1 indices of \"seq\" for 2 parts");
  trial.indices.push_back({"seq", DimIndex({{2, 1}}, 4)});
  EXPECT_EQ(error_of(trial, x, y), "[kernel] internal error: a part of \"seq\" has 1 positions, not 2");
  trial.indices[1].index = DimIndex({{3, 2}}, 4);
  EXPECT_EQ(error_of(trial, x, y), "[kernel] internal error: positions 3 to 5 of 4 along \"seq\"");
  EXPECT_EQ(error_of(trial, x, other),
            "[kernel] internal error: [batch:2 seq:4] does not stack to [part:2 seq:2 batch:2] along \"seq\"");
}

// In place, values that are not padding are not even written, since other threads may read them.
TEST(Mask, ClearsPaddingAndNothingElse) {
  const Shape shape({{"batch", 3}, {"seq", 5}, {"embed", 7}});
  Trial trial{.kind = "mask",
              .indices = {{"batch", DimIndex({{4, 2}, {-1, 1}}, 6)},
                          {"seq", DimIndex({{0, 1}, {-1, 1}, {8, 2}, {-1, 1}}, 12)},
                          {"embed", DimIndex({{7, 5}, {-1, 2}}, 12)}}};
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i32})
    for (const KernelSet* set : both()) {
      trial.threads = set->name() == "cpu" ? 3 : 1;
      Tensor x = counting(shape, dtype), want = x, y(shape, dtype);
      for (int64_t i = 0; i < x.elements(); ++i) {
        const int64_t b = i / 35, s = i / 7 % 5, e = i % 7;
        if (b == 2 || s == 1 || s == 4 || e >= 5) want.set(i, 0);
      }
      run_kernel(*set, trial, {&x}, {&y});
      EXPECT_EQ(y.values(), want.values()) << set->name();
      run_kernel(*set, trial, {&x}, {&x});
      EXPECT_EQ(x.values(), want.values()) << set->name();
    }
}

TEST(Mask, LongPaddingAndNone) {
  const Shape shape({{"batch", 2}, {"flat", 50000}});
  Tensor x = counting(shape, DType::f32), want = x;
  run_kernel(*cpu_kernels(), {.kind = "mask", .threads = 2}, {&x}, {&x});
  EXPECT_EQ(x.values(), want.values());
  for (int64_t i = 0; i < x.elements(); ++i)
    if (i % 50000 >= 10001) want.set(i, 0);
  run_kernel(*cpu_kernels(),
             {.kind = "mask", .indices = {{"flat", DimIndex({{0, 10001}, {-1, 39999}}, 10001)}}, .threads = 3}, {&x},
             {&x});
  EXPECT_EQ(x.values(), want.values());
}

TEST(Mask, ClearsBySelectionNotByProduct) {
  for (const KernelSet* set : both()) {
    Tensor x({{"seq", 4}}, DType::f32, {1, NAN, INFINITY, -INFINITY});
    run_kernel(*set, {.kind = "mask", .indices = {{"seq", DimIndex({{0, 1}, {-1, 3}}, 1)}}}, {&x}, {&x});
    EXPECT_EQ(x.values(), (std::vector<double>{1, 0, 0, 0})) << set->name();
  }
}

TEST(LogSumExp, OfParts) {
  Tensor x(
      {{"part", 3}, {"seq", 5}}, DType::f64,
      {0, -INFINITY, 1000, -INFINITY, -3, std::log(2.0), -INFINITY, 1000, 5, -4, 0, -INFINITY, -1000, -INFINITY, 7});
  Tensor y({{"seq", 5}}, DType::f64);
  run_kernel(*reference_kernels(), {.kind = "logsumexp"}, {&x}, {&y});
  expect_close(
      y, {std::log(4.0), -INFINITY, 1000 + std::log(2.0), 5, std::log(std::exp(-3.) + std::exp(-4.) + std::exp(7.))},
      1e-14, 0);
  with_each_target([] {
    for (const int64_t parts : {1, 2, 7})
      for (const int64_t n : {1, 3, 300, 5000}) {
        Tensor a = random_tensor({{"part", parts}, {"batch", 1}, {"seq", n}}, DType::f32, 1, -90, 90);
        for (int64_t i = 0; i < a.elements(); i += 3) a.set(i, -INFINITY);
        if (n > 3) a.set(4, NAN), a.set(5, INFINITY);
        compare({.kind = "logsumexp", .threads = 2}, {&a}, {Tensor({{"batch", 1}, {"seq", n}}, DType::f32)},
                {1e-6, 1e-6});
      }
  });
}

TEST(AttentionJoin, ByHand) {
  const Shape rows({{"batch", 1}, {"seq", 4}, {"kv_heads", 1}, {"group", 1}}),
      shape({{"batch", 1}, {"seq", 4}, {"kv_heads", 1}, {"group", 1}, {"head_dim", 2}});
  for (const KernelSet* kernels : both()) {
    const DType dtype = kernels->name() == "cpu" ? DType::f32 : DType::f64;
    // Three exponentials here and one there; nothing there; nothing here; nothing at all.
    Tensor o(shape, dtype, {4, 8, 1, 2, 0, 0, 0, 0}), lse(rows, dtype, {std::log(3.0), 1, -INFINITY, -INFINITY});
    Tensor o_b(shape, dtype, {8, 0, 0, 0, 5, 6, 0, 0}), lse_b(rows, dtype, {0, -INFINITY, -2, -INFINITY});
    run_kernel(*kernels, {.kind = "attention_join"}, {&o, &lse, &o_b, &lse_b}, {&o, &lse});
    expect_close(o, {5, 6, 1, 2, 5, 6, 0, 0}, 1e-6, 0);
    expect_close(lse, {std::log(4.0), 1, -2, -INFINITY}, 1e-6, 0);
  }
}

TEST(AttentionJoin, AgreesWithTheReference) {
  const Shape rows({{"batch", 2}, {"seq", 37}, {"kv_heads", 2}, {"group", 3}}),
      shape({{"batch", 2}, {"seq", 37}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 20}});
  with_each_target([&] {
    for (const DType dtype : kFastTypes)
      for (const DType wide : {DType::f32, dtype}) {  // what is joined may be kept in fp32
        Tensor a = random_tensor(shape, wide, 1), b = random_tensor(shape, dtype, 2);
        Tensor lse_a = random_tensor(rows, DType::f32, 3, -50, 50), lse_b = random_tensor(rows, DType::f32, 4, -50, 50);
        for (int64_t i = 0; i < lse_a.elements(); i += 5) lse_a.set(i, -INFINITY);
        for (int64_t i = 0; i < lse_b.elements(); i += 7) lse_b.set(i, -INFINITY);
        compare({.kind = "attention_join", .threads = 2}, {&a, &lse_a, &b, &lse_b},
                {Tensor(shape, wide), Tensor(rows, DType::f32)}, {1e-5, 1e-6});
      }
  });
}

TEST(Fill, AllOutputsOfAnyType) {
  for (const KernelSet* set : both())
    for (const double value : {0.0, 3.0}) {
      Tensor a({{"flat", 40000}}, DType::f32), b({{"seq", 3}}, DType::bf16), c({{"embed", 5}}, DType::f64),
          d({{"batch", 9}}, DType::i32);
      std::vector<Tensor*> outs = {&a, &b, &c};
      if (value == 0) outs.push_back(&d);
      run_kernel(*set, {.kind = "fill", .attributes = {{"value", value}}, .threads = 2}, {}, outs);
      for (Tensor* y : outs)
        EXPECT_EQ(y->values(), std::vector<double>(static_cast<size_t>(y->elements()), value)) << set->name();
    }
}

}  // namespace
}  // namespace kintsugi::kernels::test::pieces_test
