// Attention of a token that also rotates its query and key and appends key and value to the caches.
#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/operands.h"

namespace kintsugi::kernels::test::device_attention_token_test {
namespace {

struct Case {
  int64_t batch = 1, kv_heads = 2, group = 1, head_dim = 16;
  int64_t keys = 40, place = 17;
  int64_t turned = -1;  // dims of a head; -1: nothing is turned
  int64_t interleaved = 0, window = 0;
  std::vector<tensor::Segment> key_index = {};  // empty: all
};

// The results of the step: o, lse and both caches; empty if it is not fused.
std::vector<std::vector<double>> step(const Case& c, DType dtype, int64_t shift, bool at_once) {
  const Shape keys = {{"batch", c.batch}, {"seq", 1}, {"kv_heads", c.kv_heads}, {"head_dim", c.head_dim}};
  const Shape queries = {
      {"batch", c.batch}, {"seq", 1}, {"kv_heads", c.kv_heads}, {"group", c.group}, {"head_dim", c.head_dim}};
  const Shape cache = {{"batch", c.batch}, {"key_seq", c.keys}, {"kv_heads", c.kv_heads}, {"head_dim", c.head_dim}};
  const int64_t whole = c.key_index.empty() ? c.keys : 2 * c.keys;
  const std::vector<NamedIndex> indices = {
      {"seq", DimIndex({{c.place, 1}}, whole)},
      {"key_seq", c.key_index.empty() ? DimIndex(c.keys) : DimIndex(c.key_index, whole)}};
  Tensor q = random_tensor(queries, dtype, 1), k = random_tensor(keys, dtype, 2), v = random_tensor(keys, dtype, 3);
  Tensor k_cache = random_tensor(cache, dtype, 4), v_cache = random_tensor(cache, dtype, 5);
  Tensor unread_q(queries, dtype), unread_k(keys, dtype), unread_keys(cache, dtype), unread_values(cache, dtype);
  Tensor o(queries, dtype), lse(Shape{queries[0], queries[1], queries[2], queries[3]}, DType::f32);
  CallsInARow calls(shift);
  const bool turns = c.turned >= 0;
  if (turns) {
    const Trial rotary{
        .kind = "rotary",
        .attributes = {{"theta", 10000.0}, {"inverse", int64_t{0}}, {"interleaved", c.interleaved}, {"dims", c.turned}},
        .indices = indices};
    calls.add(rotary, {&q}, {&q}), calls.add(rotary, {&k}, {&k});
  }
  const Trial write{.kind = "cache_write", .indices = indices};
  const size_t k_write = calls.add(write, {&k_cache, turns ? &unread_k : &k}, {&k_cache});
  if (turns) calls.read(k_write, 1, 1);
  const size_t v_write = calls.add(write, {&v_cache, &v}, {&v_cache});
  Trial trial{.kind = "attention",
              .attributes = {{"causal", int64_t{1}}, {"scale", 0.3}, {"window", c.window}},
              .indices = indices};
  const size_t own = calls.add(trial, {turns ? &unread_q : &q, &unread_keys, &unread_values}, {&o, &lse});
  if (turns) calls.read(own, AttentionIn::kQ, 0);
  calls.read(own, AttentionIn::kK, k_write), calls.read(own, AttentionIn::kV, v_write);
  if (!calls.run(at_once, c.batch % 2 == 1 ? 32 : 64)) return {};
  return {o.values(), lse.values(), k_cache.values(), v_cache.values()};
}

// With and without rotation, heads of 8, 16 and 32 lanes, several queries per key, keys on another rank; `shift`: the
// position is known only on the device.
TEST(OnDevice, AttentionOfATokenAppendsItsKey) {
  const Case cases[] = {
      {},
      {.batch = 3, .group = 4, .turned = 16},
      {.batch = 2, .group = 3, .head_dim = 64, .keys = 700, .place = 699, .turned = 64},
      {.head_dim = 128, .turned = 64, .window = 9},
      {.kv_heads = 1, .group = 8, .head_dim = 64, .turned = 32, .interleaved = 1},
      {.batch = 2, .head_dim = 256, .place = 0, .turned = 256},
      {.batch = 2, .place = 33, .turned = 16, .key_index = {{40, 20}, {20, 20}}},
      {.place = 53, .key_index = {{0, 40}}},
      // Shared by blocks, with the key before, at and after their boundaries.
      {.group = 2, .keys = 2600, .place = 2100, .turned = 16},
      {.keys = 2600, .place = 1016, .turned = 16},
      {.keys = 2600, .place = 1024, .window = 30},
  };
  for (const Case& c : cases)
    for (const DType dtype : kDeviceTypes)
      for (const int64_t shift : {0, 8}) {
        if (dtype == DType::f32 && c.head_dim > 128) continue;
        SCOPED_TRACE(fmt::format("{} heads of {} in {}, shift {}", c.kv_heads, c.head_dim, name_of(dtype), shift));
        const auto at_once = step(c, dtype, shift, true);
        EXPECT_FALSE(at_once.empty());
        EXPECT_EQ(at_once, step(c, dtype, shift, false));
      }
}

// Several positions, too many pairs, and rows not aligned to 16 bytes use the separate kernels.
TEST(OnDevice, AttentionOfATokenLeavesOthersAlone) {
  EXPECT_TRUE(step({}, DType::bf16, 1, true).empty());
  EXPECT_TRUE(step({.head_dim = 12}, DType::bf16, 0, true).empty());
  EXPECT_TRUE(step({.head_dim = 24, .turned = 8}, DType::bf16, 0, true).empty());  // pairs are not runs of 16 bytes
  EXPECT_TRUE(step({.group = 9}, DType::bf16, 0, true).empty());
}

}  // namespace
}  // namespace kintsugi::kernels::test::device_attention_token_test
