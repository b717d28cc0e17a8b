#include "kintsugi/samples/number_samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kintsugi/base/file.h"
#include "kintsugi/data/test_folder.h"
#include "kintsugi/samples/document_samples.h"

namespace kintsugi::samples::number_samples_test {
namespace {

std::shared_ptr<const data::NumberTable> table_of(const data::TestFolder& folder, const std::string& text) {
  base::write_file_atomically(folder / "t.csv", text);
  return std::make_shared<const data::NumberTable>(folder / "t.csv");
}

std::vector<int32_t> ints(const BatchMemory& batch, std::string_view name) {
  const std::span<const int32_t> part = batch.get<int32_t>(name);
  return {part.begin(), part.end()};
}

}  // namespace

// Each row once per epoch, in a different order each time; in file order for evaluation.
TEST(NumberSamples, AreRowsInAnOrder) {
  const data::TestFolder folder;
  std::string text;
  for (int i = 0; i < 50; ++i) text += std::to_string(i) + "," + std::to_string(100 + i) + ",7\n";
  const auto table = table_of(folder, text);
  const NumberSamples training(table, {.features = 2, .targets = 1, .order = {.shuffled = true, .seed = 3}});
  BatchMemory epochs(100, training.parts());
  training.fill(0, epochs.view());
  const std::span<float> features = epochs.get<float>("features");
  std::set<float> seen;
  int same = 0;
  for (size_t i = 0; i < 50; ++i) {
    seen.insert(features[2 * i]);
    EXPECT_EQ(features[2 * i + 1], features[2 * i] + 100);
    same += features[2 * i] == features[100 + 2 * i];
  }
  EXPECT_EQ(seen.size(), 50u);
  EXPECT_LT(same, 10);
  const NumberSamples evaluation(table, {.features = 2, .targets = 0, .order = {}});
  BatchMemory last(2, evaluation.parts());
  evaluation.fill(49, last.view());
  EXPECT_EQ(last.get<float>("features")[0], 49.0f);
  EXPECT_EQ(ints(last, "classes"), (std::vector<int32_t>{7, kIgnored}));
}

// Padding is a separate document; longer samples are cut.
TEST(DocumentSamples, AreDocumentsWithTheirLabels) {
  const data::TestFolder folder;
  data::write_tokens(folder / "d", {{10, 11}, {20, 21, 22, 23, 24}}, {.vocab_size = 100, .tokenizer = ""});
  const auto file = std::make_shared<data::TokenFile>(folder / "d");
  const DocumentOptions options = {.sequence = 6, .targets = 0, .first = 1, .separator = 2, .vocab = 100, .order = {}};
  const DocumentSamples samples(file, table_of(folder, "0\n1\n"), options);
  BatchMemory batch(3, samples.parts());
  samples.fill(0, batch.view());
  EXPECT_EQ(ints(batch, "tokens"),
            (std::vector<int32_t>{1, 10, 11, 2, -1, -1, 1, 20, 21, 22, 23, 2, 1, 10, 11, 2, -1, -1}));
  EXPECT_EQ(ints(batch, "starts"), (std::vector<int32_t>{0, 0, 0, 0, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4}));
  EXPECT_EQ(ints(batch, "classes"), (std::vector<int32_t>{0, 1, kIgnored}));
  EXPECT_THROW(DocumentSamples(file, table_of(folder, "0\n1\n1\n"), options), base::UserError);
  EXPECT_THROW(DocumentSamples(file, table_of(folder, "0,1\n1,1\n"), options), base::UserError);
  DocumentOptions small = options;
  small.sequence = 2;
  EXPECT_THROW(DocumentSamples(file, table_of(folder, "0\n1\n"), small), base::UserError);
}

}  // namespace kintsugi::samples::number_samples_test
