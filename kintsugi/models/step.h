// The graphs of a model: a training step is two, micro-batch and update, joined by accumulators; evaluation and
// generation are others over the same weights.
#pragma once

#include <memory>
#include <optional>

#include "kintsugi/graph/graph.h"
#include "kintsugi/models/builder.h"
#include "kintsugi/models/optimizers.h"

namespace kintsugi::models {

// Names of the states that the loop reads.
constexpr std::string_view kLossSum = "step.loss";  // over counted tokens of the step, [] fp64
constexpr std::string_view kLossCount = "step.count";
constexpr std::string_view kLossParts = "loss.sum";  // its running sum, which may be partial on several ranks
constexpr std::string_view kCountParts = "loss.count";
constexpr std::string_view kGradientNorm = "update.norm";  // of the mean loss, before clipping
constexpr std::string_view kFinite = "update.finite";      // 1: the update was made, 0: it was skipped
constexpr std::string_view kUpdates = "update.count";
constexpr std::string_view kLossScale = "loss_scale";
constexpr std::string_view kLogits =
    "step.logits";  // of the last micro-batch [batch seq vocab], where they are asked for
constexpr std::string_view kSampleOutputs = "step.outputs";  // classes or numbers of each sample, likewise
// Of a further loss: its sum over the step is the state kFurtherLoss + name, [] fp64, and running sums begin with
// kFurtherParts + name + ".".
constexpr std::string_view kFurtherLoss = "step.loss.";
constexpr std::string_view kFurtherParts = "loss.further.";
// Of a model of experts: of each layer, the tokens of its busiest expert in the step over the mean; the mean over
// layers.
constexpr std::string_view kExpertBalance = "step.experts.busiest";
constexpr std::string_view kExpertTokens = "step.experts.tokens";  // of each expert, over all layers: [candidate]
constexpr std::string_view kExpertLoad =
    ".router.load";  // ends the name of a state: tokens of each expert, [candidate]
constexpr std::string_view kRouterBias = ".router.bias";
constexpr std::string_view kEvaluateSum = "evaluate.sum";
constexpr std::string_view kEvaluateCount = "evaluate.count";
// Of classes: the samples whose class has the largest logit, and one of the five largest.
constexpr std::string_view kEvaluateTop1 = "evaluate.top1";
constexpr std::string_view kEvaluateTop5 = "evaluate.top5";

struct Graphs {
  std::unique_ptr<graph::StateTable> states;  // at a stable address: the graphs point to it
  std::optional<Graph> micro;                 // forward and backward of one micro-batch
  std::optional<Graph> update;
  std::optional<Graph> evaluate;
  std::optional<Graph> sample;
  std::optional<Graph> prefill;
  std::optional<Graph> score;
  std::optional<Graph> decode;
};

// Whether a training step leaves its logits, and what it says of samples, in states, to be looked at.
enum class Logits { none, kept };

// The name of a further loss that a running sum belongs to; empty for any other state.
std::string_view further_loss_of(const graph::State& state);

// Builds the family's graph in place of the row of that name: null, as the row says.
using BuildTrunk = Trunk (*)(Builder&);

// Forward alone is for `explain`: micro without its backward part.
Graph build_forward(const config::Settings& settings, graph::StateTable& states, Logits logits = Logits::none);

// Tokens of the texts that `sample` reads: as many as [train] prompts and what continues them may have, or fewer, of
// which the last are read. train.sequence where ranks may split the tokens of a text.
int64_t sample_window(const config::Settings& settings);

// micro, update, evaluate; and with [train] sample_every `sample`: all prompts together, read whole each time, without
// caches, so that it is split as evaluation is. Its output "logits" is [batch vocab]. Needs resolved settings.
Graphs build_training(const config::Settings& settings, Logits logits = Logits::none, BuildTrunk build = nullptr);
// The same with a given optimizer, whose operation is in the table.
Graphs build_training(const config::Settings& settings, const Optimizer& optimizer, const graph::OpTable& operations,
                      Logits logits = Logits::none, BuildTrunk build = nullptr);

// evaluate alone, with `batch` samples of `sequence` tokens.
Graphs build_evaluation(const config::Settings& settings, int64_t batch, int64_t sequence);

// evaluate alone with outputs per sample instead of sums, each [batch] fp64: the sum of the log-probabilities of its
// labels, their number, and how many of them are not the most likely token. UserError for a model that does not predict
// the next token.
constexpr std::string_view kSampleLogLikelihood = "sample.log_likelihood";
constexpr std::string_view kSampleCount = "sample.count";
constexpr std::string_view kSampleMisses = "sample.misses";
Graphs build_scoring(const config::Settings& settings, int64_t batch, int64_t sequence);

// prefill (prompts of up to `prompt` tokens, padded) and decode (one token), with caches of `cache` positions. Their
// output "logits" is [batch vocab]. UserError for a model that does not predict the next token.
Graphs build_generation(const config::Settings& settings, int64_t batch, int64_t prompt, int64_t cache);

// The same for `texts` texts with caches of their own, whose rows a pass takes in any mixture: decode of `texts` rows,
// prefill of `rows`, one token each, by the inputs tokens [batch 1], text and at [batch]; their output "logits" is [row
// vocab], of the rows of the batch that the input "rows" names, at most `texts`. A third list, score, is as prefill,
// but its output is [batch seq vocab], of all rows. UserError as above.
Graphs build_serving(const config::Settings& settings, int64_t texts, int64_t rows, int64_t cache);

}  // namespace kintsugi::models
