// Operations on rows of several texts: compared with the reference, and with the operations that use one position.
#include "kintsugi/kernels/cpu/compare_test.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::cpu::generate_at_test {
namespace {

using namespace kintsugi::kernels::test;

Tensor integers(const char* dim, const std::vector<double>& values) {
  return Tensor({{dim, static_cast<int64_t>(values.size())}}, DType::i32, values);
}

// Rows of three texts with a cache of 5: a prompt of two tokens, single tokens, a longer prompt, padding.
const std::vector<double> kText = {2, 2, 0, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, 3};
const std::vector<double> kAt = {7, 8, 0, 69, 60, 61, 62, 63, 64, 65, 66, 67, 68, -1, -1};

TEST(GenerateAt, AttentionAgreesWithTheReference) {
  Tensor text = integers("batch", kText), at = integers("batch", kAt);
  const auto batch = static_cast<int64_t>(kText.size());
  for (DType dtype : kFastTypes)
    for (int64_t window : {0, 5})
      for (double softcap : {0.0, 3.0}) {
        // In bf16 probabilities are rounded for the following matmuls.
        const Tolerance tolerance = {1e-4, dtype == DType::bf16 ? 8e-3 : 1e-4};
        const Shape cache = {{"text", 5}, {"key_seq", 70}, {"kv_heads", 2}, {"head_dim", 12}},
                    query = {{"batch", batch}, {"seq", 1}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 12}};
        Tensor k = random_tensor(cache, dtype, 1), v = random_tensor(cache, dtype, 2),
               q = random_tensor(query, dtype, 3);
        Trial trial{.kind = "attention_at",
                    .attributes = {{"causal", int64_t{1}}, {"scale", 0.3}, {"window", window}, {"softcap", softcap}},
                    .threads = 2};
        compare(trial, {&q, &k, &v, &text, &at}, {Tensor(q.type())}, tolerance);
        // Rows of several tokens each.
        Tensor wide =
            random_tensor({{"batch", 3}, {"seq", 4}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 12}}, dtype, 4);
        Tensor few_text = integers("batch", {4, -1, 0}), few_at = integers("batch", {0, 3, 66});
        compare(trial, {&wide, &k, &v, &few_text, &few_at}, {Tensor(wide.type())}, tolerance);
        Tensor sinks = random_tensor({{"kv_heads", 2}, {"group", 3}}, dtype, 5, -2, 4);
        compare(trial, {&q, &k, &v, &text, &at, &sinks}, {Tensor(q.type())}, tolerance);
        compare(trial, {&wide, &k, &v, &few_text, &few_at, &sinks}, {Tensor(wide.type())}, tolerance);
      }
}

// One visible key whose score is 0, with a sink of log 3: the key has a quarter of the probability.
TEST(GenerateAt, ASinkTakesItsShare) {
  Tensor text = integers("batch", {0}), at = integers("batch", {0});
  for (const auto& set : {reference_kernels(), cpu_kernels()}) {
    Tensor q = filled({{"batch", 1}, {"seq", 1}, {"kv_heads", 1}, {"group", 1}, {"head_dim", 2}}, DType::f32, 0.0),
           k = filled({{"text", 1}, {"key_seq", 4}, {"kv_heads", 1}, {"head_dim", 2}}, DType::f32, 1.0),
           v = filled(k.type().shape, DType::f32, 8.0), o(q.type());
    Tensor sinks({{"kv_heads", 1}, {"group", 1}}, DType::f32, {std::log(3.0)});
    run_kernel(*set, {.kind = "attention_at", .attributes = {{"causal", int64_t{1}}, {"scale", 1.0}}, .threads = 1},
               {&q, &k, &v, &text, &at, &sinks}, {&o});
    EXPECT_NEAR(o.get(0), 2.0, 1e-6) << set->name();
  }
}

