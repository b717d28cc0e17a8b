// Elementwise updates of optimizers besides AdamW and SGD: each operand is read once and each output written once. A
// rule is the arithmetic of one operation; one thread of each block computes its scalars from device memory.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/optimizer_operands.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using kernels::AdadeltaIn;
using kernels::AdadeltaOut;
using kernels::AdamDirectionOut;
using kernels::AdamwIn;
using kernels::ApplyDirectionIn;
using kernels::ApplyDirectionOut;
using kernels::FactoredMomentsIn;
using kernels::LarsIn;
using kernels::LionIn;
using kernels::LionOut;
using kernels::MuonMomentumIn;
using kernels::SgdOut;
using kernels::UnfactoredDirectionIn;

constexpr int kEach = 4;  // adjacent elements per thread
constexpr int kMostStepScalars = 4;

// Scalars of a step in device memory; null where the operation has none.
struct StepScalars {
  const double *factor = nullptr, *finite = nullptr, *updates = nullptr;
  const double *w_squares = nullptr, *u_squares = nullptr;  // norms over the entire weight
  const Numbers* later = nullptr;
  double rate = 1;  // factor of the learning rate

  __device__ double learning_rate() const { return rate * later->learning_rate; }
};

// 1 / (1 - beta^t) for update t, by repeated squaring, since pow() takes many registers.
__device__ inline float bias_correction(double beta, const double* updates) {
  double power = 1;
  for (auto t = static_cast<int64_t>(*updates) + 1; t > 0; t /= 2, beta *= beta)
    if (t % 2 == 1) power *= beta;
  return static_cast<float>(1 / (1 - power));
}

// A rule has kIns states and kOuts outputs of fp32, and functions of its scalars `s`, computed once per block:
// update() for one element, with gradient g; skip() where the update is not finite.

struct LionRule {
  static constexpr int kIns = 2, kOuts = 2;  // w, m
  float beta1, beta2, decay;

  __device__ void scalars(const StepScalars& from, float* s) const {
    s[0] = static_cast<float>(*from.factor), s[1] = static_cast<float>(from.learning_rate());
  }
  __device__ __forceinline__ void update(const float* s, float g, const float (&in)[2], float (&out)[2]) const {
    const float gradient = g * s[0], direction = beta1 * in[1] + (1 - beta1) * gradient;
    const float sign = direction > 0 ? 1.0f : direction < 0 ? -1.0f : 0.0f;
    out[0] = in[0] - s[1] * (sign + decay * in[0]);
    out[1] = beta2 * in[1] + (1 - beta2) * gradient;
  }
  __device__ __forceinline__ void skip(const float (&in)[2], float (&out)[2]) const { out[0] = in[0], out[1] = in[1]; }
};

struct AdadeltaRule {
  static constexpr int kIns = 3, kOuts = 3;  // w, v, d
  float rho, epsilon, decay;

  __device__ void scalars(const StepScalars& from, float* s) const {
    s[0] = static_cast<float>(*from.factor), s[1] = static_cast<float>(from.learning_rate());
  }
  __device__ __forceinline__ void update(const float* s, float g, const float (&in)[3], float (&out)[3]) const {
    const float gradient = g * s[0] + decay * in[0];
    out[1] = rho * in[1] + (1 - rho) * gradient * gradient;
    const float step = sqrtf(in[2] + epsilon) / sqrtf(out[1] + epsilon) * gradient;
    out[2] = rho * in[2] + (1 - rho) * step * step;
    out[0] = in[0] - s[1] * step;
  }
  __device__ __forceinline__ void skip(const float (&in)[3], float (&out)[3]) const {
    out[0] = in[0], out[1] = in[1], out[2] = in[2];
  }
};

struct AdamDirectionRule {
  static constexpr int kIns = 3, kOuts = 3;  // w, m, v -> m, v, u
  double beta1, beta2;
  float epsilon, decay;

