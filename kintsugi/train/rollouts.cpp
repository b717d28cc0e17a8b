#include "kintsugi/train/rollouts.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/data/hash.h"
#include "kintsugi/text/chat_template.h"

namespace kintsugi::train {
namespace {

samples::RolloutSamples& rollouts_of(Corpus& corpus) {
  auto* samples = dynamic_cast<samples::RolloutSamples*>(corpus.train.get());
  base::require(samples, "train", "rewards without prompts");
  return *samples;
}

// The id that ends an answer, if there is one.
std::vector<int32_t> ends_of(const text::Tokenizer& tokenizer, const std::string& chat_name) {
  const text::ChatTemplate& chat = text::chat_template(chat_name);
  const std::optional<int32_t> stop = text::stop_token(tokenizer, chat);
  if (!stop && !chat.stop.empty())
    throw base::UserError("train",
                          "data.chat_template = \"{}\": the tokenizer has no token \"{}\", so answers would not end",
                          chat.name, chat.stop);
  return stop ? std::vector<int32_t>{*stop} : std::vector<int32_t>();
}

}  // namespace

Rollouts::Rollouts(Rank& rank) : rank_(rank), samples_(rollouts_of(rank.corpus)) {
  comm::together(*rank_.all, [&] {
    tokenizer_ = text::parse_tokenizer(rank_.corpus.tokenizer_json, "tokenizer.json");
    ends_ = ends_of(*tokenizer_, rank_.settings().data.chat_template);
    if (rank_.leads()) reward_.emplace(rank_.settings().grpo);
  });
}

std::optional<std::vector<evaluate::Continued>> Rollouts::answer(std::span<const Prompt* const> prompts,
                                                                 const evaluate::SampleOptions& how,
                                                                 uint64_t first_stream,
                                                                 const std::function<bool()>& goes_on) {
  std::vector<std::vector<int32_t>> ids;
  for (const Prompt* prompt : prompts) ids.push_back(prompt->ids);
  ids.resize(static_cast<size_t>(compile::samples_of_pass(rank_.settings())), ids.back());
  auto made = evaluate::continue_texts(*rank_.executor, *rank_.all, ids,
                                       {.length = samples_.options().length,
                                        .window = samples_.options().sequence,
                                        .ends = ends_,
                                        .sample = how,
                                        .first_stream = first_stream,
                                        .scored = true},
                                       [&](int64_t, int64_t) { return goes_on(); });
  if (made) made->resize(prompts.size());
  return made;
}

std::vector<double> Rollouts::rewards(std::span<const Prompt* const> prompts,
                                      std::span<const evaluate::Continued> answers) {
  std::vector<double> rewards(prompts.size());
  const std::optional<std::string> failure = comm::failure_of(*rank_.all, [&] {
    if (!reward_) return;
    for (size_t i = 0; i < prompts.size(); ++i)
      rewards[i] = reward_->of(prompts[i]->text, prompts[i]->answer, tokenizer_->decode(answers[i].ids));
  });
  if (failure) throw RewardFailure("train", "{}", *failure);
  rank_.all->wait(rank_.all->broadcast(std::as_writable_bytes(std::span(rewards)), 0));
  return rewards;
}

RolloutUse Rollouts::make(int64_t step) {
  const auto began = std::chrono::steady_clock::now();
  const config::Settings& s = rank_.settings();
  const auto group = static_cast<size_t>(samples_.options().group), batch = static_cast<size_t>(s.train.global_batch),
             rows = static_cast<size_t>(compile::samples_of_pass(s));
  std::vector<const Prompt*> prompts;
  for (size_t i = 0; i < batch; ++i)
    prompts.push_back(&samples_.prompt(static_cast<uint64_t>(step) * (batch / group) + i / group));
  const evaluate::SampleOptions how = {.temperature = s.grpo.temperature,
                                       .seed = data::mix(s.train.seed, static_cast<uint64_t>(step)),
                                       .vocab = tokenizer_->vocab_size()};
  std::vector<evaluate::Continued> answers;
  for (size_t first = 0; first < batch; first += rows) {
    auto made = answer(std::span(prompts).subspan(first, rows), how, first, [] { return true; });
    std::ranges::move(*made, std::back_inserter(answers));
  }
  const std::vector<double> reward = rewards(prompts, answers);
  RolloutUse use;
  std::vector<samples::Rollout> rollouts;
  for (size_t first = 0; first < batch; first += group) {
    const auto of_group = std::span(reward).subspan(first, group);
    double sum = 0;
    for (const double r : of_group) sum += r;
    const double mean = sum / static_cast<double>(group);
    use.reward += sum;
    use.spread += std::ranges::count(of_group, of_group[0]) < std::ssize(of_group) ? 1 : 0;
    for (size_t i = first; i < first + group; ++i) {
      samples::Rollout& rollout = rollouts.emplace_back();
      rollout.ids = prompts[i]->ids;
      rollout.prompt = rollout.ids.size();
      rollout.ids.insert(rollout.ids.end(), answers[i].ids.begin(), answers[i].ids.end());
      if (answers[i].end) rollout.ids.push_back(*answers[i].end);
      rollout.log_probabilities = std::move(answers[i].log_probabilities);
      rollout.advantage = static_cast<float>(reward[i] - mean);
      use.length += static_cast<double>(rollout.log_probabilities.size());
    }
  }
  use.reward /= static_cast<double>(batch);
  use.spread /= static_cast<double>(batch / group);
  use.length /= static_cast<double>(batch);
  samples_.set_rollouts(std::move(rollouts));
  use.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return use;
}

std::optional<double> Rollouts::validate(int64_t most, const std::function<bool(int64_t, int64_t)>& goes_on) {
  const config::Settings& s = rank_.settings();
  const auto rows = static_cast<size_t>(compile::samples_of_pass(s));
  std::vector<const Prompt*> prompts;
  for (const auto& file : rank_.corpus.validation_prompts)
    for (const Prompt& prompt : file->list())
      if (std::ssize(prompt.ids) + s.grpo.length <= s.train.sequence + 1 && (most == 0 || std::ssize(prompts) < most))
        prompts.push_back(&prompt);
  double sum = 0;
  for (size_t first = 0; first < prompts.size(); first += rows) {
    const auto some = std::span(prompts).subspan(first, std::min(rows, prompts.size() - first));
    const auto made = answer(some, {.temperature = 0, .vocab = tokenizer_->vocab_size()}, first,
                             [&] { return goes_on(static_cast<int64_t>(first), std::ssize(prompts)); });
    if (!made) return std::nullopt;
    for (const double reward : rewards(some, *made)) sum += reward;
  }
  return prompts.empty() ? 0.0 : sum / static_cast<double>(prompts.size());
}

}  // namespace kintsugi::train
