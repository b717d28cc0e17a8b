#include "kintsugi/train/sample_texts.h"

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/evaluate/continue_texts.h"
#include "kintsugi/models/step.h"
#include "kintsugi/text/declared_tokens.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::train {
std::string as_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = text[0] == '\0' ? 0 : base::utf8_length(text);
    result += length > 0 ? text.substr(0, length) : "\xef\xbf\xbd";
    text.remove_prefix(length > 0 ? length : 1);
  }
  return result;
}

void require_tokenizer_of_samples(const config::Settings& s, const std::string& tokenizer_json) {
  if (s.train.sample_every > 0 && tokenizer_json.empty())
    throw base::UserError(
        "train",
        "train.sample_every = {} needs a tokenizer.json next to the token files; add it, or set sample_every to 0",
        s.train.sample_every);
}

std::optional<std::vector<SampledText>> sample_texts(Rank& rank, const std::function<bool(int64_t, int64_t)>& goes_on) {
  const config::Train& t = rank.settings().train;
  const config::Settings& settings = rank.settings();
  const auto tokenizer = text::with_begin_of_texts(text::parse_tokenizer(rank.corpus.tokenizer_json, "tokenizer.json"),
                                                   config::begins_samples(settings) ? settings.data.first_token : -1);
  const std::optional<int32_t> end = tokenizer->end_of_text();
  std::vector<std::vector<int32_t>> prompts;
  for (const std::string& prompt : t.prompts) {
    std::vector<int32_t>& ids = prompts.emplace_back(tokenizer->encode(prompt));
    if (const auto begin = tokenizer->begin_of_document()) ids.insert(ids.begin(), *begin);
    if (ids.empty()) ids = end ? std::vector<int32_t>{*end} : tokenizer->encode("\n");
  }
  const auto made = evaluate::continue_texts(*rank.executor, *rank.all, prompts,
                                             {.length = t.sample_length,
                                              .window = models::sample_window(rank.settings()),
                                              .ends = end ? std::vector<int32_t>{*end} : std::vector<int32_t>(),
                                              .sample = {.vocab = tokenizer->vocab_size()}},
                                             goes_on);
  if (!made) return std::nullopt;
  std::vector<SampledText> texts;
  for (size_t i = 0; i < prompts.size(); ++i) {
    // Whether a word begins with a space depends on the preceding text.
    std::vector<int32_t> all = prompts[i];
    const std::string before = t.prompts[i].empty() ? "" : tokenizer->decode(all);
    if (t.prompts[i].empty()) all.clear();
    all.insert(all.end(), (*made)[i].ids.begin(), (*made)[i].ids.end());
    const std::string whole = tokenizer->decode(all);
    texts.push_back({t.prompts[i], as_utf8(whole.starts_with(before) ? std::string_view(whole).substr(before.size())
                                                                     : std::string_view(whole))});
  }
  return texts;
}

}  // namespace kintsugi::train
