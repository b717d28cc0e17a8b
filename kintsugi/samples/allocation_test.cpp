// Nothing is allocated between two steps: counts operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

#include "kintsugi/data/test_folder.h"
#include "kintsugi/samples/loader.h"
#include "kintsugi/samples/sampler.h"

namespace {

std::atomic<int64_t> allocations{0};

}  // namespace

// Not inlined: the compiler would see that memory from new is freed, and warn.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace kintsugi::samples::allocation_test {

TEST(Allocation, TheLoaderAllocatesNothingBetweenBatches) {
  const data::TestFolder folder;
  std::vector<int32_t> ids(3000);
  std::iota(ids.begin(), ids.end(), 0);
  data::write_tokens(folder / "t", {ids, ids, ids}, {.vocab_size = 3000, .tokenizer = ""});
  data::write_tokens(folder / "u", {ids}, {.vocab_size = 3000, .tokenizer = ""});
  const Sampler sampler(
      {{std::make_shared<data::TokenFile>(folder / "t"), 0.9}, {std::make_shared<data::TokenFile>(folder / "u"), 0.1}},
      {.sequence = 64, .seed = 1, .reset_at_document = true, .vocab_size = 3000});
  Loader loader(sampler, {.share = {.global_batch = 8, .micro_batch = 4}});
  for (int i = 0; i < 10; ++i) loader.next();
  const int64_t before = allocations;
  int64_t sum = 0;
  for (int i = 0; i < 1000; ++i) sum += loader.next().batch.get<int32_t>("tokens")[0];
  EXPECT_EQ(allocations - before, 0) << sum;
}

}  // namespace kintsugi::samples::allocation_test
