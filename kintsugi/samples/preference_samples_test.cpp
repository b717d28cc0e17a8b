#include "kintsugi/samples/preference_samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/data/test_folder.h"
#include "kintsugi/text/bytes_tokenizer.h"

namespace kintsugi::samples::preference_samples_test {
namespace {

// Pairs with the prompt "pq": answers "c..." and "r..." of these lengths, without a template.
std::shared_ptr<const data::Preferences> pairs_of(const data::TestFolder& folder,
                                                  const std::vector<std::pair<size_t, size_t>>& lengths) {
  std::string file;
  for (const auto& [chosen, rejected] : lengths)
    file += "{\"prompt\": \"pq\", \"chosen\": \"" + std::string(chosen, 'c') + "\", \"rejected\": \"" +
            std::string(rejected, 'r') + "\"}\n";
  folder.write("a.jsonl", file);
  return std::make_shared<const data::Preferences>(folder / "a.jsonl", *text::make_bytes_tokenizer(),
                                                   text::chat_template("mistral-v3"));
}

constexpr int64_t kAround = std::string_view("[INST] pq[/INST] </s>").size();

}  // namespace

TEST(PreferenceSamples, HoldBothAnswersWithOppositeWeights) {
  const data::TestFolder folder;
  const auto pairs = pairs_of(folder, {{3, 5}, {1, 1}});
  constexpr int64_t kSequence = 2 * kAround + 10;
  PreferenceSamples samples(pairs, {.sequence = kSequence});
  samples.set_reference(std::vector<double>{0.25, -2});
  ASSERT_EQ(samples.num_samples(), 2u);
  BatchMemory memory(3, samples.parts());
  samples.fill(0, memory.view());
  for (size_t row = 0; row < 2; ++row) {
    const auto of = [&](auto part) { return part.subspan(row * kSequence, kSequence); };
    const auto tokens = of(memory.get<int32_t>("tokens")), labels = of(memory.get<int32_t>("labels")),
               starts = of(memory.get<int32_t>("starts"));
    const auto weights = of(memory.get<float>("token_weights"));
    size_t at = 0;
    for (const auto& [chat, sign] :
         {std::pair{&pairs->pairs()[row].chosen, 1.0f}, std::pair{&pairs->pairs()[row].rejected, -1.0f}}) {
      const size_t begin = at;
      for (size_t i = 0; i + 1 < chat->ids.size(); ++i, ++at) {
        EXPECT_EQ(tokens[at], chat->ids[i]);
        EXPECT_EQ(labels[at], chat->answers[i + 1] ? chat->ids[i + 1] : kIgnored);
        EXPECT_EQ(weights[at], chat->answers[i + 1] ? sign : 0.0f);
        EXPECT_EQ(starts[at], static_cast<int32_t>(begin));
      }
    }
    for (const size_t begin = at; at < kSequence; ++at) {
      EXPECT_EQ(tokens[at], -1);
      EXPECT_EQ(labels[at], kIgnored);
      EXPECT_EQ(weights[at], 0.0f);
      EXPECT_EQ(starts[at], static_cast<int32_t>(begin));
    }
  }
  EXPECT_EQ(memory.get<double>("reference")[0], 0.25);
  EXPECT_EQ(memory.get<double>("reference")[1], -2);
  EXPECT_TRUE(std::isnan(memory.get<double>("reference")[2]));  // past the last pair
}

TEST(PreferenceSamples, EachPairOnceInAnEpochWithItsReference) {
  const data::TestFolder folder;
  PreferenceSamples samples(pairs_of(folder, {{1, 1}, {2, 1}, {3, 1}, {4, 1}}),
                            {.sequence = 2 * kAround + 10, .order = {.shuffled = true, .seed = 3}});
  samples.set_reference(std::vector<double>{1, 2, 3, 4});
  BatchMemory memory(4, samples.parts());
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    samples.fill(4 * epoch, memory.view());
    std::set<double> seen;
    for (size_t row = 0; row < 4; ++row) {
      const double reference = memory.get<double>("reference")[row];
      double chosen = 0;  // as many tokens more than the closing </s> as the reference says
      for (const float w : memory.get<float>("token_weights").subspan(row * (2 * kAround + 10), 2 * kAround + 10))
        chosen += w > 0 ? 1 : 0;
      EXPECT_EQ(chosen, reference + 5);
      seen.insert(reference);
    }
    EXPECT_EQ(seen.size(), 4u);
  }
  samples.fill_in_order(0, memory.view());
  for (size_t row = 0; row < 4; ++row) EXPECT_EQ(memory.get<double>("reference")[row], static_cast<double>(row + 1));
}

TEST(PreferenceSamples, RefuseOrDropLongPairs) {
  const data::TestFolder folder;
  const auto pairs = pairs_of(folder, {{1, 1}, {40, 2}, {2, 2}});
  try {
    const PreferenceSamples samples(pairs, {.sequence = 2 * kAround + 4});
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_NE(std::string(error.what()).find("1 of 3 pairs are longer than train.sequence 46"), std::string::npos)
        << error.what();
  }
  const PreferenceSamples rest(pairs, {.sequence = 2 * kAround + 4, .too_long = TooLong::drop});
  EXPECT_EQ(rest.num_samples(), 2u);
  EXPECT_EQ(rest.dropped(), 1u);
  EXPECT_THROW(PreferenceSamples(pairs, {.sequence = 10, .too_long = TooLong::drop}), base::UserError);
}

}  // namespace kintsugi::samples::preference_samples_test