// A row has the bits that `attention` gives for its text alone at its position.
TEST(GenerateAt, RowsHaveTheBitsOfTheirTextAlone) {
  Tensor text = integers("batch", kText), at = integers("batch", kAt);
  const auto batch = static_cast<int64_t>(kText.size());
  for (const auto& set : {reference_kernels(), cpu_kernels()})
    for (DType dtype : kFastTypes) {
      const Shape cache = {{"text", 5}, {"key_seq", 70}, {"kv_heads", 2}, {"head_dim", 12}},
                  query = {{"batch", batch}, {"seq", 1}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 12}};
      Tensor k = random_tensor(cache, dtype, 1), v = random_tensor(cache, dtype, 2), q = random_tensor(query, dtype, 3),
             o(q.type());
      const Attributes attributes = {{"causal", int64_t{1}}, {"scale", 0.3}, {"dropout", 0.0}, {"key", ""}};
      run_kernel(*set, {.kind = "attention_at", .attributes = attributes, .threads = 2}, {&q, &k, &v, &text, &at},
                 {&o});
      const int64_t of_text = 70 * 2 * 12, of_row = 2 * 3 * 12;
      for (const auto& [first, count] : {std::pair(0, 2), {2, 1}, {3, 1}, {4, 9}}) {
        const Shape one_cache = {{"batch", 1}, {"key_seq", 70}, {"kv_heads", 2}, {"head_dim", 12}};
        Tensor one_k(one_cache, dtype), one_v(one_cache, dtype),
            one_q({{"batch", 1}, {"seq", count}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 12}}, dtype);
        const auto of = static_cast<int64_t>(kText[static_cast<size_t>(first)]);
        for (int64_t i = 0; i < of_text; ++i)
          one_k.set(i, k.get(of * of_text + i)), one_v.set(i, v.get(of * of_text + i));
        for (int64_t i = 0; i < count * of_row; ++i) one_q.set(i, q.get(first * of_row + i));
        Tensor one_o(one_q.type()), lse({{"batch", 1}, {"seq", count}, {"kv_heads", 2}, {"group", 3}}, DType::f32);
        const auto position = static_cast<int64_t>(kAt[static_cast<size_t>(first)]);
        run_kernel(*set,
                   {.kind = "attention",
                    .attributes = attributes,
                    .indices = {{"seq", DimIndex({{position, count}}, 70)}},
                    .threads = 2},
                   {&one_q, &one_k, &one_v}, {&one_o, &lse});
        for (int64_t i = 0; i < count * of_row; ++i)
          ASSERT_EQ(o.get(first * of_row + i), one_o.get(i)) << set->name() << " row " << first << " element " << i;
      }
      for (int64_t i = 13 * of_row; i < 15 * of_row; ++i) ASSERT_EQ(o.get(i), 0.0);
    }
}

TEST(GenerateAt, CachesPositionsAndRowsAgreeWithTheReference) {
  for (DType dtype : kFastTypes) {
    Tensor text = integers("batch", {1, 1, 0, -1, 2}), at = integers("batch", {5, 8, 0, 3, 11});
    Tensor cache = random_tensor({{"text", 3}, {"key_seq", 12}, {"kv_heads", 2}, {"head_dim", 5}}, dtype, 1),
           x = random_tensor({{"batch", 5}, {"seq", 2}, {"kv_heads", 2}, {"head_dim", 5}}, dtype, 2);
    compare({.kind = "cache_write_at"}, {&cache, &x, &text, &at}, {Tensor(cache.type())}, {0, 0});
    compare_in_place({.kind = "cache_write_at"}, {&cache, &x, &text, &at}, 0, {0, 0});
    Tensor table = random_tensor({{"position", 12}, {"embed", 7}}, dtype, 3);
    compare({.kind = "position_at", .attributes = {{"length", int64_t{2}}}}, {&table, &at},
            {Tensor({{"batch", 5}, {"seq", 2}, {"embed", 7}}, dtype)}, {0, 0});
    for (int64_t interleaved : {0, 1}) {
      const Trial turn{
          .kind = "rotary_at",
          .attributes = {{"theta", 100.0}, {"inverse", int64_t{0}}, {"interleaved", interleaved}, {"dims", int64_t{4}}},
          .threads = 2};
      Tensor some = integers("batch", {5, 800, 0, 3, 11});
      compare(turn, {&x, &some}, {Tensor(x.type())}, {1e-4, 1e-4});
      compare_in_place(turn, {&x, &some}, 0, {1e-4, 1e-4});
    }
    Tensor h = random_tensor({{"batch", 5}, {"seq", 2}, {"embed", 7}}, dtype, 4), rows = integers("row", {3, -1, 0});
    compare({.kind = "take_rows"}, {&h, &rows}, {Tensor({{"row", 3}, {"embed", 7}}, dtype)}, {0, 0});
  }
}

}  // namespace
}  // namespace kintsugi::kernels::cpu::generate_at_test
