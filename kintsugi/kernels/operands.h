// Operands and outputs of operations that have several, by name and position, for every kernel set. Those of other
// kernels are in the lists of their sets.
#pragma once

#include <cstddef>
#include <string_view>

#include "kintsugi/tensor/operands.h"

namespace kintsugi::kernels {

using tensor::OperandList;

struct ContractIn {
  enum : size_t { kA, kB, kBias, kX, kAdded, kScale };
  static constexpr OperandList kNames = {
      "a", "b", tensor::optional("bias"), tensor::optional("x"), tensor::optional("added"), tensor::optional("scale")};
};
struct ContractOut {
  enum : size_t { kY, kX };
  static constexpr OperandList kNames = {"y", tensor::optional("x")};
};
// Operations that matmuls can apply as an epilogue, by the attribute "epilogue".
inline constexpr std::string_view kActivations[] = {"gelu",      "gelu_grad", "silu",       "silu_grad", "relu",
                                                    "relu_grad", "relu2",     "relu2_grad", "tanh",      "tanh_grad"};

struct NormIn {  // layer norm; RMS norm has only the first two
  enum : size_t { kX, kGamma, kBeta };
  static constexpr OperandList kNames = {"x", "gamma", tensor::optional("beta")};
};
struct NormGradIn {
  enum : size_t { kX, kGamma, kDy };
  static constexpr OperandList kNames = {"x", "gamma", "dy"};
};
// sums: of dx as stored, over the dims that gamma lacks.
struct NormGradOut {  // layer norm; RMS norm has only the first two
  enum : size_t { kDx, kDgamma, kDbeta, kSums };
  static constexpr OperandList kNames = {"dx", "dgamma", tensor::optional("dbeta"), tensor::optional("sums")};
};

// Also of `clamped_gated`. counts: of operands with slots, of which those in use are computed.
struct GatedIn {
  enum : size_t { kGate, kUp, kCounts };
  static constexpr OperandList kNames = {"gate", "up", tensor::optional("counts")};
};
struct GatedGradIn {
  enum : size_t { kGate, kUp, kDy, kCounts };
  static constexpr OperandList kNames = {"gate", "up", "dy", tensor::optional("counts")};
};

// The gradient has the same first six operands.
struct AttentionIn {
  enum : size_t { kQ, kK, kV, kStarts, kKeyStarts, kSinks };
  static constexpr OperandList kNames = {
      "q", "k", "v", tensor::optional("starts"), tensor::optional("key_starts"), tensor::optional("sinks")};
};
struct AttentionOut {
  enum : size_t { kO, kLse };
  static constexpr OperandList kNames = {"o", "lse"};
};
struct AttentionGradIn {
  enum : size_t { kQ, kK, kV, kStarts, kKeyStarts, kSinks, kO, kLse, kDo };
  static constexpr OperandList kNames = {
      "q", "k",   "v", tensor::optional("starts"), tensor::optional("key_starts"), tensor::optional("sinks"),
      "o", "lse", "do"};
};
struct AttentionGradOut {
  enum : size_t { kDq, kDk, kDv, kDsinks, kDqkv };
  static constexpr OperandList kNames = {tensor::optional("dq"), tensor::optional("dk"), tensor::optional("dv"),
                                         tensor::optional("dsinks"), tensor::optional("dqkv")};
};
struct AttentionAtIn {
  enum : size_t { kQ, kK, kV, kText, kAt, kSinks };
  static constexpr OperandList kNames = {"q", "k", "v", "text", "at", tensor::optional("sinks")};
};
struct CacheWriteAtIn {
  enum : size_t { kCache, kX, kText, kAt };
  static constexpr OperandList kNames = {"cache", "x", "text", "at"};
};
struct AttentionJoinIn {
  enum : size_t { kOA, kLseA, kOB, kLseB };
  static constexpr OperandList kNames = {"o_a", "lse_a", "o_b", "lse_b"};
};

// All three head kernels have the same first four operands.
struct HeadIn {
  enum : size_t { kX, kTable, kLabels, kBias };
  static constexpr OperandList kNames = {"x", "table", "labels", tensor::optional("bias")};
};
struct HeadOut {
  enum : size_t { kLse, kTarget, kLogits, kTop };
  static constexpr OperandList kNames = {"lse", "target", tensor::optional("logits"), tensor::optional("top")};
};
struct HeadGradIn {
  enum : size_t { kX, kTable, kLabels, kBias, kLse, kDlse, kDtarget, kLogits };
  static constexpr OperandList kNames = {"x",   "table", "labels",  tensor::optional("bias"),
                                         "lse", "dlse",  "dtarget", tensor::optional("logits")};
};
struct HeadGradOut {
  enum : size_t { kDx, kDtable, kDbias };
  static constexpr OperandList kNames = {"dx", "dtable", tensor::optional("dbias")};
};
struct HeadWithGradIn {
  enum : size_t { kX, kTable, kLabels, kBias, kDlse, kDtarget };
  static constexpr OperandList kNames = {"x", "table", "labels", tensor::optional("bias"), "dlse", "dtarget"};
};
struct HeadWithGradOut {
  enum : size_t { kLse, kTarget, kDx, kDtable, kDbias };
  static constexpr OperandList kNames = {"lse", "target", "dx", "dtable", tensor::optional("dbias")};
};
struct CrossEntropyIn {
  enum : size_t { kLse, kTarget, kLabels };
  static constexpr OperandList kNames = {"lse", "target", "labels"};
};
struct SampleScoresIn {
  enum : size_t { kLse, kTarget, kLabels, kTop };
  static constexpr OperandList kNames = {"lse", "target", "labels", "top"};
};
struct SampleScoresOut {
  enum : size_t { kLogLikelihood, kCount, kMisses };
  static constexpr OperandList kNames = {"log_likelihood", "count", "misses"};
};

struct WeightedScoresIn {
  enum : size_t { kLse, kTarget, kLabels, kWeights };
  static constexpr OperandList kNames = {"lse", "target", "labels", "weights"};
};
struct WeightedScoresGradIn {
  enum : size_t { kLabels, kWeights, kDscore };
  static constexpr OperandList kNames = {"labels", "weights", "dscore"};
};
struct PreferenceLossIn {  // the loss has only the first two
  enum : size_t { kMargin, kReference, kDloss };
  static constexpr OperandList kNames = {"margin", "reference"};
  static constexpr OperandList kGradNames = {"margin", "reference", "dloss"};
};
struct PreferenceLossOut {
  enum : size_t { kLoss, kCount, kCorrect, kReward };
  static constexpr OperandList kNames = {"loss", "count", "correct", "reward"};
};
struct PolicyLossIn {  // the loss has only the first five
  enum : size_t { kLse, kTarget, kLabels, kWeights, kSampled, kDloss };
  static constexpr OperandList kNames = {"lse", "target", "labels", "weights", "sampled"};
  static constexpr OperandList kGradNames = {"lse", "target", "labels", "weights", "sampled", "dloss"};
};
struct PolicyLossOut {
  enum : size_t { kLoss, kCount, kGap };
  static constexpr OperandList kNames = {"loss", "count", "gap"};
};

struct ClassLossIn {  // the loss has only the first three
  enum : size_t { kLogits, kLabels, kWeights, kDloss };
  static constexpr OperandList kNames = {"logits", "labels", "weights"};
  static constexpr OperandList kGradNames = {"logits", "labels", "weights", "dloss"};
};

struct ConvolutionIn {
  enum : size_t { kX, kW };
  static constexpr OperandList kNames = {"x", "w"};
};
struct ConvolutionGradInputIn {
  enum : size_t { kDy, kW };
  static constexpr OperandList kNames = {"dy", "w"};
};
struct WindowGradIn {  // gradient of a convolution's weight, and of max pooling
  enum : size_t { kX, kDy };
  static constexpr OperandList kNames = {"x", "dy"};
};
// Either the statistics of the batch, or a mean and a variance.
struct BatchNormIn {
  enum : size_t { kX, kGamma, kBeta, kStatistics, kMean, kVariance, kAdded };
  static constexpr OperandList kNames = {"x",
                                         "gamma",
                                         "beta",
                                         tensor::optional("statistics"),
                                         tensor::optional("mean"),
                                         tensor::optional("variance"),
                                         tensor::optional("added")};
};
struct BatchNormSumsIn {
  enum : size_t { kX, kStatistics, kDy };
  static constexpr OperandList kNames = {"x", "statistics", "dy"};
};
struct BatchNormSumsOut {
  enum : size_t { kDgamma, kDbeta };
  static constexpr OperandList kNames = {"dgamma", "dbeta"};
};
struct BatchNormGradIn {
  enum : size_t { kX, kGamma, kStatistics, kDgamma, kDbeta, kDy };
  static constexpr OperandList kNames = {"x", "gamma", "statistics", "dgamma", "dbeta", "dy"};
};
struct GroupNormIn {
  enum : size_t { kX, kGamma, kBeta, kStatistics };
  static constexpr OperandList kNames = {"x", "gamma", "beta", "statistics"};
};
struct GroupNormSumsIn {
  enum : size_t { kX, kGamma, kStatistics, kDy };
  static constexpr OperandList kNames = {"x", "gamma", "statistics", "dy"};
};
struct GroupNormSumsOut {
  enum : size_t { kDgamma, kDbeta, kSums };
  static constexpr OperandList kNames = {"dgamma", "dbeta", "sums"};
};
struct GroupNormGradIn {
  enum : size_t { kX, kGamma, kStatistics, kSums, kDy };
  static constexpr OperandList kNames = {"x", "gamma", "statistics", "sums", "dy"};
};
struct RunningStatisticsIn {
  enum : size_t { kMean, kVariance, kStatistics };
  static constexpr OperandList kNames = {"mean", "variance", "statistics"};
};
struct RunningMomentsIn {
  enum : size_t { kMean, kVariance, kMoments };
  static constexpr OperandList kNames = {"mean", "variance", "moments"};
};

struct UpdateScaleIn {
  enum : size_t { kCount, kLossScale, kBlocks };
  static constexpr OperandList kNames = {"count", "loss_scale", tensor::rest("blocks")};
};
struct UpdateScaleOut {
  enum : size_t { kNorm, kFactor, kFinite };
  static constexpr OperandList kNames = {"norm", "factor", "finite"};
};
struct AdamwIn {
  enum : size_t { kW, kG, kM, kV, kFactor, kFinite, kUpdates };
  static constexpr OperandList kNames = {"w", "g", "m", "v", "factor", "finite", "updates"};
};
struct AdamwOut {
  enum : size_t { kW, kM, kV, kWeight };
  static constexpr OperandList kNames = {"w", "m", "v", tensor::optional("weight")};
};
struct SgdIn {
  enum : size_t { kW, kG, kM, kFactor, kFinite };
  static constexpr OperandList kNames = {"w", "g", "m", "factor", "finite"};
};
struct SgdOut {
  enum : size_t { kW, kM, kWeight };
  static constexpr OperandList kNames = {"w", "m", tensor::optional("weight")};
};
struct LossScaleIn {
  enum : size_t { kFinite, kScale, kGood };
  static constexpr OperandList kNames = {"finite", "scale", "good"};
};

}  // namespace kintsugi::kernels
