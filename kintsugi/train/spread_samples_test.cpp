// Which samples a validation reads.
#include "kintsugi/train/spread_samples.h"

#include <gtest/gtest.h>

#include <vector>

namespace kintsugi::train::spread_samples_test {
namespace {

// Sample n is the token n; behind the last, -1.
class Numbered : public data::FiniteSource {
 public:
  explicit Numbered(uint64_t count) : count_(count) {}

  uint64_t num_samples() const override { return count_; }
  data::RowSizes row() const override { return {.tokens = 1}; }
  void fill(uint64_t first, const data::BatchView& batch) const override {
    for (size_t i = 0; i < batch.tokens.size(); ++i)
      batch.tokens[i] = first + i < count_ ? static_cast<int32_t>(first + i) : -1;
  }

 private:
  uint64_t count_;
};

std::vector<int32_t> taken(uint64_t all, uint64_t count, uint64_t first, int64_t rows) {
  const Numbered source(all);
  const SpreadSamples spread(source, count);
  data::BatchMemory batch(rows, spread.row());
  spread.fill(first, batch.view());
  return batch.tokens;
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

}  // namespace kintsugi::train::spread_samples_test