  __device__ void scalars(const StepScalars& from, float* s) const {
    s[0] = static_cast<float>(*from.factor);
    s[1] = bias_correction(beta1, from.updates), s[2] = bias_correction(beta2, from.updates);
  }
  __device__ __forceinline__ void update(const float* s, float g, const float (&in)[3], float (&out)[3]) const {
    const auto b1 = static_cast<float>(beta1), b2 = static_cast<float>(beta2);
    const float gradient = g * s[0];
    out[0] = b1 * in[1] + (1 - b1) * gradient;
    out[1] = b2 * in[2] + (1 - b2) * gradient * gradient;
    out[2] = out[0] * s[1] / (sqrtf(out[1] * s[2]) + epsilon) + decay * in[0];
  }
  __device__ __forceinline__ void skip(const float (&in)[3], float (&out)[3]) const {
    out[0] = in[1], out[1] = in[2], out[2] = 0;
  }
};

// As kernels::direction_scale().
struct ApplyDirectionRule {
  static constexpr int kIns = 1, kOuts = 1;  // w; the direction takes the place of the gradient
  float decay;
  double clip;  // of Adafactor; negative: the ratio of norms
  double elements;

  __device__ double scale(const StepScalars& from) const {
    if (from.w_squares == nullptr) return 1;
    const double w = sqrt(*from.w_squares), u = sqrt(*from.u_squares);
    if (clip < 0) return w > 0 && u > 0 ? w / u : 1.0;
    constexpr double kLeast = 1e-3;
    const double root = sqrt(elements), of_weight = w / root, excess = u / root / clip;
    return (of_weight > kLeast ? of_weight : kLeast) / (excess > 1 ? excess : 1.0);
  }
  __device__ void scalars(const StepScalars& from, float* s) const {
    const double rate = from.learning_rate();
    s[0] = static_cast<float>(rate * scale(from)), s[1] = static_cast<float>(rate) * decay;
  }
  __device__ __forceinline__ void update(const float* s, float u, const float (&in)[1], float (&out)[1]) const {
    out[0] = in[0] - (s[0] * u + s[1] * in[0]);
  }
  __device__ __forceinline__ void skip(const float (&in)[1], float (&out)[1]) const { out[0] = in[0]; }
};

// As kernels::lars_scale().
struct LarsRule {
  static constexpr int kIns = 2, kOuts = 2;  // w, m
  float momentum;
  double decay, trust;

  __device__ double scale(const StepScalars& from) const {
    if (from.w_squares == nullptr) return 1;
    const double w = sqrt(*from.w_squares), below = *from.factor * sqrt(*from.u_squares) + decay * w;
    return w > 0 && below > 0 ? trust * w / below : 1.0;
  }
  __device__ void scalars(const StepScalars& from, float* s) const {
    s[0] = static_cast<float>(*from.factor), s[1] = static_cast<float>(from.learning_rate() * scale(from));
  }
  __device__ __forceinline__ void update(const float* s, float g, const float (&in)[2], float (&out)[2]) const {
    out[1] = momentum * in[1] + s[1] * (g * s[0] + static_cast<float>(decay) * in[0]);
    out[0] = in[0] - out[1];
  }
  __device__ __forceinline__ void skip(const float (&in)[2], float (&out)[2]) const { out[0] = in[0], out[1] = in[1]; }
};

struct MuonMomentumRule {
  static constexpr int kIns = 1, kOuts = 2;  // m -> m, u
  float momentum;

  __device__ void scalars(const StepScalars& from, float* s) const {
    s[0] = (1 - momentum) * static_cast<float>(*from.factor);
  }
  __device__ __forceinline__ void update(const float* s, float g, const float (&in)[1], float (&out)[2]) const {
    out[0] = momentum * in[0] + s[0] * g;
    out[1] = momentum * out[0] + s[0] * g;
  }
  __device__ __forceinline__ void skip(const float (&in)[1], float (&out)[2]) const { out[0] = in[0], out[1] = 0; }
};

struct MovingAverageRule {
  static constexpr int kIns = 1, kOuts = 1;  // the average; the weight takes the place of the gradient
  float decay;

