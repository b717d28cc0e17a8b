// Operands and outputs of mixture-of-experts operations, by name and position; see operands.h.
#pragma once

#include <cstddef>

#include "kintsugi/tensor/operands.h"

namespace kintsugi::kernels {

using tensor::OperandList;

struct RouteIn {
  enum : size_t { kLogits, kBias };
  static constexpr OperandList kNames = {"logits", tensor::optional("bias")};
};
struct RouteOut {
  enum : size_t { kWeights, kExperts };
  static constexpr OperandList kNames = {"weights", "experts"};
};
struct RouteGradIn {
  enum : size_t { kLogits, kExperts, kDweights };
  static constexpr OperandList kNames = {"logits", "experts", "dweights"};
};
struct BalanceLossIn {
  enum : size_t { kLogits, kCounts, kLoad, kLabels };
  static constexpr OperandList kNames = {"logits", "counts", tensor::optional("load"), tensor::optional("labels")};
};
struct BalanceLossGradIn {
  enum : size_t { kLogits, kCounts, kDloss, kLoad, kLabels };
  static constexpr OperandList kNames = {"logits", "counts", "dloss", tensor::optional("load"),
                                         tensor::optional("labels")};
};
struct RouterZLossIn {
  enum : size_t { kLogits, kLabels };
  static constexpr OperandList kNames = {"logits", tensor::optional("labels")};
};
struct RouterZLossGradIn {
  enum : size_t { kLogits, kDloss, kLabels };
  static constexpr OperandList kNames = {"logits", "dloss", tensor::optional("labels")};
};
struct ExpertBiasIn {  // the gradient has dy instead of x and bias
  enum : size_t { kX, kBias, kCounts };
  static constexpr OperandList kNames = {"x", "bias", "counts"};
  static constexpr OperandList kGradNames = {"dy", "counts"};
};
struct BalanceBiasIn {
  enum : size_t { kBias, kLoad, kFinite };
  static constexpr OperandList kNames = {"bias", "load", "finite"};
};
struct AssignSlotsOut {
  enum : size_t { kSlots, kCounts };
  static constexpr OperandList kNames = {"slots", "counts"};
};
struct DispatchIn {
  enum : size_t { kX, kSlots, kWeights };
  static constexpr OperandList kNames = {"x", "slots", tensor::optional("weights")};
};
struct CombineIn {
  enum : size_t { kY, kSlots, kWeights };
  static constexpr OperandList kNames = {"y", "slots", tensor::optional("weights")};
};
struct WeighIn {
  enum : size_t { kY, kSlots, kX };
  static constexpr OperandList kNames = {"y", "slots", "x"};
};
struct GroupedIn {
  enum : size_t { kA, kB, kCounts, kScale, kAdded };
  static constexpr OperandList kNames = {"a", "b", "counts", tensor::optional("scale"), tensor::optional("added")};
};
struct GroupedOut {
  enum : size_t { kY };
};

}  // namespace kintsugi::kernels
