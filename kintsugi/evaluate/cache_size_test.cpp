#include "kintsugi/evaluate/cache_size.h"

#include <gtest/gtest.h>

namespace kintsugi::evaluate::cache_size_test {
namespace {

config::Settings llama(int64_t layers, int64_t context, const char* dtype) {
  config::Settings s;
  s.model.layers = layers;
  s.model.kv_heads = 8;
  s.model.head_dim = 128;
  s.model.context = context;
  s.train.dtype = dtype;
  return s;
}

}  // namespace

TEST(CacheSize, LongContextsAreNotTheDefault) {
  const config::Settings s = llama(32, 131'072, "bf16");  // 128 KiB per position
  EXPECT_EQ(cache_bytes(s, 131'072), int64_t{16} << 30);
  EXPECT_EQ(default_positions(s, 1), 8192);
  EXPECT_EQ(texts_that_fit(s, 8192, 8), 4);
  EXPECT_EQ(texts_that_fit(s, 131'072, 8), 1);
}

TEST(CacheSize, SmallModelsHaveAllPositions) {
  const config::Settings s = llama(2, 131'072, "bf16");  // 8 KiB per position
  EXPECT_EQ(default_positions(s, 1), 131'072);
  EXPECT_EQ(default_positions(s, 4), 131'072);
  EXPECT_EQ(default_positions(s, 5), 8192);
  EXPECT_EQ(texts_that_fit(s, 8192, 8), 8);
  EXPECT_EQ(default_positions(llama(200, 2048, "fp32"), 8), 2048);  // never fewer than a short context
}

}  // namespace kintsugi::evaluate::cache_size_test
