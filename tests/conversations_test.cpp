// Conversations: packed into samples, they have the loss and the gradients of each alone.
#include <gtest/gtest.h>

#include <fstream>

#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/models/step.h"
#include "kintsugi/samples/conversation_samples.h"
#include "kintsugi/text/bytes_tokenizer.h"
#include "kintsugi/text/chat_template.h"
#include "tests/layouts.h"
#include "tests/process.h"
#include "tests/small_model.h"

namespace kintsugi::tests::conversations_test {
namespace {

struct Learnt {
  double loss = 0, count = 0;
  Numbers gradients;
};

Learnt learn(const std::string& family, const samples::ConversationSamples& samples, int64_t vocab) {
  config::Settings s = small_model(family, "fp64");
  s.model.dropout = 0;
  s.model.vocab = vocab;
  s.model.context = s.train.sequence = 64;
  s.data.reset_at_document = true;
  s.train.global_batch = s.train.micro_batch = static_cast<int64_t>(samples.num_samples());
  Machine machine(s);
  samples::BatchMemory batch(s.train.global_batch, samples.parts());
  samples.fill(0, batch.view());
  kernels::Numbers numbers = {.seed = s.train.seed};
  machine.executor.run(program::Step::train, numbers,
                       [&](const run::Executor::Inputs& inputs) { evaluate::set_inputs(inputs, batch.view(), 0); });
  return {machine.executor.number(models::kLossSum), machine.executor.number(models::kLossCount),
          machine.states(program::StateKind::gradient)};
}

}  // namespace

TEST(Conversations, PackedHaveTheLossOfEachAlone) {
  const TemporaryFolder folder;
  std::ofstream file(folder / "chats.jsonl");
  for (const char* answer : {"five", "An answer of many words.", "of ten", "abc", "a few words"})
    file << "{\"question\": \"" << answer[0] << "?\", \"answer\": \"" << answer << "\"}\n";
  file.close();
  const auto all = std::make_shared<const data::Conversations>(folder / "chats.jsonl", *text::make_bytes_tokenizer(),
                                                               text::chat_template("mistral-v3"));
  const samples::ConversationSamples packed(all, {.sequence = 64}), alone(all, {.sequence = 64, .packed = false});
  ASSERT_LT(packed.num_samples(), alone.num_samples());
  for (const std::string family : {"llama", "gemma3"}) {
    SCOPED_TRACE(family);
    const Learnt got = learn(family, packed, all->largest_id() + 1), want = learn(family, alone, all->largest_id() + 1);
    EXPECT_EQ(got.count, want.count);
    EXPECT_NEAR(got.loss, want.loss, 1e-10 * want.loss);
    const double tolerance = 1e-10 * norm(want.gradients);
    for (const auto& [name, g] : want.gradients)
      for (size_t i = 0; i < g.size(); ++i) ASSERT_NEAR(got.gradients.at(name)[i], g[i], tolerance) << name << " " << i;
  }
}

}  // namespace kintsugi::tests::conversations_test
