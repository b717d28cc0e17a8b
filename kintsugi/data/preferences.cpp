#include "kintsugi/data/preferences.h"

#include <algorithm>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"

namespace kintsugi::data {
namespace {

using base::Json;
using text::Role;

std::vector<Turn> turns_of_prompt(const Json& prompt) {
  if (prompt.is_list()) return turns_of_list(prompt);
  return {{Role::user, std::string(prompt.text())}};
}

// The conversation with an answer: a text or messages after the prompt, or a whole conversation.
std::vector<Turn> with_answer(std::vector<Turn> prompt, const Json& answer) {
  if (!answer.is_list()) {
    prompt.push_back({Role::assistant, std::string(answer.text())});
    return prompt;
  }
  std::vector<Turn> turns = turns_of_list(answer);
  if (!turns.empty() && turns.front().role != Role::assistant) return turns;
  prompt.insert(prompt.end(), turns.begin(), turns.end());
  return prompt;
}

}  // namespace

Preferences::Preferences(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                         const text::ChatTemplate& chat)
    : path_(path) {
  fingerprint_ = for_each_line(path, chat.name, [&](const Json& line, const LinePlace& place) {
    const auto prompt = line.find("prompt"), chosen = line.find("chosen"), rejected = line.find("rejected");
    if (!chosen || !rejected || (!prompt && !chosen->is_list()))
      line.fail("a pair has \"prompt\", \"chosen\" and \"rejected\"");
    const std::vector<Turn> before = prompt ? turns_of_prompt(*prompt) : std::vector<Turn>();
    const std::vector<Turn> good = with_answer(before, *chosen), bad = with_answer(before, *rejected);
    if (good.empty() || bad.empty()) place.fail("no answer: the last turn must be the assistant's");
    const auto shortest = std::min(good.size(), bad.size()) - 1;  // the last turn is an answer
    const auto common = static_cast<size_t>(
        std::mismatch(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(shortest), bad.begin()).first -
        good.begin());
    pairs_.push_back({.chosen = chat_ids(tokenizer, chat, good, common, place),
                      .rejected = chat_ids(tokenizer, chat, bad, common, place),
                      .line = place.number});
    const Pair& pair = pairs_.back();
    largest_ = std::max<int64_t>({largest_, pair.chosen.largest(), pair.rejected.largest()});
  });
  if (pairs_.empty()) throw base::UserError("data", "{} holds no pairs", base::in_quotes(path.string()));
}

}  // namespace kintsugi::data
