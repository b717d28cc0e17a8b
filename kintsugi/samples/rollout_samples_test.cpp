#include "kintsugi/samples/rollout_samples.h"

#include <gtest/gtest.h>

#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/data/test_folder.h"
#include "kintsugi/text/bytes_tokenizer.h"

namespace kintsugi::samples::rollout_samples_test {
namespace {

std::shared_ptr<const data::Prompts> prompts_of(const data::TestFolder& folder, const std::string& lines) {
  folder.write("a.jsonl", lines);
  return std::make_shared<const data::Prompts>(folder / "a.jsonl", *text::make_bytes_tokenizer(),
                                               text::chat_template("none"));
}

}  // namespace

TEST(RolloutSamples, LabelTheAnswerWithItsAdvantage) {
  const data::TestFolder folder;
  RolloutSamples samples(prompts_of(folder, "{\"prompt\": \"1+1=\", \"answer\": 2}\n"), {.sequence = 8, .length = 3});
  samples.set_rollouts({{.ids = {10, 11, 12, 13}, .prompt = 2, .log_probabilities = {-1, -2}, .advantage = 0.5},
                        {.ids = {10, 11, 14}, .prompt = 2, .log_probabilities = {-3}, .advantage = -0.5}});
  BatchMemory memory(3, samples.parts());
  samples.fill(4, memory.view());  // the third step of two
  const auto row = [](auto part, size_t n) { return std::vector(part.begin() + 8 * n, part.begin() + 8 * (n + 1)); };
  EXPECT_EQ(row(memory.get<int32_t>("tokens"), 0), (std::vector<int32_t>{10, 11, 12, -1, -1, -1, -1, -1}));
  EXPECT_EQ(row(memory.get<int32_t>("labels"), 0), (std::vector<int32_t>{-1, 12, 13, -1, -1, -1, -1, -1}));
  EXPECT_EQ(row(memory.get<float>("token_weights"), 0), (std::vector<float>{0, 0.5, 0.5, 0, 0, 0, 0, 0}));
  EXPECT_EQ(row(memory.get<float>("sampled"), 0), (std::vector<float>{0, -1, -2, 0, 0, 0, 0, 0}));
  EXPECT_EQ(row(memory.get<int32_t>("labels"), 1), (std::vector<int32_t>{-1, 14, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(row(memory.get<int32_t>("tokens"), 2), row(memory.get<int32_t>("tokens"), 0));
}

TEST(RolloutSamples, EachPromptOnceInAnEpoch) {
  const data::TestFolder folder;
  const RolloutSamples samples(
      prompts_of(folder,
                 "{\"prompt\": \"a\", \"answer\": \"1\"}\n{\"question\": \"b\", \"solution\": \"2\"}\n"
                 "{\"prompt\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\": \"c\"}], "
                 "\"answer\": 3}\n"),
      {.sequence = 8, .length = 3, .order = {.shuffled = true, .seed = 1}});
  std::set<std::string> seen;
  for (uint64_t n = 3; n < 6; ++n) seen.insert(samples.prompt(n).text + samples.prompt(n).answer);
  EXPECT_EQ(seen, (std::set<std::string>{"a1", "b2", "c3"}));
}

TEST(RolloutSamples, RefuseOrDropLongPrompts) {
  const data::TestFolder folder;
  const auto prompts = prompts_of(folder,
                                  "{\"prompt\": \"short\", \"answer\": \"1\"}\n{\"prompt\": \"quite long\", "
                                  "\"answer\": \"1\"}\n");
  try {
    const RolloutSamples samples(prompts, {.sequence = 8, .length = 3});
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "[data] \"" + (folder / "a.jsonl").string() +
            "\": 1 of 2 prompts leave no room for 3 tokens of an answer (grpo.length) within train.sequence 8; the "
            "longest, in line 2, has 10 tokens: raise train.sequence, or set data.long_conversations to \"drop\"");
  }
  const RolloutSamples rest(prompts, {.sequence = 8, .length = 3, .too_long = TooLong::drop});
  EXPECT_EQ(rest.num_prompts(), 1u);
  EXPECT_EQ(rest.dropped(), 1u);
}

}  // namespace kintsugi::samples::rollout_samples_test
