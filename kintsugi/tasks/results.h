// Computes the metrics of a task from the scores of requests.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/evaluate/scorer.h"
#include "kintsugi/tasks/documents.h"

namespace kintsugi::tasks {

struct DocumentResult {
  std::vector<evaluate::Score> scores;  // of its requests
  size_t choice = 0;                    // the most likely; the first in a tie
  size_t normalized_choice = 0;         // the most likely by log-likelihood per character
  size_t token_choice = 0;              // the most likely by log-likelihood per scored token
};

struct MetricValue {
  Metric metric = Metric::accuracy;
  double value = 0;
  // The sample standard deviation divided by the square root of the count; for a perplexity, to first order. Nothing
  // for a single document.
  std::optional<double> standard_error = {};
};

struct TaskResult {
  std::vector<DocumentResult> documents;
  std::vector<MetricValue> metrics;
};

// `scores`: one for each request of each document, in order.
TaskResult evaluate_scores(const Task& task, std::span<const Document> documents,
                           std::span<const evaluate::Score> scores);

// The mean of the centered accuracies of a group's tasks; nothing if one has none.
std::optional<MetricValue> mean_of_group(std::span<const TaskResult> results);

// JSON lines, one per document: the task of a group ("" without), its id, the log-likelihood of each request, and the
// choice.
std::string describe_documents(std::span<const Document> documents, const TaskResult& result,
                               std::string_view task = "");

}  // namespace kintsugi::tasks