  __device__ void scalars(const StepScalars&, float*) const {}
  __device__ __forceinline__ void update(const float*, float w, const float (&in)[1], float (&out)[1]) const {
    out[0] = decay * in[0] + (1 - decay) * w;
  }
  __device__ __forceinline__ void skip(const float (&in)[1], float (&out)[1]) const { out[0] = in[0]; }
};

// The weight of the new term in Adafactor's moving sums of update t: t^-decay.
__device__ inline float new_share(const StepScalars& from, double decay) {
  return static_cast<float>(exp(-decay * log(*from.updates + 1)));
}
constexpr double kSmallMoment = 1e-30;  // epsilon 1 of algorithm 4

struct UnfactoredRule {
  static constexpr int kIns = 1, kOuts = 2;  // v -> v, u
  double factor_decay;

  __device__ void scalars(const StepScalars& from, float* s) const {
    s[0] = static_cast<float>(*from.factor), s[1] = new_share(from, factor_decay);
  }
  __device__ __forceinline__ void update(const float* s, float g, const float (&in)[1], float (&out)[2]) const {
    const float x = s[0] * g;
    out[0] = (1 - s[1]) * in[0] + s[1] * (x * x + static_cast<float>(kSmallMoment));
    out[1] = x / sqrtf(out[0]);
  }
  __device__ __forceinline__ void skip(const float (&in)[1], float (&out)[2]) const { out[0] = in[0], out[1] = 0; }
};

// The sums over rows or over columns.
struct FactoredMomentsRule {
  static constexpr int kIns = 1, kOuts = 1;  // r or c; the new sums take the place of the gradient
  double factor_decay;
  float small;

  __device__ void scalars(const StepScalars& from, float* s) const { s[0] = new_share(from, factor_decay); }
  __device__ __forceinline__ void update(const float* s, float sum, const float (&in)[1], float (&out)[1]) const {
    out[0] = (1 - s[0]) * in[0] + s[0] * (sum + small);
  }
  __device__ __forceinline__ void skip(const float (&in)[1], float (&out)[1]) const { out[0] = in[0]; }
};

template <typename Rule>
struct Updated {
  Rule rule;
  const float* in[Rule::kIns];
  float* out[Rule::kOuts];
  AnyData g, weight;  // weight: out[0] in another type; may be absent
  StepScalars from;
  int64_t count;
  bool wide;  // all are aligned to kEach elements
};

template <typename Rule>
__global__ void __launch_bounds__(kPieceThreads) update_each(Updated<Rule> u) {
  constexpr int kIns = Rule::kIns, kOuts = Rule::kOuts;
  __shared__ float s[kMostStepScalars];
  const int64_t at = first_piece() * kEach;
  const bool run = u.wide && at + kEach <= u.count;
  const int here = at >= u.count ? 0 : u.count - at < kEach ? static_cast<int>(u.count - at) : kEach;
  float in[kIns][kEach] = {}, g[kEach] = {}, out[kOuts][kEach];
  if (run) {
    GPU_UNROLL
    for (int k = 0; k < kIns; ++k) load_run(in[k], u.in[k] + at);
    u.g.load(g, at);
  } else {
    GPU_UNROLL
    for (int i = 0; i < kEach; ++i) {
      if (i >= here) break;
      GPU_UNROLL
      for (int k = 0; k < kIns; ++k) in[k][i] = u.in[k][at + i];
      float one[1];
      u.g.load(one, at + i);
      g[i] = one[0];
    }
  }
  const bool updates = *u.from.finite != 0;
  if (threadIdx.x == 0 && updates) u.rule.scalars(u.from, s);
  __syncthreads();
  GPU_UNROLL
  for (int i = 0; i < kEach; ++i) {
    float x[kIns], y[kOuts];
    GPU_UNROLL
    for (int k = 0; k < kIns; ++k) x[k] = in[k][i];
    if (updates) {
      u.rule.update(s, g[i], x, y);
    } else {
      u.rule.skip(x, y);
    }
    GPU_UNROLL
    for (int k = 0; k < kOuts; ++k) out[k][i] = y[k];
  }
  if (run) {
    GPU_UNROLL
    for (int k = 0; k < kOuts; ++k) put_run(u.out[k] + at, out[k], false);
    if (u.weight.data != nullptr) u.weight.put(at, out[0], false);
    return;
  }
  GPU_UNROLL
  for (int i = 0; i < kEach; ++i) {
    if (i >= here) break;
    GPU_UNROLL
    for (int k = 0; k < kOuts; ++k) u.out[k][at + i] = out[k][i];
    const float one[1] = {out[0][i]};
    if (u.weight.data != nullptr) u.weight.put(at + i, one, false);
  }
}

