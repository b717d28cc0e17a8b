// Operations on rows of several texts, against the reference.
#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

Tensor integers_of(const char* dim, const std::vector<double>& values) {
  return Tensor({{dim, static_cast<int64_t>(values.size())}}, DType::i32, values);
}

// Rows of texts of a cache of 5: a prompt of two tokens, single tokens, a longer prompt, and padding.
const std::vector<double> kTexts = {2, 2, 0, 4, 1, 1, 1, -1, 3};
const std::vector<double> kPlaces = {7, 8, 0, 69, 60, 61, 62, -1, -1};

TEST(OnDevice, AttentionAt) {
  Tensor text = integers_of("batch", kTexts), at = integers_of("batch", kPlaces);
  const auto batch = static_cast<int64_t>(kTexts.size());
  struct Form {
    int64_t head_dim, window;
    double softcap;
    std::vector<NamedIndex> indices;
  };
  const Form forms[] = {
      {12, 0, 0, {}},
      {12, 5, 3, {}},
      {80,
       0,
       0,
       {{"key_seq", DimIndex({{40, 30}, {-1, 2}, {0, 38}}, 70)}, {"kv_heads", DimIndex({{0, 1}, {-1, 1}}, 1)}}},
      {130, 9, 0, {{"batch", DimIndex({{0, 5}, {-1, 4}}, 5)}}},
      {260, 0, 2, {}},
  };
  for (const DType dtype : kDeviceTypes)
    for (const Form& f : forms)
      for (const int64_t causal : {1, 0}) {
        const Shape cache = {{"text", 5}, {"key_seq", 70}, {"kv_heads", 2}, {"head_dim", f.head_dim}};
        Tensor k = random_tensor(cache, dtype, 1), v = random_tensor(cache, dtype, 2),
               q = random_tensor(
                   {{"batch", batch}, {"seq", 1}, {"kv_heads", 2}, {"group", 3}, {"head_dim", f.head_dim}}, dtype, 3);
        const Trial trial{
            .kind = "attention_at",
            .attributes = {{"causal", causal}, {"scale", 0.3}, {"window", f.window}, {"softcap", f.softcap}},
            .indices = f.indices};
        compare_on_device(trial, {&q, &k, &v, &text, &at}, {Tensor(q.type())});
        if (!f.indices.empty()) continue;
        Tensor sinks = random_tensor({{"kv_heads", 2}, {"group", 3}}, dtype, 5);
        compare_on_device(trial, {&q, &k, &v, &text, &at, &sinks}, {Tensor(q.type())});
      }
  // Rows of several tokens each.
  const Shape cache = {{"text", 5}, {"key_seq", 70}, {"kv_heads", 2}, {"head_dim", 12}};
  Tensor k = random_tensor(cache, DType::f32, 1), v = random_tensor(cache, DType::f32, 2),
         q = random_tensor({{"batch", 3}, {"seq", 4}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 12}}, DType::f32, 4);
  Tensor few_text = integers_of("batch", {4, -1, 0}), few_at = integers_of("batch", {0, 3, 66});
  compare_on_device({.kind = "attention_at", .attributes = {{"causal", int64_t{1}}, {"scale", 0.3}}},
                    {&q, &k, &v, &few_text, &few_at}, {Tensor(q.type())});
}

TEST(OnDevice, CachesPositionsAndRowsOfTexts) {
  const std::vector<std::vector<NamedIndex>> indices = {
      {}, {{"batch", DimIndex({{0, 4}, {-1, 1}}, 4)}, {"key_seq", DimIndex({{6, 6}, {0, 6}}, 12)}}};
  for (const DType dtype : kDeviceTypes)
    for (const int64_t width : {5, 16})
      for (const auto& index : indices) {
        Tensor text = integers_of("batch", {1, 1, 0, -1, 2}), at = integers_of("batch", {5, 8, 0, 3, 11});
        const Shape of_cache = {{"text", 3}, {"key_seq", 12}, {"kv_heads", 2}, {"head_dim", width}};
        Tensor cache = random_tensor(of_cache, dtype, 1),
               x = random_tensor({{"batch", 5}, {"seq", 2}, {"kv_heads", 2}, {"head_dim", width}}, dtype, 2);
        compare_on_device({.kind = "cache_write_at", .indices = index}, {&cache, &x, &text, &at},
                          {Tensor(cache.type())}, {0, 0});
        Tensor table = random_tensor({{"position", 12}, {"embed", width}}, dtype, 3);
        compare_on_device({.kind = "position_at", .attributes = {{"length", int64_t{2}}}, .indices = index},
                          {&table, &at}, {Tensor({{"batch", 5}, {"seq", 2}, {"embed", width}}, dtype)}, {0, 0});
        for (const int64_t interleaved : {0, 1}) {
          Tensor some = integers_of("batch", {5, 800, 0, -1, 11});
          compare_on_device({.kind = "rotary_at",
                             .attributes = {{"theta", 100.0},
                                            {"inverse", int64_t{0}},
                                            {"interleaved", interleaved},
                                            {"dims", int64_t{4}}},
                             .indices = index},
                            {&x, &some}, {Tensor(x.type())}, {1e-4, 1e-4});
        }
        Tensor h = random_tensor({{"batch", 5}, {"seq", 2}, {"embed", width}}, dtype, 4),
               rows = integers_of("row", {3, -1, 0});
        compare_on_device({.kind = "take_rows", .indices = index}, {&h, &rows},
                          {Tensor({{"row", 3}, {"embed", width}}, dtype)}, {0, 0});
      }
}

}  // namespace
}  // namespace kintsugi::kernels::test
