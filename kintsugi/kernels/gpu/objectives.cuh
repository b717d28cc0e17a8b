// Losses of preferences, of sampled answers and of fields, and the weighted scores of samples, in fp64. Sums are over
// blocks that depend only on the shapes, and then over blocks.
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

// --- Fields

// y, targets: [batch spatial... target], in groups: the indices of its first dim, or of its last. NaN marks a missing
// target.
struct Fields {
  AnyData y, targets;
  Places places;
  int64_t groups, size;  // of a group: elements
  bool first;

  __device__ int64_t element(int64_t group, int64_t i) const { return first ? group * size + i : i * groups + group; }
  __device__ bool counts(int64_t i) const {
    const float target = one_of(targets, i);
    return target == target && places.real(i);
  }
};
Fields fields_of(const KernelCall& call, const View& groups) {
  const tensor::Shape& shape = call.ins[0].shape();
  const bool first = groups.shape()[0] == shape[0];
  base::require(groups.shape().rank() == 1 && (first || groups.shape()[0] == shape[shape.rank() - 1]), "kernel",
                "{} of {} by {}", call.kind, to_string(shape), to_string(groups.shape()));
  const int64_t count = groups.elements();
  return {.y = any_data(call.kind, call.ins[0]),
          .targets = any_data(call.kind, call.ins[1]),
          .places = places_of(call.kind, call, shape),
          .groups = count,
          .size = count == 0 ? 0 : shape.elements() / count,
          .first = first};
}

// The blocks that share a group.
int64_t field_pieces(int64_t size) {
  return std::clamp<int64_t>(size / 4096, 1, 64);
}

// One block: a piece of a group. pieces: [group piece 2]
__global__ void __launch_bounds__(kThreads) add_fields(Fields f, double* pieces) {
  __shared__ double scratch[32];
  const int64_t group = blockIdx.x;
  double error = 0, norm = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x; i < f.size;
       i += static_cast<int64_t>(gridDim.y) * kThreads) {
    const int64_t at = f.element(group, i);
    if (!f.counts(at)) continue;
    const double target = one_of(f.targets, at), difference = static_cast<double>(one_of(f.y, at)) - target;
    error += difference * difference;
    norm += target * target;
  }
  error = block_sum(error, scratch);
  norm = block_sum(norm, scratch);
  if (threadIdx.x != 0) return;
  double* const to = pieces + (group * gridDim.y + blockIdx.y) * 2;
  to[0] = error;
  to[1] = norm;
}

__global__ void __launch_bounds__(kThreads)
    add_pieces(const double* pieces, int each, int64_t groups, WideData errors, WideData norms, uint32_t accumulate) {
  for (int64_t group = first_piece(); group < groups; group += all_threads()) {
    double error = 0, norm = 0;
    for (int i = 0; i < each; ++i) {
      error += pieces[(group * each + i) * 2];
      norm += pieces[(group * each + i) * 2 + 1];
    }
    errors.put(group, error, (accumulate & 1u) != 0);
    norms.put(group, norm, (accumulate & 2u) != 0);
  }
}

__global__ void __launch_bounds__(kThreads)
    spread_fields(Fields f, Divisor size, int64_t count, WideData derrors, AnyData dy, bool add) {
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    const auto twice = static_cast<float>(2 * derrors[size.quotient(i)]);
    const float made[1] = {f.counts(i) ? twice * (one_of(f.y, i) - one_of(f.targets, i)) : 0};
    dy.put(i, made, add);
  }
}

// errors, norms: [batch]
struct RelativeErrors {
  static constexpr int kSums = 2;
  WideData errors, norms;
  Places places;

  __device__ bool counts(int64_t i) const { return norms[i] != 0 && places.real(i); }
  __device__ void add(int64_t i, double (&sums)[kSums]) const {
    if (!counts(i)) return;
    sums[0] += sqrt(errors[i] / norms[i]);
    sums[1] += 1;
  }
};
RelativeErrors relative_errors_of(const KernelCall& call) {
  return {.errors = wide_data(call.kind, call.ins[0]),
          .norms = wide_data(call.kind, call.ins[1]),
          .places = places_of(call.kind, call, call.ins[0].shape())};
}

__global__ void __launch_bounds__(kThreads)
    spread_relative_errors(RelativeErrors r, int64_t count, WideData dloss, WideData derrors, bool add) {
  for (int64_t i = first_piece(); i < count; i += all_threads())
    derrors.put(i, r.counts(i) && r.errors[i] != 0 ? 0.5 * dloss[0] / (sqrt(r.errors[i]) * sqrt(r.norms[i])) : 0.0,
                add);
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

int64_t field_errors_workspace(const KernelShapes& s) {
  const int64_t groups = s.outs[0]->shape.elements(), size = groups == 0 ? 0 : s.ins[0]->shape.elements() / groups;
  return groups * field_pieces(size) * 2 * static_cast<int64_t>(sizeof(double));
}
void field_errors(const KernelCall& call) {
  const Fields fields = fields_of(call, call.outs[0]);
  if (fields.groups == 0) return;
  auto* const pieces = reinterpret_cast<double*>(call.workspace.data());
  const int64_t each = field_pieces(fields.size);
  launch(*call.stream, dim3(static_cast<unsigned>(fields.groups), static_cast<unsigned>(each)), dim3(kThreads), 0,
         add_fields, fields, pieces);
  launch_pieces(*call.stream, fields.groups, add_pieces, pieces, static_cast<int>(each), fields.groups,
                wide_data(call.kind, call.outs[0]), wide_data(call.kind, call.outs[1]), call.accumulate);
}

void field_errors_grad(const KernelCall& call) {
  const Fields fields = fields_of(call, call.ins[2]);
  const int64_t count = call.outs[0].elements();
  base::require(fields.first, "kernel", "field_errors_grad by {}", to_string(call.ins[2].shape()));
  launch_pieces(*call.stream, count, spread_fields, fields, Divisor(std::max<int64_t>(fields.size, 1)), count,
                wide_data(call.kind, call.ins[2]), any_data(call.kind, call.outs[0]), call.accumulates(0));
}

int64_t relative_error_workspace(const KernelShapes& s) {
  return term_blocks(s.ins[0]->shape.elements()) * RelativeErrors::kSums * static_cast<int64_t>(sizeof(double));
}
void relative_error(const KernelCall& call) {
  launch_terms(call, relative_errors_of(call), call.ins[0].elements());
}

void relative_error_grad(const KernelCall& call) {
  const int64_t count = call.outs[0].elements();
  launch_pieces(*call.stream, count, spread_relative_errors, relative_errors_of(call), count,
                wide_data(call.kind, call.ins[2]), wide_data(call.kind, call.outs[0]), call.accumulates(0));
}

}  // namespace kintsugi::KINTSUGI_GPU
