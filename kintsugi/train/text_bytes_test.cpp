#include "kintsugi/train/text_bytes.h"

#include <gtest/gtest.h>

#include "kintsugi/text/bytes_tokenizer.h"

namespace kintsugi::train::text_bytes_test {
namespace {

// Sample n has the labels n, n + 1, kIgnored and the last id.
class Labels : public samples::SampleSource {
 public:
  explicit Labels(int32_t last) : last_(last) {}
  const samples::Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const samples::BatchView& batch) const override {
    samples::for_each_row(batch, parts_, [&](uint64_t at, const samples::BatchView& view) {
      const auto n = static_cast<int32_t>(first + at);
      const std::span<int32_t> labels = view.get<int32_t>("labels");
      labels[0] = n, labels[1] = n + 1, labels[2] = samples::kIgnored, labels[3] = last_;
    });
  }

 private:
  int32_t last_;
  samples::Parts parts_ = {samples::tokens_part(4), samples::labels_part(4)};
};

}  // namespace

TEST(TextBytes, CountBytesOfTokensThatCount) {
  const auto tokenizer = text::make_bytes_tokenizer();
  TextBytes bytes(*tokenizer);
  const bool ends = tokenizer->end_of_text().has_value();  // which has no byte
  const Labels labels(ends ? *tokenizer->end_of_text() : 0);
  const int64_t each = ends ? 2 : 3;
  EXPECT_EQ(bytes.of(labels, 1), each);
  EXPECT_EQ(bytes.of(std::vector<int32_t>{200, samples::kIgnored, 201}), 2);  // no characters, but each a byte
  EXPECT_EQ(bytes.of_file("a", labels, 5), 5 * each);
  EXPECT_EQ(bytes.of_file("a", labels, 5), 5 * each);
  EXPECT_DOUBLE_EQ(bits_per_byte(8 * 0.6931471805599453, 4), 2);
}

}  // namespace kintsugi::train::text_bytes_test
