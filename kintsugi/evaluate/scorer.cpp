#include "kintsugi/evaluate/scorer.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/models/step.h"

namespace kintsugi::evaluate {
namespace {

constexpr int32_t kPadding = -1;  // missing token, uncounted label

// What one stage knows of the program.
struct Shape {
  int64_t batch = 0, sequence = 0;
  int64_t outputs = 0;  // 1: it has them
};

Shape shape_here(const run::Executor& executor, const ScoringList& list) {
  Shape shape = {.batch = list.batch, .sequence = list.sequence};
  for (const program::Buffer& b : executor.program().buffers)
    if (list.batch == 0 && (b.input == "tokens" || b.input == "labels"))
      shape = {.batch = b.whole.size("batch"), .sequence = b.whole.size("seq")};
  shape.outputs = executor.has_output(list.step, models::kSampleCount) ? 1 : 0;
  return shape;
}

}  // namespace

Scorer::Scorer(run::Executor& executor, comm::Communicator& all, const ScoringList& list)
    : executor_(executor), all_(all), step_(list.step) {
  const Shape mine = shape_here(executor, list);
  std::vector<Shape> every(static_cast<size_t>(all.size()));
  all.wait(all.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  for (const Shape& shape : every) {
    batch_ = std::max(batch_, shape.batch);
    sequence_ = std::max(sequence_, shape.sequence);
  }
  const auto found = std::ranges::find(every, 1, &Shape::outputs);
  base::require(found != every.end(), "evaluate", "no rank has outputs per sample");
  from_ = static_cast<int>(found - every.begin());
}

std::vector<Score> Scorer::score(std::span<const ScoredText> texts) {
  base::require(std::ssize(texts) <= batch_, "evaluate", "{} texts for a program of {}", texts.size(), batch_);
  const auto columns = static_cast<size_t>(sequence_), batch = static_cast<size_t>(batch_);
  tokens_.assign(batch * columns, kPadding);
  labels_.assign(batch * columns, kPadding);
  for (size_t t = 0; t < texts.size(); ++t) {
    const std::span<const int32_t> ids = texts[t].ids;
    base::require(texts[t].scored < std::ssize(ids) && ids.size() <= columns + 1, "evaluate",
                  "{} of {} tokens are scored by a program of {}", texts[t].scored, ids.size(), columns);
    std::copy(ids.begin(), ids.end() - 1, tokens_.begin() + static_cast<std::ptrdiff_t>(t * columns));
    for (size_t i = ids.size() - static_cast<size_t>(texts[t].scored); i < ids.size(); ++i)
      labels_[t * columns + i - 1] = ids[i];
  }
  const std::vector<int32_t> starts(batch * columns, 0);  // each text is one document
  kernels::Numbers numbers;
  executor_.run(step_, numbers, [&](const run::Executor::Inputs& inputs) {
    if (inputs.has("tokens")) inputs.set("tokens", {tokens_, 0, sequence_}, kPadding);
    if (inputs.has("labels")) inputs.set("labels", {labels_, 0, sequence_}, kPadding);
    if (inputs.has("starts")) inputs.set("starts", {starts, 0, sequence_}, 0);
  });
  std::vector<double> values(3 * batch);  // [output batch]
  if (all_.rank() == from_) {
    size_t at = 0;
    for (const std::string_view name : {models::kSampleLogLikelihood, models::kSampleCount, models::kSampleMisses}) {
      std::ranges::copy(executor_.output(step_, name).as<double>(), values.begin() + static_cast<std::ptrdiff_t>(at));
      at += batch;
    }
  }
  all_.wait(all_.broadcast(std::as_writable_bytes(std::span(values)), from_));
  std::vector<Score> scores(texts.size());
  for (size_t t = 0; t < texts.size(); ++t)
    scores[t] = {.log_likelihood = values[t],
                 .count = static_cast<int64_t>(values[batch + t]),
                 .greedy = values[2 * batch + t] == 0};
  return scores;
}

}  // namespace kintsugi::evaluate
