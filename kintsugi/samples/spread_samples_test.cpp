// The samples that a validation reads.
#include "kintsugi/samples/spread_samples.h"

#include <gtest/gtest.h>

#include <vector>

namespace kintsugi::samples::spread_samples_test {
namespace {

// Sample n is the token n; after the last, -1.
class Numbered : public FiniteSource {
 public:
  explicit Numbered(uint64_t count) : count_(count) {}

  uint64_t num_samples() const override { return count_; }
  const Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const BatchView& batch) const override {
    const std::span<int32_t> tokens = batch.get<int32_t>("tokens");
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = first + i < count_ ? static_cast<int32_t>(first + i) : -1;
  }

 private:
  uint64_t count_;
  Parts parts_ = {tokens_part(1)};
};

std::vector<int32_t> taken(uint64_t all, uint64_t count, uint64_t first, int64_t rows) {
  const Numbered source(all);
  const SpreadSamples spread(source, count);
  BatchMemory batch(rows, spread.parts());
  spread.fill(first, batch.view());
  const std::span<int32_t> tokens = batch.get<int32_t>("tokens");
  return {tokens.begin(), tokens.end()};
}

}  // namespace

TEST(SpreadSamples, FromTheWholeFile) {
  using Numbers = std::vector<int32_t>;
  EXPECT_EQ(taken(100, 4, 0, 4), (Numbers{0, 25, 50, 75}));
  EXPECT_EQ(taken(10, 4, 0, 4), (Numbers{0, 2, 5, 7}));
  EXPECT_EQ(taken(10, 4, 2, 2), (Numbers{5, 7}));  // of a rank
  EXPECT_EQ(taken(5, 5, 0, 6), (Numbers{0, 1, 2, 3, 4, -1}));
  EXPECT_EQ(taken(5, 4, 3, 3), (Numbers{3, -1, -1}));
}

}  // namespace kintsugi::samples::spread_samples_test
