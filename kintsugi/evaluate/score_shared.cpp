#include "kintsugi/evaluate/score_shared.h"

#include <algorithm>
#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/evaluate/cache_size.h"
#include "kintsugi/evaluate/slots.h"

namespace kintsugi::evaluate {
namespace {

// Tokens of a text that need not be read after the previous one: those before its first score.
size_t shared_with(const ScoredText& previous, const ScoredText& text) {
  const auto same = std::ranges::mismatch(previous.ids.first(previous.ids.size() - 1), text.ids).in2 - text.ids.begin();
  return std::min(static_cast<size_t>(same), text.ids.size() - 1 - static_cast<size_t>(text.scored));
}

// Texts in the order of their chains, each chain in one slot.
class Chains {
 public:
  Chains(std::span<const ScoredText> texts, size_t slots) : sizes_(chains_of(texts)), slots_(slots) {}

  // The next text of a slot; nothing if there is none.
  std::optional<size_t> next(size_t slot) {
    Range& range = slots_[slot];
    if (range.next == range.end && begun_ < sizes_.size()) {
      range = {.next = before_, .end = before_ + sizes_[begun_]};
      before_ += sizes_[begun_++];
    }
    return range.next < range.end ? std::optional(range.next++) : std::nullopt;
  }

 private:
  struct Range {
    size_t next = 0, end = 0;
  };
  std::vector<size_t> sizes_;
  std::vector<Range> slots_;
  size_t begun_ = 0, before_ = 0;  // chains, and their texts
};

}  // namespace

std::vector<size_t> chains_of(std::span<const ScoredText> texts) {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < texts.size(); ++i) {
    const bool alike =
        i > 0 && shared_with(texts[i - 1], texts[i]) + static_cast<size_t>(texts[i].scored) + 1 == texts[i].ids.size();
    alike ? void(++sizes.back()) : sizes.push_back(1);
  }
  return sizes;
}

int64_t tokens_read(std::span<const ScoredText> texts) {
  int64_t tokens = 0;
  for (size_t i = 0; i < texts.size(); ++i)
    tokens += std::ssize(texts[i].ids) - 1 - static_cast<int64_t>(i > 0 ? shared_with(texts[i - 1], texts[i]) : 0);
  return tokens;
}

std::vector<Score> score_shared(CheckpointModel& model, std::span<const ScoredText> texts,
                                const ScoringOptions& options) {
  constexpr int64_t kUnit = 16, kRows = 128;
  size_t longest = 0;
  for (const ScoredText& text : texts) longest = std::max(longest, text.ids.size() - 1);
  const config::Settings& s = model.settings();
  const int64_t positions = std::min((static_cast<int64_t>(longest) + kUnit - 1) / kUnit * kUnit, s.model.context);
  models::Graphs graphs;
  comm::together(model.all(), [&] {
    const int64_t slots = texts_that_fit(s, positions, std::max<int64_t>(1, options.batch));
    graphs = models::build_serving(s, slots, std::max(kRows, slots), positions);
  });
  const auto executor = model.load(graphs);
  Slots slots(*executor, &model.all());
  Chains chains(texts, static_cast<size_t>(slots.size()));
  std::vector<size_t> text_of(static_cast<size_t>(slots.size()));
  std::vector<Score> scores(texts.size());
  int64_t done = 0;
  while (true) {
    for (size_t slot = 0; slot < text_of.size(); ++slot) {
      if (slots.active(static_cast<int64_t>(slot))) continue;
      const std::optional<size_t> next = chains.next(slot);
      if (!next) continue;
      const ScoredText& text = texts[*next];
      text_of[slot] = *next;
      slots.begin(static_cast<int64_t>(slot), {.prompt = {text.ids.begin(), text.ids.end()},
                                               .top = 1,
                                               .score_prompt = true,
                                               .score_from = text.ids.size() - static_cast<size_t>(text.scored),
                                               .draws = false});
    }
    if (slots.num_active() == 0) return scores;
    for (const Slots::Found& found : slots.step()) {
      if (found.token.id == kNotFinite) slots.fail_not_finite(found.slot);
      const size_t text = text_of[static_cast<size_t>(found.slot)];
      const double p = *found.token.log_probability;
      Score& score = scores[text];
      score.log_likelihood += p;
      score.greedy = score.greedy && p >= found.token.top[0].log_probability;
      if (++score.count < texts[text].scored) continue;
      slots.end(found.slot);
      options.progress(++done);
    }
  }
}

}  // namespace kintsugi::evaluate