struct RuleOperands {
  size_t g;
  std::initializer_list<size_t> ins, outs;
  size_t factor, finite, updates;
  size_t weight = kNoOperand;

  static constexpr size_t kNoOperand = ~size_t{0};
};
constexpr size_t kNoOperand = RuleOperands::kNoOperand;

const double* number_at(const KernelCall& call, size_t i) {
  return i < call.ins.size() ? data<double>(call.ins[i]) : nullptr;
}

StepScalars step_scalars(const KernelCall& call, const RuleOperands& o) {
  return {.factor = number_at(call, o.factor),
          .finite = number_at(call, o.finite),
          .updates = number_at(call, o.updates),
          .later = call.later,
          .rate = call.attributes.number_or("rate", 1.0)};
}

float attribute(const KernelCall& call, std::string_view name) {
  return static_cast<float>(call.attributes.number(name));
}

template <typename Rule>
void launch_rule(const KernelCall& call, const Rule& rule, const RuleOperands& o, const StepScalars& from) {
  Updated<Rule> u = {.rule = rule, .in = {}, .out = {}, .g = {}, .weight = {}, .from = from, .count = 0, .wide = true};
  const auto state = [&](const View& v) {
    base::require(v.dtype() == DType::f32, "kernel", "{} of {} on a device", call.kind, name_of(v.dtype()));
    u.wide = u.wide && all_wide(v.data);
    u.count = v.elements();
    return data<float>(v);
  };
  int k = 0;
  for (const size_t i : o.ins) u.in[k++] = state(call.ins[i]);
  k = 0;
  for (const size_t i : o.outs) u.out[k++] = state(call.outs[i]);
  u.g = any_data(call.kind, call.ins[o.g]);
  if (o.weight < call.outs.size()) u.weight = any_data(call.kind, call.outs[o.weight]);
  u.wide = u.wide && all_wide(u.g.data, u.weight.data);
  const int64_t blocks = quotient_up(u.count, int64_t{kPieceThreads} * kEach);
  launch(*call.stream, dim3(static_cast<unsigned>(blocks)), dim3(kPieceThreads), 0, update_each<Rule>, u);
}
template <typename Rule>
void launch_rule(const KernelCall& call, const Rule& rule, const RuleOperands& o) {
  launch_rule(call, rule, o, step_scalars(call, o));
}

}  // namespace

void lion(const KernelCall& call) {
  using In = LionIn;
  using Out = LionOut;
  const LionRule rule = {
      .beta1 = attribute(call, "beta1"), .beta2 = attribute(call, "beta2"), .decay = attribute(call, "weight_decay")};
  launch_rule(call, rule,
              {.g = In::kG,
               .ins = {In::kW, In::kM},
               .outs = {Out::kW, Out::kM},
               .factor = In::kFactor,
               .finite = In::kFinite,
               .updates = kNoOperand,
               .weight = Out::kWeight});
}

void adadelta(const KernelCall& call) {
  using In = AdadeltaIn;
  using Out = AdadeltaOut;
  const AdadeltaRule rule = {
      .rho = attribute(call, "rho"), .epsilon = attribute(call, "epsilon"), .decay = attribute(call, "weight_decay")};
  launch_rule(call, rule,
              {.g = In::kG,
               .ins = {In::kW, In::kV, In::kD},
               .outs = {Out::kW, Out::kV, Out::kD},
               .factor = In::kFactor,
               .finite = In::kFinite,
               .updates = kNoOperand,
               .weight = Out::kWeight});
}

