#include "app/ensemble.h"

#include <algorithm>
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/models/step.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::app {
namespace {

constexpr int64_t kPrompt = 16;  // tokens per pass of a prompt

double entropy(std::span<const double> p) {
  double sum = 0;
  for (const double x : p)
    if (x > 0) sum -= x * std::log(x);
  return sum;
}

std::vector<double> probabilities(std::span<const float> logits) {
  const double most = *std::ranges::max_element(logits);
  std::vector<double> p(logits.size());
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(logits[i] - most);
  for (double& x : p) x /= sum;
  return p;
}

}  // namespace

Mixed mix(const std::vector<std::span<const float>>& logits) {
  Mixed mixed;
  std::vector<double> mean(logits[0].size(), 0.0);
  double entropies = 0;
  std::ptrdiff_t likely = -1;
  for (const std::span<const float> member : logits) {
    const std::vector<double> p = probabilities(member);
    for (size_t i = 0; i < p.size(); ++i) mean[i] += p[i] / static_cast<double>(logits.size());
    entropies += entropy(p) / static_cast<double>(logits.size());
    const std::ptrdiff_t mine = std::ranges::max_element(p) - p.begin();
    mixed.agree &= likely < 0 || likely == mine;
    likely = mine;
  }
  mixed.divergence = std::max(0.0, entropy(mean) - entropies);
  mixed.log_probabilities.reserve(mean.size());
  for (const double x : mean) mixed.log_probabilities.push_back(static_cast<float>(std::log(std::max(x, 1e-300))));
  return mixed;
}

Ensemble::Ensemble(const std::string& model, const std::vector<std::string>& with, const config::Parallel& layout,
                   comm::World& world, const std::string& dtype) {
  if (world.size() > 1)
    throw base::UserError("ensemble", "--with runs on one rank; parallel.ranks is {}", world.size());
  models_.push_back(std::make_unique<evaluate::CheckpointModel>(model, layout, world, dtype));
  for (const std::string& path : with) {
    models_.push_back(std::make_unique<evaluate::CheckpointModel>(path, layout, world, dtype));
    const evaluate::CheckpointModel &a = *models_[0], &b = *models_.back();
    if (a.settings().model.vocab != b.settings().model.vocab)
      throw base::UserError("ensemble", "\"{}\" has a vocabulary of {}, \"{}\" of {}; members of an ensemble share one",
                            a.folder().string(), a.settings().model.vocab, b.folder().string(),
                            b.settings().model.vocab);
    if (!a.tokenizer_json().empty() && !b.tokenizer_json().empty() && a.tokenizer_json() != b.tokenizer_json())
      throw base::UserError("ensemble", "\"{}\" and \"{}\" have different tokenizers; members of an ensemble share one",
                            a.folder().string(), b.folder().string());
  }
}

void Ensemble::load(int64_t positions) {
  for (const auto& model : models_) {
    if (positions > model->settings().model.context)
      throw base::UserError("ensemble", "{} tokens exceed the {} positions of \"{}\"", positions,
                            model->settings().model.context, model->folder().string());
    const int64_t prompt = std::min(kPrompt, positions);
    executors_.push_back(model->load(models::build_generation(model->settings(), 1, prompt, positions)));
    generators_.push_back(std::make_unique<evaluate::Generator>(*executors_.back()));
  }
}

Mixed Ensemble::read(std::span<const int32_t> ids) {
  std::vector<std::span<const float>> logits;
  for (const auto& generator : generators_) logits.push_back(generator->read(ids));
  return mix(logits);
}

Mixed Ensemble::feed(int32_t id) {
  std::vector<std::span<const float>> logits;
  for (const auto& generator : generators_) logits.push_back(generator->feed(id));
  return mix(logits);
}

EnsembleLoss ensemble_loss(Ensemble& ensemble, const samples::FiniteSource& source, int64_t samples,
                           const std::function<void(int64_t)>& progress) {
  EnsembleLoss loss;
  samples::BatchMemory batch(1, source.parts());
  for (int64_t s = 0; s < samples; ++s) {
    progress(s);
    source.fill(static_cast<uint64_t>(s), batch.view());
    const std::span<const int32_t> tokens = batch.get<int32_t>("tokens"), labels = batch.get<int32_t>("labels");
    for (size_t t = 0; t < tokens.size() && tokens[t] >= 0; ++t) {
      const Mixed mixed = t == 0 ? ensemble.read(tokens.first(1)) : ensemble.feed(tokens[t]);
      if (labels[t] < 0) continue;
      loss.sum -= mixed.log_probabilities[static_cast<size_t>(labels[t])];
      loss.divergence += mixed.divergence;
      loss.agree += mixed.agree ? 1 : 0;
      ++loss.count;
    }
  }
  return loss;
}

}  // namespace kintsugi::app
