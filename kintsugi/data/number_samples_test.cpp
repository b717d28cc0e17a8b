#include "kintsugi/data/number_samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kintsugi/base/file.h"
#include "kintsugi/data/document_samples.h"
#include "kintsugi/data/test_folder.h"

namespace kintsugi::data::number_samples_test {
namespace {

std::shared_ptr<const NumberTable> table_of(const TestFolder& folder, const std::string& text) {
  base::write_file_atomically(folder / "t.csv", text);
  return std::make_shared<const NumberTable>(folder / "t.csv");
}

std::string error_of(const TestFolder& folder, const std::string& text) {
  try {
    table_of(folder, text);
  } catch (const base::UserError& error) {
    const std::string what = error.what();
    return what.substr(what.find("t.csv\"") + 6);
  }
  return "no error";
}

}  // namespace

TEST(NumberTable, ReadsLinesWithAndWithoutNames) {
  const TestFolder folder;
  for (const char* text : {"a,b\n1,2\n3,-4e-1\n", "1,2\n3,-0.4",
                           "\xef\xbb\xbf"
                           "1 , 2\r\n+3,-.4\r\n\r\n"}) {
    const auto table = table_of(folder, text);
    ASSERT_EQ(table->rows(), 2) << text;
    EXPECT_EQ(table->columns(), 2);
    EXPECT_EQ(table->row(1)[0], 3.0f);
    EXPECT_EQ(table->row(1)[1], -0.4f);
  }
  EXPECT_EQ(table_of(folder, "1,0\n2,3\n")->require_classes(1, 4), 4);
}

TEST(NumberTable, RefusesWhatIsNoNumber) {
  const TestFolder folder;
  EXPECT_EQ(error_of(folder, "1,2\n3,x\n"), ":2: \"x\" is no number in fp32; a line holds numbers separated by commas");
  EXPECT_EQ(error_of(folder, "1,2\n3,\n"), ":2: \"\" is no number in fp32; a line holds numbers separated by commas");
  EXPECT_EQ(error_of(folder, "1,2\n3\n"), ":2: 1 numbers, where the first line of numbers has 2");
  EXPECT_EQ(error_of(folder, "1,nan\n"), ":1: nan is not finite");
  EXPECT_EQ(error_of(folder, "1,1e99\n"),
            ":1: \"1e99\" is no number in fp32; a line holds numbers separated by commas");
  EXPECT_EQ(error_of(folder, "1,2\n\n3,4\n"), ":2: an empty line between others");
  EXPECT_EQ(error_of(folder, "a,b\n"), " holds no numbers");
  EXPECT_EQ(error_of(folder, ""), " holds no numbers");
  EXPECT_THROW(table_of(folder, "a,b\n1,1\n2,3\n")->require_classes(1, 3), base::UserError);
  EXPECT_THROW(table_of(folder, "1,0.5\n")->require_classes(1, 3), base::UserError);
}

// Each row once in an epoch, in another order each time; of an evaluation in the order of the file.
TEST(NumberSamples, AreRowsInAnOrder) {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 50; ++i) text += std::to_string(i) + "," + std::to_string(100 + i) + ",7\n";
  const auto table = table_of(folder, text);
  const NumberSamples training(table, {.features = 2, .targets = 1, .order = {.shuffled = true, .seed = 3}});
  BatchMemory epochs(100, training.row());
  training.fill(0, epochs.view());
  std::set<float> seen;
  int same = 0;
  for (size_t i = 0; i < 50; ++i) {
    seen.insert(epochs.features[2 * i]);
    EXPECT_EQ(epochs.features[2 * i + 1], epochs.features[2 * i] + 100);
    same += epochs.features[2 * i] == epochs.features[100 + 2 * i];
  }
  EXPECT_EQ(seen.size(), 50u);
  EXPECT_LT(same, 10);
  const NumberSamples evaluation(table, {.features = 2, .targets = 0, .order = {}});
  BatchMemory last(2, evaluation.row());
  evaluation.fill(49, last.view());
  EXPECT_EQ(last.features[0], 49.0f);
  EXPECT_EQ(last.classes, (std::vector<int32_t>{7, kIgnored}));
}

// Padding is a document of its own; what is too long is cut.
TEST(DocumentSamples, AreDocumentsWithTheirLabels) {
  const TestFolder folder;
  write_tokens(folder / "d", {{10, 11}, {20, 21, 22, 23, 24}}, {.vocab_size = 100, .tokenizer = ""});
  const auto file = std::make_shared<TokenFile>(folder / "d");
  const DocumentOptions options = {.sequence = 6, .targets = 0, .first = 1, .separator = 2, .vocab = 100, .order = {}};
  const DocumentSamples samples(file, table_of(folder, "0\n1\n"), options);
  BatchMemory batch(3, samples.row());
  samples.fill(0, batch.view());
  EXPECT_EQ(batch.tokens, (std::vector<int32_t>{1, 10, 11, 2, -1, -1, 1, 20, 21, 22, 23, 2, 1, 10, 11, 2, -1, -1}));
  EXPECT_EQ(batch.starts, (std::vector<int32_t>{0, 0, 0, 0, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4}));
  EXPECT_EQ(batch.classes, (std::vector<int32_t>{0, 1, kIgnored}));
  EXPECT_THROW(DocumentSamples(file, table_of(folder, "0\n1\n1\n"), options), base::UserError);
  EXPECT_THROW(DocumentSamples(file, table_of(folder, "0,1\n1,1\n"), options), base::UserError);
  DocumentOptions small = options;
  small.sequence = 2;
  EXPECT_THROW(DocumentSamples(file, table_of(folder, "0\n1\n"), small), base::UserError);
}

}  // namespace kintsugi::data::number_samples_test
