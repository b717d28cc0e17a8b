// Losses of preferences and of sampled answers, and the weighted scores of samples, in fp64. Sums are over blocks that
// depend only on the shapes, and then over blocks.
#include "kintsugi/kernels/gpu/loss_terms.h"

namespace kintsugi::KINTSUGI_GPU {

namespace {

using kernels::PolicyLossIn;
using kernels::PreferenceLossIn;
using kernels::WeightedScoresGradIn;
using kernels::WeightedScoresIn;

constexpr int kThreads = 256;

// A value in fp64 or fp32.
struct WideData {
  void* data = nullptr;
  bool wide = false;

  __device__ double operator[](int64_t i) const {
    return wide ? static_cast<const double*>(data)[i] : static_cast<double>(static_cast<const float*>(data)[i]);
  }
  __device__ void put(int64_t i, double x, bool add) const {
    if (wide) {
      auto* const at = static_cast<double*>(data) + i;
      *at = add ? *at + x : x;
    } else {
      auto* const at = static_cast<float*>(data) + i;
      *at = static_cast<float>(add ? static_cast<double>(*at) + x : x);
    }
  }
};
WideData wide_data(std::string_view kind, const View& v) {
  base::require(v.dtype() == DType::f64 || v.dtype() == DType::f32, "kernel", "{} of {} on a device", kind,
                name_of(v.dtype()));
  return {v.data, v.dtype() == DType::f64};
}

// K scalar outputs.
template <int K>
struct ScalarSums {
  WideData to[K];
  uint32_t accumulate;
};
template <int K>
ScalarSums<K> scalar_sums(const KernelCall& call) {
  ScalarSums<K> sums = {.to = {}, .accumulate = call.accumulate};
  for (size_t k = 0; k < K; ++k) sums.to[k] = wide_data(call.kind, call.outs[k]);
  return sums;
}

// One block: adds what `terms` gives for some of its items. blocks: [block kSums]
template <typename F>
__global__ void __launch_bounds__(kThreads) add_terms(F terms, int64_t items, double* blocks) {
  __shared__ double scratch[32];
  double sums[F::kSums] = {};
  for (int64_t i = first_piece(); i < items; i += all_threads()) terms.add(i, sums);
  GPU_UNROLL
  for (int k = 0; k < F::kSums; ++k) {
    const double sum = block_sum(sums[k], scratch);
    if (threadIdx.x == 0) blocks[static_cast<int64_t>(blockIdx.x) * F::kSums + k] = sum;
  }
}
template <int K>
__global__ void __launch_bounds__(kThreads) add_blocks(const double* blocks, int count, ScalarSums<K> sums) {
  __shared__ double scratch[32];
  GPU_UNROLL
  for (int k = 0; k < K; ++k) {
    double sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) sum += blocks[i * K + k];
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) sums.to[k].put(0, sum, (sums.accumulate >> k & 1u) != 0);
  }
}

int64_t term_blocks(int64_t items) {
  return std::clamp<int64_t>(items / 1024, 1, 264);
}
template <typename F>
void launch_terms(const KernelCall& call, const F& terms, int64_t items) {
  auto* const blocks = reinterpret_cast<double*>(call.workspace.data());
  const int64_t count = term_blocks(items);
  launch(*call.stream, dim3(static_cast<unsigned>(count)), dim3(kThreads), 0, add_terms<F>, terms, items, blocks);
  launch(*call.stream, dim3(1), dim3(kThreads), 0, add_blocks<F::kSums>, blocks, static_cast<int>(count),
         scalar_sums<F::kSums>(call));
}

// --- Preferences

// margin, reference: [batch]
struct Pairs {
  static constexpr int kSums = 4;
  WideData margin, reference;
  Places places;
  double beta;

