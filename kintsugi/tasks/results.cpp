#include "kintsugi/tasks/results.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kintsugi/base/error.h"
#include "kintsugi/base/json_writer.h"

namespace kintsugi::tasks {
namespace {

using evaluate::Score;

template <typename F>
size_t argmax(size_t count, const F& value) {
  size_t best = 0;
  for (size_t i = 1; i < count; ++i)
    if (value(i) > value(best)) best = i;
  return best;
}

struct Mean {
  double value = 0;
  std::optional<double> standard_error = {};
};

Mean mean_of(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  Mean mean;
  for (const double v : values) mean.value += v / n;
  if (values.size() < 2) return mean;
  double squares = 0;
  for (const double v : values) squares += (v - mean.value) * (v - mean.value);
  mean.standard_error = std::sqrt(squares / (n - 1)) / std::sqrt(n);
  return mean;
}

double value_of(Metric metric, const Task& task, const Document& document, const DocumentResult& result) {
  switch (metric) {
    case Metric::accuracy:
      if (task.kind == Kind::continuation) return result.scores[0].greedy ? 1 : 0;
      return result.choice == document.gold ? 1 : 0;
    case Metric::normalized_accuracy:
      return result.normalized_choice == document.gold ? 1 : 0;
    case Metric::token_accuracy:
      return result.token_choice == document.gold ? 1 : 0;
    case Metric::centered_accuracy: {
      const double chance = task.chance.value_or(0);
      return (value_of(task.metrics[0], task, document, result) - chance) / (1 - chance);
    }
    case Metric::perplexity:
    case Metric::word_perplexity:
    case Metric::byte_perplexity:
    case Metric::bits_per_byte:
      return result.scores[0].log_likelihood;
  }
  throw base::InternalError("tasks", "an unknown metric");
}

// The sum of `values` divided by the sum of `weights`, and the standard error of a ratio to first order (Cochran 1977,
// "Sampling techniques", section 2.11).
Mean ratio_of(std::span<const double> values, std::span<const double> weights) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, weight = 0, squares = 0;
  for (const double v : values) sum += v;
  for (const double w : weights) weight += w;
  Mean ratio = {.value = sum / weight};
  if (values.size() < 2) return ratio;
  for (size_t i = 0; i < values.size(); ++i) squares += std::pow(values[i] - ratio.value * weights[i], 2);
  ratio.standard_error = std::sqrt(squares / (n * (n - 1))) / (weight / n);
  return ratio;
}

// Of texts, by their words or bytes.
MetricValue value_of_texts(Metric metric, std::span<const Document> documents, std::span<const double> values) {
  std::vector<double> weights;
  for (const Document& d : documents)
    weights.push_back(static_cast<double>(std::max<int64_t>(1, metric == Metric::word_perplexity ? d.words : d.bytes)));
  const Mean ratio = ratio_of(values, weights);
  const bool bits = metric == Metric::bits_per_byte;
  const double value = bits ? -ratio.value / std::numbers::ln2 : std::exp(-ratio.value),
               slope = bits ? 1 / std::numbers::ln2 : value;
  MetricValue found = {.metric = metric, .value = value};
  if (ratio.standard_error) found.standard_error = *ratio.standard_error * slope;
  return found;
}

MetricValue value_over(Metric metric, const Task& task, std::span<const Document> documents,
                       std::span<const DocumentResult> results) {
  std::vector<double> values;
  for (size_t i = 0; i < documents.size(); ++i) values.push_back(value_of(metric, task, documents[i], results[i]));
  if (task.kind == Kind::text) return value_of_texts(metric, documents, values);
  Mean mean = mean_of(values);
  if (metric == Metric::perplexity) {
    mean.value = std::exp(-mean.value);
    if (mean.standard_error) *mean.standard_error *= mean.value;
  }
  return {.metric = metric, .value = mean.value, .standard_error = mean.standard_error};
}

}  // namespace

TaskResult evaluate_scores(const Task& task, std::span<const Document> documents, std::span<const Score> scores) {
  TaskResult result;
  for (const Document& document : documents) {
    const size_t count = document.requests.size();
    base::require(scores.size() >= count, "tasks", "{} scores for {} requests", scores.size(), count);
    DocumentResult one;
    one.scores.assign(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(count));
    scores = scores.subspan(count);
    one.choice = argmax(count, [&](size_t i) { return one.scores[i].log_likelihood; });
    one.normalized_choice = argmax(count, [&](size_t i) {
      return one.scores[i].log_likelihood / static_cast<double>(document.requests[i].characters);
    });
    one.token_choice = argmax(count, [&](size_t i) {
      return one.scores[i].log_likelihood / static_cast<double>(std::max<int64_t>(1, one.scores[i].count));
    });
    result.documents.push_back(std::move(one));
  }
  for (const Metric metric : task.metrics)
    result.metrics.push_back(value_over(metric, task, documents, result.documents));
  return result;
}

std::optional<MetricValue> mean_of_group(std::span<const TaskResult> results) {
  MetricValue mean = {.metric = Metric::centered_accuracy};
  double squares = 0;
  for (const TaskResult& result : results) {
    const auto centered = std::ranges::find(result.metrics, Metric::centered_accuracy, &MetricValue::metric);
    if (centered == result.metrics.end()) return std::nullopt;
    mean.value += centered->value / static_cast<double>(results.size());
    squares += std::pow(centered->standard_error.value_or(NAN), 2);
  }
  if (results.empty()) return std::nullopt;
  if (std::isfinite(squares)) mean.standard_error = std::sqrt(squares) / static_cast<double>(results.size());
  return mean;
}

std::string describe_documents(std::span<const Document> documents, const TaskResult& result, std::string_view task) {
  std::string text;
  for (size_t i = 0; i < documents.size(); ++i) {
    const DocumentResult& one = result.documents[i];
    base::JsonWriter out;
    const auto each = [&](std::string_view key, const auto& value) {
      out.key(key).list([&] {
        for (const Score& s : one.scores) out.value(value(s));
      });
    };
    out.object([&] {
      if (!task.empty()) out.key("task").value(task);
      out.key("document").value(i);
      if (!documents[i].id.empty()) out.key("id").value(documents[i].id);
      out.key("label").value(documents[i].gold);
      out.key("choice").value(one.choice).key("normalized_choice").value(one.normalized_choice);
      each("log_likelihoods", [](const Score& s) { return s.log_likelihood; });
      each("tokens", [](const Score& s) { return s.count; });
      each("greedy", [](const Score& s) { return s.greedy; });
    });
    text += out.text() + "\n";
  }
  return text;
}

}  // namespace kintsugi::tasks
