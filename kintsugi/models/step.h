// The graphs of a model. A training step consists of two, micro-batch and update, joined by accumulators; evaluation
// and generation are others over the same weights.
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
constexpr std::string_view kLossParts = "loss.sum";  // its running sum, possibly partial across ranks
constexpr std::string_view kCountParts = "loss.count";
constexpr std::string_view kGradientNorm = "update.norm";  // of the mean loss, before clipping
constexpr std::string_view kFinite = "update.finite";      // 1: the update was made, 0: it was skipped
constexpr std::string_view kUpdates = "update.count";
constexpr std::string_view kLossScale = "loss_scale";
constexpr std::string_view kLogits = "step.logits";          // of the last micro-batch [batch seq vocab], if requested
constexpr std::string_view kSampleOutputs = "step.outputs";  // classes or numbers per sample, likewise
// Of a further loss: the state kFurtherLoss + name is its sum over the step, [] fp64; names of running sums begin with
// kFurtherParts + name + ".".
constexpr std::string_view kFurtherLoss = "step.loss.";
constexpr std::string_view kFurtherParts = "loss.further.";
// Of a further measurement, which is not differentiated: the state kMeasured + name is its sum over the step, [] fp64;
// names of running sums begin with kMeasuredParts.
constexpr std::string_view kMeasured = "step.measured.";
constexpr std::string_view kMeasuredParts = "measured.";
// For mixtures of experts: the load of a layer's busiest expert in the step relative to the mean, averaged over layers.
constexpr std::string_view kExpertBalance = "step.experts.busiest";
constexpr std::string_view kExpertTokens = "step.experts.tokens";  // per expert, over all layers: [candidate]
constexpr std::string_view kExpertLoad = ".router.load";  // suffix of a state's name: tokens per expert, [candidate]
constexpr std::string_view kRouterBias = ".router.bias";
constexpr double kNormMomentum = 0.1;  // weight of a batch in running statistics
// Suffixes of the running statistics of a batch norm and of what its groups of samples add in a step (batch_moments).
constexpr std::string_view kRunningMean = ".mean", kRunningVariance = ".variance", kGroupMoments = ".moments";
constexpr std::string_view kPreviousLoad = ".router.previous";  // the load of the previous step, [candidate] fp64
constexpr std::string_view kEvaluateSum = "evaluate.sum";
constexpr std::string_view kEvaluateCount = "evaluate.count";
// For classes: the number of samples whose class has the largest logit, or one of the five largest.
constexpr std::string_view kEvaluateTop1 = "evaluate.top1";
constexpr std::string_view kEvaluateTop5 = "evaluate.top5";
// For fields: the sum of squared differences of each channel, [measured] fp64.
constexpr std::string_view kEvaluateErrors = "evaluate.errors";

// For preferences: the list `score` outputs per pair the log-likelihood of the chosen answer minus that of the rejected
// one, [batch] fp64.
constexpr std::string_view kPairMargin = "pair.margin";
// Of a measurement in evaluation: kEvaluateMeasured + name.
constexpr std::string_view kEvaluateMeasured = "evaluate.measured.";

struct Graphs {
  std::unique_ptr<graph::StateTable> states;  // at a stable address: the graphs point to it
  std::optional<Graph> micro;                 // forward and backward of one micro-batch
  std::optional<Graph> update;
  std::optional<Graph> evaluate;
  std::optional<Graph> sample;
  std::optional<Graph> tasks;
  std::optional<Graph> prefill, prefill_quarter;
  std::optional<Graph> score;
  std::optional<Graph> decode, decode_half, decode_quarter, decode_one;
};

// Whether a training step keeps its logits and per-sample outputs in states, for inspection.
enum class Logits { none, kept };

// The name of the further loss of a running sum; empty for other states.
std::string_view further_loss_of(const graph::State& state);

// Replaces the builder in the family's row; null: use the row's.
using BuildTrunk = Trunk (*)(Builder&);

// Builds only the forward pass, for `explain`: micro without its backward part.
Graph build_forward(const config::Settings& settings, graph::StateTable& states, Logits logits = Logits::none);

// The number of tokens of each text that `sample` reads: the maximum length of [train] prompts and their continuations,
// or fewer, in which case it reads the last ones. train.sequence where ranks may split the tokens of a text.
int64_t sample_window(const config::Settings& settings);

// Builds micro, update, evaluate and, with [train] sample_every, `sample`: all prompts together, read in full each time
// without caches, so that it splits as evaluation does. Its output "logits" is [batch vocab]. With [evaluate] tasks
// also `tasks`, with the outputs of build_scoring. Requires resolved settings.
Graphs build_training(const config::Settings& settings, Logits logits = Logits::none, BuildTrunk build = nullptr);
// The same with a given optimizer, whose operation is in the table.
Graphs build_training(const config::Settings& settings, const Optimizer& optimizer, const graph::OpTable& operations,
                      Logits logits = Logits::none, BuildTrunk build = nullptr);

// Builds only evaluate, with `batch` samples of `sequence` tokens: the loss of the objective, whatever [train] method.
Graphs build_evaluation(const config::Settings& settings, int64_t batch, int64_t sequence);

// Builds only evaluate, with outputs per sample instead of sums, each [batch] fp64: the sum of the log-probabilities of
// its labels, their number, and the number that are not the most likely token. Throws UserError for a model that does
// not predict the next token.
constexpr std::string_view kSampleLogLikelihood = "sample.log_likelihood";
constexpr std::string_view kSampleCount = "sample.count";
constexpr std::string_view kSampleMisses = "sample.misses";
Graphs build_scoring(const config::Settings& settings, int64_t batch, int64_t sequence);

// Builds prefill (prompts of up to `prompt` tokens, padded) and decode (one token), with caches of `cache` positions.
// Their output "logits" is [batch vocab]. Throws UserError for a model that does not predict the next token.
Graphs build_generation(const config::Settings& settings, int64_t batch, int64_t prompt, int64_t cache);

// The rows of the lists for passes of few tokens; 0: not built, since another list has as few.
struct ServingRows {
  int64_t prefill_quarter = 0, decode_half = 0, decode_quarter = 0, decode_one = 0;
};
ServingRows serving_rows(int64_t texts, int64_t rows);

// The same for `texts` texts with their own caches, whose rows a pass takes in any mixture: decode with `texts` rows,
// prefill with `rows`, one token each, by the inputs tokens [batch 1], text and at [batch]. Their output "logits" is
// [row vocab], for the rows of the batch listed by the input "rows", at most `texts`. A third list, score, is like
// prefill, but outputs [batch seq vocab] for all rows. Further lists are decode and prefill with fewer rows
// (serving_rows). Throws UserError as above.
Graphs build_serving(const config::Settings& settings, int64_t texts, int64_t rows, int64_t cache);

}  // namespace kintsugi::models
