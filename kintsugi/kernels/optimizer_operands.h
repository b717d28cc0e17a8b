// Operands and outputs of optimizers' operations by name and position, in addition to operands.h.
#pragma once

#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/kernels/operands.h"

namespace kintsugi::kernels {

struct LionIn {
  enum : size_t { kW, kG, kM, kFactor, kFinite };
  static constexpr OperandList kNames = {"w", "g", "m", "factor", "finite"};
};
struct LionOut {
  enum : size_t { kW, kM, kWeight };
  static constexpr OperandList kNames = {"w", "m", tensor::optional("weight")};
};
struct AdadeltaIn {
  enum : size_t { kW, kG, kV, kD, kFactor, kFinite };
  static constexpr OperandList kNames = {"w", "g", "v", "d", "factor", "finite"};
};
struct AdadeltaOut {
  enum : size_t { kW, kV, kD, kWeight };
  static constexpr OperandList kNames = {"w", "v", "d", tensor::optional("weight")};
};
struct AdamDirectionOut {  // the operands are AdamwIn
  enum : size_t { kM, kV, kU };
  static constexpr OperandList kNames = {"m", "v", "u"};
};
struct ApplyDirectionIn {
  enum : size_t { kW, kU, kFinite, kWSquares, kUSquares };
  static constexpr OperandList kNames = {"w", "u", "finite", tensor::optional("w_squares"),
                                         tensor::optional("u_squares")};
};
struct ApplyDirectionOut {
  enum : size_t { kW, kWeight };
  static constexpr OperandList kNames = {"w", tensor::optional("weight")};
};
struct LarsIn {
  enum : size_t { kW, kG, kM, kFactor, kFinite, kWSquares, kGSquares };
  static constexpr OperandList kNames = {
      "w", "g", "m", "factor", "finite", tensor::optional("w_squares"), tensor::optional("g_squares")};
};
struct MuonMomentumIn {
  enum : size_t { kG, kM, kFactor, kFinite };
  static constexpr OperandList kNames = {"g", "m", "factor", "finite"};
};
struct FactoredMomentsIn {
  enum : size_t { kR, kC, kRowSums, kColumnSums, kFinite, kUpdates };
  static constexpr OperandList kNames = {"r", "c", "row_sums", "column_sums", "finite", "updates"};
};
struct FactoredDirectionIn {
  enum : size_t { kG, kR, kC, kRSum, kFactor, kFinite };
  static constexpr OperandList kNames = {"g", "r", "c", "r_sum", "factor", "finite"};
};
struct UnfactoredDirectionIn {
  enum : size_t { kG, kV, kFactor, kFinite, kUpdates };
  static constexpr OperandList kNames = {"g", "v", "factor", "finite", "updates"};
};

// The learning rate of the weights of a call ([train] rates).
inline double rate_of(const KernelCall& call) {
  return call.numbers.learning_rate * call.attributes.number_or("rate", 1.0);
}

// The sizes of the matrices of an operand (graph::Matrix), from the attributes "matrix_batch" and "matrix_rows".
struct MatrixSizes {
  int64_t count = 1, rows = 1, columns = 1;
};
inline MatrixSizes matrix_sizes(const tensor::Shape& shape, const tensor::Attributes& attributes) {
  MatrixSizes m;
  const int64_t batch = attributes.integer("matrix_batch"), end = batch + attributes.integer("matrix_rows");
  for (int64_t i = 0; i < static_cast<int64_t>(shape.rank()); ++i)
    (i < batch ? m.count : i < end ? m.rows : m.columns) *= shape[static_cast<size_t>(i)].size;
  return m;
}

// The factor by which the size of an orthogonalized matrix [inputs outputs] scales its update, by the attribute
// "muon_scale": "rms", so that its root mean square is that of AdamW (Liu et al. 2025, equation 4), or "shape" (Jordan
// et al. 2024).
inline double muon_scale(const MatrixSizes& m, const tensor::Attributes& attributes) {
  const double inputs = static_cast<double>(m.rows), outputs = static_cast<double>(m.columns);
  if (attributes.text("muon_scale") == "rms") return 0.2 * std::sqrt(std::max(inputs, outputs));
  return std::sqrt(std::max(1.0, outputs / inputs));
}

// Newton-Schulz coefficients and steps of Jordan et al. 2024.
inline constexpr double kNewtonSchulz[] = {3.4445, -4.7750, 2.0315};
inline constexpr int kNewtonSchulzSteps = 5;

// The factor that apply_direction applies to u besides the learning rate, from the norms over the entire weight.
// LAMB: the ratio of the norms. Adafactor (attribute "factor_clip"): the weight's root mean square, by what exceeds the
// largest root mean square of u. Without norms: 1.
inline double direction_scale(const KernelCall& call) {
  using In = ApplyDirectionIn;
  if (!call.ins[In::kWSquares].data) return 1.0;
  const double w = std::sqrt(call.ins[In::kWSquares].as<double>()[0]),
               u = std::sqrt(call.ins[In::kUSquares].as<double>()[0]);
  if (!call.attributes.has("factor_clip")) return w > 0 && u > 0 ? w / u : 1.0;
  constexpr double kLeast = 1e-3;  // epsilon 2 of algorithm 4
  const double root = std::sqrt(static_cast<double>(call.attributes.integer("elements")));
  return std::max(kLeast, w / root) / std::max(1.0, u / root / call.attributes.number("factor_clip"));
}

// lambda of LARS: trust * |w| / (|g| + decay * |w|); 1 without norms.
inline double lars_scale(const KernelCall& call, double factor) {
  using In = LarsIn;
  if (!call.ins[In::kWSquares].data) return 1.0;
  const double w = std::sqrt(call.ins[In::kWSquares].as<double>()[0]),
               g = factor * std::sqrt(call.ins[In::kGSquares].as<double>()[0]);
  const double below = g + call.attributes.number("weight_decay") * w;
  return w > 0 && below > 0 ? call.attributes.number("trust") * w / below : 1.0;
}

}  // namespace kintsugi::kernels
