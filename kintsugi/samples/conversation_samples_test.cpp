#include "kintsugi/samples/conversation_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/data/test_folder.h"
#include "kintsugi/text/bytes_tokenizer.h"

namespace kintsugi::samples::conversation_samples_test {
namespace {

// data::Conversations with answers of these lengths; with the question "a" and the template mistral-v3.
std::shared_ptr<const data::Conversations> conversations(const data::TestFolder& folder,
                                                         const std::vector<size_t>& lengths) {
  std::string file;
  for (size_t i = 0; i < lengths.size(); ++i)
    file += "{\"question\": \"a\", \"answer\": \"" + std::string(lengths[i], static_cast<char>('b' + i)) + "\"}\n";
  folder.write("a.jsonl", file);
  return std::make_shared<const data::Conversations>(folder / "a.jsonl", *text::make_bytes_tokenizer(),
                                                     text::chat_template("mistral-v3"));
}

constexpr size_t kAround = std::string_view("[INST] a[/INST] </s>").size();

}  // namespace

TEST(ConversationSamples, PackWholeConversationsApart) {
  const data::TestFolder folder;
  const auto all = conversations(folder, {5, 30, 9, 4, 12});
  const ConversationSamples samples(all, {.sequence = 64});
  BatchMemory memory(static_cast<int64_t>(samples.num_samples()) + 1, samples.parts());
  samples.fill(0, memory.view());
  std::multiset<size_t> found;
  for (size_t s = 0; s <= samples.num_samples(); ++s) {
    const auto of = [&](std::span<int32_t> part) { return part.subspan(64 * s, 64); };
    const std::span<int32_t> tokens = of(memory.get<int32_t>("tokens")), labels = of(memory.get<int32_t>("labels")),
                             starts = of(memory.get<int32_t>("starts"));
    for (size_t i = 0; i < 64; ++i) {
      const auto begin = static_cast<size_t>(starts[i]);
      if (tokens[i] < 0) {  // padding, a document of its own at the end
        EXPECT_EQ(labels[i], kIgnored);
        EXPECT_TRUE(begin == i || tokens[begin] < 0);
        continue;
      }
      ASSERT_LT(s, samples.num_samples());
      // The conversation that starts there: its ids, and the next id as the label within answers.
      size_t which = all->size();
      for (size_t c = 0; c < all->size(); ++c)
        if (static_cast<size_t>(all->ids(c).size()) > i - begin + 1 && begin + all->ids(c).size() - 1 <= 64 &&
            std::equal(all->ids(c).begin(), all->ids(c).end() - 1, tokens.begin() + static_cast<std::ptrdiff_t>(begin)))
          which = c;
      ASSERT_LT(which, all->size());
      EXPECT_EQ(tokens[i], all->ids(which)[i - begin]);
      EXPECT_EQ(labels[i], all->answers(which)[i - begin + 1] ? all->ids(which)[i - begin + 1] : kIgnored);
      if (begin == i) found.insert(which);
    }
  }
  EXPECT_EQ(found, (std::multiset<size_t>{0, 1, 2, 3, 4}));
  // 24, 49, 28, 23 and 31 positions: the second, then the first and the last, and the others.
  EXPECT_EQ(samples.num_samples(), 3u);
  EXPECT_EQ(ConversationSamples(all, {.sequence = 64, .packed = false}).num_samples(), 5u);
}

TEST(ConversationSamples, AreAllOnceInAnEpochInAnOrderOfTheSeed) {
  const data::TestFolder folder;
  const auto all = conversations(folder, {1, 2, 3, 4, 5, 6, 7});
  const ConversationSamples samples(all, {.sequence = 32, .packed = false, .order = {.shuffled = true, .seed = 5}});
  std::vector<std::vector<int32_t>> epochs[2];
  for (uint64_t n = 0; n < 14; ++n) {
    BatchMemory memory(1, samples.parts());
    samples.fill(n, memory.view());
    const std::span<int32_t> tokens = memory.get<int32_t>("tokens");
    epochs[n / 7].emplace_back(tokens.begin(), tokens.end());
  }
  EXPECT_NE(epochs[0], epochs[1]);
  std::ranges::sort(epochs[0]);
  std::ranges::sort(epochs[1]);
  EXPECT_EQ(epochs[0], epochs[1]);
  EXPECT_EQ(std::set(epochs[0].begin(), epochs[0].end()).size(), 7u);
}

TEST(ConversationSamples, LongOnesAreRefusedOrDroppedOrCut) {
  const data::TestFolder folder;
  const auto all = conversations(folder, {3, 50, 3, 60});
  const std::string path = folder.text("a.jsonl");
  EXPECT_EQ(data::error_of([&] { ConversationSamples(all, {.sequence = 32}); }),
            "[data] \"" + path +
                "\": 2 of 4 conversations are longer than train.sequence 32; the longest, in line 4, "
                "has 80 tokens: raise train.sequence, or set data.long_conversations to \"drop\" or \"cut\"");
  const ConversationSamples dropped(all, {.sequence = 32, .packed = false, .too_long = TooLong::drop});
  EXPECT_EQ(dropped.num_samples(), 2u);
  EXPECT_EQ(dropped.dropped(), 2u);
  const ConversationSamples cut(all, {.sequence = 32, .packed = false, .too_long = TooLong::cut});
  EXPECT_EQ(cut.num_samples(), 4u);
  EXPECT_EQ(cut.cut(), 2u);
  BatchMemory memory(1, cut.parts());
  cut.fill(1, memory.view());
  EXPECT_EQ(memory.get<int32_t>("tokens")[31], 'c');
  EXPECT_EQ(memory.get<int32_t>("labels")[31], 'c');
  // Nothing of an answer is left.
  const ConversationSamples none(all, {.sequence = 22, .packed = false, .too_long = TooLong::cut});
  EXPECT_EQ(none.num_samples(), 4u);
  EXPECT_EQ(data::error_of([&] { ConversationSamples(all, {.sequence = 8, .too_long = TooLong::cut}); }),
            "[data] \"" + path + "\": none of 4 conversations is left within train.sequence 8; raise it");
  static_assert(kAround == 20);
}

}  // namespace kintsugi::samples::conversation_samples_test