  __device__ bool counts(int64_t i) const {
    const double known = reference[i];
    return known == known && places.real(i);
  }
  __device__ double reward(int64_t i) const { return beta * (margin[i] - reference[i]); }
  __device__ void add(int64_t i, double (&sums)[kSums]) const {
    if (!counts(i)) return;
    const double r = reward(i);
    sums[0] += (r < 0 ? -r : 0.0) + log1p(exp(-fabs(r)));
    sums[1] += 1;
    sums[2] += r > 0 ? 1 : 0;
    sums[3] += r;
  }
};
Pairs pairs_of(const KernelCall& call) {
  using In = PreferenceLossIn;
  return {.margin = wide_data(call.kind, call.ins[In::kMargin]),
          .reference = wide_data(call.kind, call.ins[In::kReference]),
          .places = places_of(call.kind, call, call.ins[In::kMargin].shape()),
          .beta = call.attributes.number("beta")};
}

__global__ void __launch_bounds__(kThreads)
    spread_preferences(Pairs pairs, int64_t count, WideData dloss, WideData dmargin, bool add) {
  for (int64_t i = first_piece(); i < count; i += all_threads())
    dmargin.put(i, pairs.counts(i) ? -dloss[0] * pairs.beta / (1 + exp(pairs.reward(i))) : 0.0, add);
}

// --- Sampled answers

// lse, target, labels, weights, sampled: [batch seq]
struct SampledTokens {
  static constexpr int kSums = 3;
  TokenTerms tokens;
  AnyData weights, sampled;
  double clip;

  __device__ double log_p(int64_t i) const {
    return static_cast<double>(one_of(tokens.target, i)) - static_cast<double>(one_of(tokens.lse, i));
  }
  __device__ void add(int64_t i, double (&sums)[kSums]) const {
    if (!tokens.counts(i)) return;
    const double weight = one_of(weights, i), now = log_p(i), gap = now - static_cast<double>(one_of(sampled, i));
    const double ratio = exp(gap), bounded = ratio < 1 - clip ? 1 - clip : ratio > 1 + clip ? 1 + clip : ratio;
    const double free = weight * ratio, bound = weight * bounded;
    sums[0] -= clip > 0 ? (bound < free ? bound : free) : weight * now;
    sums[1] += 1;
    sums[2] += fabs(gap);
  }
  // The factor of the gradient of log p.
  __device__ double slope(int64_t i) const {
    const double weight = one_of(weights, i);
    if (clip <= 0) return weight;
    const double ratio = exp(log_p(i) - static_cast<double>(one_of(sampled, i)));
    return (weight > 0 ? ratio > 1 + clip : ratio < 1 - clip) ? 0.0 : weight * ratio;
  }
};
SampledTokens sampled_tokens(const KernelCall& call) {
  using In = PolicyLossIn;
  const View& labels = call.ins[In::kLabels];
  return {.tokens = {.lse = any_data(call.kind, call.ins[In::kLse]),
                     .target = any_data(call.kind, call.ins[In::kTarget]),
                     .labels = data<int32_t>(labels),
                     .places = places_of(call.kind, call, labels.shape())},
          .weights = any_data(call.kind, call.ins[In::kWeights]),
          .sampled = any_data(call.kind, call.ins[In::kSampled]),
          .clip = call.attributes.number_or("clip", 0.0)};
}

// The gradients of the statistics of a token whose log p has this gradient.
struct TokenGradients {
  AnyData dlse, dtarget;
  bool add_lse, add_target;

  __device__ void put(int64_t i, double of_log_p) const {
    const float up[1] = {static_cast<float>(of_log_p)}, down[1] = {-up[0]};
    dlse.put(i, down, add_lse);
    dtarget.put(i, up, add_target);
  }
};
TokenGradients token_gradients(const KernelCall& call) {
  return {.dlse = any_data(call.kind, call.outs[0]),
          .dtarget = any_data(call.kind, call.outs[1]),
          .add_lse = call.accumulates(0),
          .add_target = call.accumulates(1)};
}

__global__ void __launch_bounds__(kThreads)
    spread_policy(SampledTokens t, int64_t count, WideData dloss, TokenGradients to) {
  for (int64_t i = first_piece(); i < count; i += all_threads())
    to.put(i, t.tokens.counts(i) ? -dloss[0] * t.slope(i) : 0.0);
}

