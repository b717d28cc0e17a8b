#include "kintsugi/evaluate/score_texts.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "kintsugi/comm/agree.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/evaluate/not_finite.h"
#include "kintsugi/evaluate/perplexity.h"
#include "kintsugi/evaluate/score_shared.h"

namespace kintsugi::evaluate {
namespace {

int64_t rounded_up(int64_t length, int64_t unit, int64_t context) {
  return std::min((length + unit - 1) / unit * unit, context);
}

// Whether reading only what a text does not share with the previous one pays. Rows of slots are slower than batches.
bool reads_much_twice(std::span<const ScoredText> texts) {
  int64_t tokens = 0;
  for (const ScoredText& text : texts) tokens += std::ssize(text.ids) - 1;
  return 3 * tokens_read(texts) < 2 * tokens;
}

}  // namespace

std::vector<int64_t> choose_lengths(std::span<const int64_t> inputs, int64_t unit, int64_t context) {
  std::map<int64_t, int64_t> counts;  // texts by length
  for (const int64_t length : inputs) ++counts[rounded_up(length, unit, context)];
  const std::vector<std::pair<int64_t, int64_t>> lengths(counts.begin(), counts.end());
  int64_t tokens = 0;
  for (const auto& [length, count] : lengths) tokens += length * count;
  const int64_t price = tokens / 32 + 1;  // of a program
  // least[i]: minimum for the first i lengths, the last of which has a program.
  std::vector<int64_t> least(lengths.size() + 1, 0);
  std::vector<size_t> from(lengths.size() + 1, 0);
  for (size_t i = 1; i <= lengths.size(); ++i) {
    least[i] = INT64_MAX;
    int64_t texts = 0;
    for (size_t j = i; j-- > 0;) {
      texts += lengths[j].second;
      const int64_t cost = least[j] + texts * lengths[i - 1].first + price;
      if (cost < least[i]) least[i] = cost, from[i] = j;
    }
  }
  std::vector<int64_t> chosen;
  for (size_t i = lengths.size(); i > 0; i = from[i]) chosen.push_back(lengths[i - 1].first);
  std::ranges::reverse(chosen);
  return chosen;
}

std::vector<Score> score_texts(CheckpointModel& model, std::span<const ScoredText> texts,
                               const ScoringOptions& options) {
  constexpr int64_t kUnit = 16;
  const config::Settings& s = model.settings();
  if (config::data_ranks(s.parallel) == 1 && keeps_samples_whole(plan::plan_from(s.parallel)) &&
      reads_much_twice(texts))
    return score_shared(model, texts, options);
  std::vector<int64_t> inputs;
  for (const ScoredText& text : texts) inputs.push_back(std::ssize(text.ids) - 1);
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return inputs[i]; });

  std::vector<Score> scores(texts.size());
  size_t done = 0;
  for (const int64_t length : choose_lengths(inputs, kUnit * s.parallel.context, s.model.context)) {
    size_t end = done;
    while (end < order.size() && inputs[order[end]] <= length) ++end;
    const int64_t batch = even_batch(options.batch, static_cast<int64_t>(end - done), config::data_ranks(s.parallel));
    models::Graphs graphs;
    comm::together(model.all(), [&] { graphs = models::build_scoring(s, batch, length); });
    const auto executor = model.load(graphs);
    Scorer scorer(*executor, model.all());
    while (done < end) {
      options.progress(static_cast<int64_t>(done));
      const size_t count = std::min(static_cast<size_t>(batch), end - done);
      std::vector<ScoredText> some;
      for (size_t i = done; i < done + count; ++i) some.push_back(texts[order[i]]);
      const std::vector<Score> found = scorer.score(some);
      for (size_t i = 0; i < count; ++i) {
        require_finite<double>("evaluate", "log-likelihoods", {&found[i].log_likelihood, 1}, *executor, &model.all());
        scores[order[done + i]] = found[i];
      }
      done += count;
    }
  }
  return scores;
}

}  // namespace kintsugi::evaluate