void adam_direction(const KernelCall& call) {
  using In = AdamwIn;
  using Out = AdamDirectionOut;
  const AdamDirectionRule rule = {.beta1 = call.attributes.number("beta1"),
                                  .beta2 = call.attributes.number("beta2"),
                                  .epsilon = attribute(call, "epsilon"),
                                  .decay = attribute(call, "weight_decay")};
  launch_rule(call, rule,
              {.g = In::kG,
               .ins = {In::kW, In::kM, In::kV},
               .outs = {Out::kM, Out::kV, Out::kU},
               .factor = In::kFactor,
               .finite = In::kFinite,
               .updates = In::kUpdates});
}

void apply_direction(const KernelCall& call) {
  using In = ApplyDirectionIn;
  using Out = ApplyDirectionOut;
  const bool decayed = call.attributes.integer_or("decay_in_direction", 0) != 0;
  const ApplyDirectionRule rule = {.decay = decayed ? 0.0f : attribute(call, "weight_decay"),
                                   .clip = call.attributes.number_or("factor_clip", -1.0),
                                   .elements = static_cast<double>(call.attributes.integer_or("elements", 1))};
  const RuleOperands o = {.g = In::kU,
                          .ins = {In::kW},
                          .outs = {Out::kW},
                          .factor = kNoOperand,
                          .finite = In::kFinite,
                          .updates = kNoOperand,
                          .weight = Out::kWeight};
  StepScalars from = step_scalars(call, o);
  from.w_squares = number_at(call, In::kWSquares), from.u_squares = number_at(call, In::kUSquares);
  launch_rule(call, rule, o, from);
}

void lars(const KernelCall& call) {
  using In = LarsIn;
  using Out = SgdOut;
  const LarsRule rule = {.momentum = attribute(call, "momentum"),
                         .decay = call.attributes.number("weight_decay"),
                         .trust = call.attributes.number("trust")};
  const RuleOperands o = {.g = In::kG,
                          .ins = {In::kW, In::kM},
                          .outs = {Out::kW, Out::kM},
                          .factor = In::kFactor,
                          .finite = In::kFinite,
                          .updates = kNoOperand,
                          .weight = Out::kWeight};
  StepScalars from = step_scalars(call, o);
  from.w_squares = number_at(call, In::kWSquares), from.u_squares = number_at(call, In::kGSquares);
  launch_rule(call, rule, o, from);
}

void muon_momentum(const KernelCall& call) {
  using In = MuonMomentumIn;
  launch_rule(call, MuonMomentumRule{.momentum = attribute(call, "momentum")},
              {.g = In::kG,
               .ins = {In::kM},
               .outs = {0, 1},
               .factor = In::kFactor,
               .finite = In::kFinite,
               .updates = kNoOperand});
}

void moving_average(const KernelCall& call) {
  launch_rule(call, MovingAverageRule{.decay = attribute(call, "ema_decay")},
              {.g = 1, .ins = {0}, .outs = {0}, .factor = kNoOperand, .finite = 2, .updates = kNoOperand});
}

void unfactored_direction(const KernelCall& call) {
  using In = UnfactoredDirectionIn;
  launch_rule(call, UnfactoredRule{.factor_decay = call.attributes.number("factor_decay")},
              {.g = In::kG,
               .ins = {In::kV},
               .outs = {0, 1},
               .factor = In::kFactor,
               .finite = In::kFinite,
               .updates = In::kUpdates});
}

void factored_moments(const KernelCall& call) {
  using In = FactoredMomentsIn;
  const auto one = [&](size_t sums, size_t state, size_t out, std::string_view terms) {
    const double count = static_cast<double>(call.attributes.integer(terms));
    launch_rule(call,
                FactoredMomentsRule{.factor_decay = call.attributes.number("factor_decay"),
                                    .small = static_cast<float>(count * kSmallMoment)},
                {.g = sums,
                 .ins = {state},
                 .outs = {out},
                 .factor = kNoOperand,
                 .finite = In::kFinite,
                 .updates = In::kUpdates});
  };
  one(In::kRowSums, In::kR, 0, "columns");
  one(In::kColumnSums, In::kC, 1, "rows");
}

}  // namespace kintsugi::KINTSUGI_GPU