// --- Weighted scores

// One block per sample. weights: [batch seq], score: [batch]
__global__ void __launch_bounds__(kThreads)
    score_samples(TokenTerms t, AnyData weights, int64_t columns, WideData score, bool add) {
  __shared__ double scratch[32];
  const int64_t sample = blockIdx.x;
  double sum = 0;
  for (int64_t s = threadIdx.x; s < columns; s += kThreads) {
    const int64_t i = sample * columns + s;
    if (t.counts(i)) sum -= static_cast<double>(one_of(weights, i)) * t(i).loss;
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) score.put(sample, sum, add);
}

__global__ void __launch_bounds__(kThreads)
    spread_scores(TokenTerms t, AnyData weights, int64_t count, Divisor columns, WideData dscore, TokenGradients to) {
  for (int64_t i = first_piece(); i < count; i += all_threads())
    to.put(i, t.counts(i) ? static_cast<double>(one_of(weights, i)) * dscore[columns.quotient(i)] : 0.0);
}

}  // namespace

void preference_loss(const KernelCall& call) {
  const int64_t pairs = call.ins[PreferenceLossIn::kMargin].elements();
  launch_terms(call, pairs_of(call), pairs);
}
int64_t preference_loss_workspace(const KernelShapes& s) {
  return term_blocks(s.ins[PreferenceLossIn::kMargin]->shape.elements()) * Pairs::kSums *
         static_cast<int64_t>(sizeof(double));
}

void preference_loss_grad(const KernelCall& call) {
  const int64_t count = call.outs[0].elements();
  launch_pieces(*call.stream, count, spread_preferences, pairs_of(call), count,
                wide_data(call.kind, call.ins[PreferenceLossIn::kDloss]), wide_data(call.kind, call.outs[0]),
                call.accumulates(0));
}

void policy_loss(const KernelCall& call) {
  launch_terms(call, sampled_tokens(call), call.ins[PolicyLossIn::kLabels].elements());
}
int64_t policy_loss_workspace(const KernelShapes& s) {
  return term_blocks(s.ins[PolicyLossIn::kLabels]->shape.elements()) * SampledTokens::kSums *
         static_cast<int64_t>(sizeof(double));
}

void policy_loss_grad(const KernelCall& call) {
  const int64_t count = call.ins[PolicyLossIn::kLabels].elements();
  launch_pieces(*call.stream, count, spread_policy, sampled_tokens(call), count,
                wide_data(call.kind, call.ins[PolicyLossIn::kDloss]), token_gradients(call));
}

void weighted_scores(const KernelCall& call) {
  using In = WeightedScoresIn;
  const View& labels = call.ins[In::kLabels];
  const TokenTerms tokens = {.lse = any_data(call.kind, call.ins[In::kLse]),
                             .target = any_data(call.kind, call.ins[In::kTarget]),
                             .labels = data<int32_t>(labels),
                             .places = places_of(call.kind, call, labels.shape())};
  launch(*call.stream, dim3(static_cast<unsigned>(labels.size("batch"))), dim3(kThreads), 0, score_samples, tokens,
         any_data(call.kind, call.ins[In::kWeights]), labels.size("seq"), wide_data(call.kind, call.outs[0]),
         call.accumulates(0));
}

void weighted_scores_grad(const KernelCall& call) {
  using In = WeightedScoresGradIn;
  const View& labels = call.ins[In::kLabels];
  const TokenTerms tokens = {
      .lse = {}, .target = {}, .labels = data<int32_t>(labels), .places = places_of(call.kind, call, labels.shape())};
  launch_pieces(*call.stream, labels.elements(), spread_scores, tokens, any_data(call.kind, call.ins[In::kWeights]),
                labels.elements(), Divisor(std::max<int64_t>(labels.size("seq"), 1)),
                wide_data(call.kind, call.ins[In::kDscore]), token_gradients(call));
}

}  // namespace kintsugi::KINTSUGI_GPU
