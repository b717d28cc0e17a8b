// The router of a mixture of experts, its losses, and the loads and biases of experts. A warp processes a token. Scores
// that decide are in fp64, as in the reference, so that the choice is the same. Sums of losses are in fp64, over blocks
// that depend only on the shapes.
#include "kintsugi/kernels/expert_operands.h"
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/places.h"

namespace kintsugi::KINTSUGI_GPU {

int64_t balance_loss_workspace(const KernelShapes&);
int64_t router_z_loss_workspace(const KernelShapes&);

namespace {

using kernels::BalanceBiasIn;
using kernels::BalanceLossGradIn;
using kernels::BalanceLossIn;
using kernels::RouteGradIn;
using kernels::RouteIn;
using kernels::RouteOut;
using kernels::RouterZLossGradIn;
using kernels::RouterZLossIn;

constexpr int kTokenWarps = 4, kTokenThreads = 32 * kTokenWarps;  // of a block
constexpr int kMostCandidates = 768;  // with the scores of a block's tokens in shared memory; a lane has a bit for each

__device__ inline float element(const AnyData& x, int64_t at) {
  float value[1];
  x.load(value, at);
  return value[0];
}
__device__ inline void set_element(const AnyData& x, int64_t at, float value, bool add) {
  const float run[1] = {value};
  x.put(at, run, add);
}

// logits: [batch seq candidate]
struct Router {
  AnyData logits;
  Places places;  // of [batch seq]
  int64_t tokens = 0;
  int seq = 1, candidates = 0;
  bool sigmoid = false;

  __device__ float logit(int64_t token, int candidate) const { return element(logits, token * candidates + candidate); }
};

Router router_of(const KernelCall& call, const View& logits) {
  const tensor::Shape& shape = logits.shape();
  base::require(shape.rank() == 3 && shape[2].size >= 1, "kernel", "{} of {}", call.kind, to_string(shape));
  if (shape[2].size > kMostCandidates)
    throw base::UserError("experts",
                          "a device chooses among at most {} experts of a layer, and there are {}: "
                          "parallel.device = \"cpu\" takes more",
                          kMostCandidates, shape[2].size);
  return {.logits = any_data(call.kind, logits),
          .places = places_of(call.kind, call, tensor::Shape{shape[0], shape[1]}),
          .tokens = rows(shape),
          .seq = static_cast<int>(shape[1].size),
          .candidates = static_cast<int>(shape[2].size),
          .sigmoid = call.attributes.text_or("scores", "softmax") == "sigmoid"};
}

// Calls f(token, warp of the block) for all tokens; warps of a block that have none left repeat the last, so that all
// threads take part in exchanges; `own`: whether this one is theirs.
template <typename F>
__device__ void for_tokens(int64_t tokens, const F& f) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int64_t begin = static_cast<int64_t>(blockIdx.x) * kTokenWarps; begin < tokens;
       begin += static_cast<int64_t>(gridDim.x) * kTokenWarps) {
    const bool own = begin + warp < tokens;
    f(own ? begin + warp : tokens - 1, warp, own);
  }
}
template <typename... Parameters, typename... Arguments>
void launch_tokens(const KernelCall& call, int64_t tokens, size_t shared, void (*kernel)(Parameters...),
                   Arguments&&... arguments) {
  const int64_t blocks = std::min(quotient_up(tokens, kTokenWarps), blocks_at_one_time(kernel, kTokenThreads));
  launch(*call.stream, dim3(static_cast<unsigned>(blocks)), dim3(kTokenThreads), shared, kernel,
         std::forward<Arguments>(arguments)...);
}

// --- Choice of experts

struct Choosing {
  Router router;
  AnyData bias;  // [candidate]; null: none
  AnyData weights;
  int32_t* experts;
  int top_k, groups, groups_per_token;
  bool normalize;
  double scale;
};

// A candidate, and what it is compared by; `index` kNobody: none. Ties go to the lowest.
struct Contender {
  double value;
  int index;
};
constexpr int kNobody = 1 << 30;

__device__ inline bool is_behind(const Contender& a, const Contender& b) {
  if (b.index == kNobody) return false;
  return a.index == kNobody || b.value > a.value || (!(a.value > b.value) && b.index < a.index);
}
// The best of the lanes, in all of them.
__device__ inline Contender best_of_lanes(Contender own) {
  for (int mask = 16; mask > 0; mask /= 2) {
    const Contender other = {shuffle_xor(own.value, mask), shuffle_xor(own.index, mask)};
    if (is_behind(own, other)) own = other;
  }
  return own;
}
// The best of those of this lane, lane, lane + 32, ..., whose bits are not in `taken`.
__device__ inline Contender best_of(const double* values, int count, uint32_t taken) {
  Contender best = {0, kNobody};
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int i = lane, bit = 0; i < count; i += 32, ++bit)
    if (const Contender one = {values[i], i}; (taken >> bit & 1u) == 0 && is_behind(best, one)) best = one;
  return best;
}

// Each warp has in shared memory: what candidates are compared by, the sums of groups, and scores.
__global__ void __launch_bounds__(kTokenThreads) choose_experts(Choosing c) {
  GPU_DYNAMIC_SHARED(double, shared);
  const int lane = static_cast<int>(threadIdx.x) % 32, n = c.router.candidates;
  for_tokens(c.router.tokens, [&](int64_t token, int warp, bool own) {
    double* const compared = shared + warp * (2 * n + c.groups);
    double *const scores = compared + n, *const of_group = scores + n;
    double top = -INFINITY, sum = 0;
    for (int i = lane; i < n; i += 32) {
      const double x = c.router.logit(token, i);
      scores[i] = compared[i] = x;
      top = x > top ? x : top;
    }
    top = lanes_max(top);
    for (int i = lane; i < n; i += 32) {
      scores[i] = c.router.sigmoid ? 1 / (1 + exp(-scores[i])) : exp(scores[i] - top);
      sum += scores[i];
    }
    sum = lanes_sum(sum);
    const bool biased = c.bias.data != nullptr;
    for (int i = lane; i < n; i += 32) {
      if (!c.router.sigmoid) scores[i] /= sum;
      if (biased) compared[i] = scores[i] + element(c.bias, i);
    }
    warp_barrier();
    uint32_t taken = 0;
    if (c.groups > 1) {
      const int each = n / c.groups;
      for (int g = lane; g < c.groups; g += 32) {
        double first = -INFINITY, second = -INFINITY;
        for (int i = g * each; i < (g + 1) * each; ++i) {
          const double x = biased ? compared[i] : scores[i];
          if (x > first) {
            second = first, first = x;
          } else if (x > second) {
            second = x;
          }
        }
        of_group[g] = first + (each > 1 ? second : 0);
      }
      warp_barrier();
      taken = ~0u;
      uint32_t chosen = 0;
      for (int k = 0; k < c.groups_per_token; ++k) {
        const int group = best_of_lanes(best_of(of_group, c.groups, chosen)).index;
        if (group % 32 == lane) chosen |= 1u << (group / 32);
        for (int i = lane, bit = 0; i < n; i += 32, ++bit)
          if (i / each == group) taken &= ~(1u << bit);
      }
    }
    const bool real = c.router.places.real(token);
    double of_chosen = 0;
    for (int k = 0; k < c.top_k; ++k) {
      const int expert = best_of_lanes(best_of(compared, n, taken)).index;
      if (expert % 32 == lane) taken |= 1u << (expert / 32);
      of_chosen += scores[expert];
      if (lane == 0 && own) c.experts[token * c.top_k + k] = real ? expert : 0;
    }
    warp_barrier();
    const double factor = c.scale / (c.normalize ? of_chosen : 1);
    for (int k = lane; own && k < c.top_k; k += 32) {
      const int expert = c.experts[token * c.top_k + k];
      set_element(c.weights, token * c.top_k + k, real ? static_cast<float>(scores[expert] * factor) : 0, false);
    }
    warp_barrier();
  });
}

// --- Gradient of the choice

// The largest logit of a token and the sum of the exponentials relative to it.
struct Softmax {
  float top, sum;
  __device__ float score(const Router& r, float logit) const {
    return r.sigmoid ? 1 / (1 + expf(-logit)) : expf(logit - top) / sum;
  }
};
__device__ inline Softmax softmax_of(const Router& r, int64_t token) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float top = -INFINITY, sum = 0;
  for (int i = lane; i < r.candidates; i += 32) {
    const float x = r.logit(token, i);
    top = x > top ? x : top;
  }
  top = lanes_max(top);
  for (int i = lane; i < r.candidates; i += 32) sum += expf(r.logit(token, i) - top);
  return {top, lanes_sum(sum)};
}

struct ChoosingBack {
  Router router;
  const int32_t* experts;
  AnyData dweights, dlogits;
  int top_k;
  bool normalize, add;
  float scale;
};

__global__ void __launch_bounds__(kTokenThreads) choose_experts_grad(ChoosingBack c) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for_tokens(c.router.tokens, [&](int64_t token, int, bool own) {
    const bool real = c.router.places.real(token);
    const Softmax softmax = softmax_of(c.router, token);
    const int32_t* const experts = c.experts + token * c.top_k;
    float sum = 0, mean = 0;
    for (int k = 0; k < c.top_k; ++k) {
      const float score = softmax.score(c.router, c.router.logit(token, experts[k]));
      sum += score;
      mean += score * element(c.dweights, token * c.top_k + k);
    }
    // The gradients of the chosen scores, and their sum weighted by the scores.
    const auto dscore = [&](int k) {
      const float dw = element(c.dweights, token * c.top_k + k);
      return c.scale * (c.normalize ? (dw - mean / sum) / sum : dw);
    };
    float weighted = 0;
    for (int k = 0; k < c.top_k; ++k)
      weighted += softmax.score(c.router, c.router.logit(token, experts[k])) * dscore(k);
    for (int i = lane; own && i < c.router.candidates; i += 32) {
      float d = 0;
      for (int k = 0; k < c.top_k; ++k)
        if (experts[k] == i) d = dscore(k);
      const float s = softmax.score(c.router, c.router.logit(token, i));
      const float dlogit = c.router.sigmoid ? s * (1 - s) * d : s * (d - weighted);
      set_element(c.dlogits, token * c.router.candidates + i, real ? dlogit : 0, c.add);
    }
  });
}

// --- Losses

// A scalar in fp64 or fp32.
struct Scalar {
  void* data = nullptr;
  bool wide = true;

  __device__ double get() const { return wide ? *static_cast<double*>(data) : *static_cast<float*>(data); }
  __device__ void put(double x, bool add) const {
    if (add) x += get();
    if (wide) {
      *static_cast<double*>(data) = x;
    } else {
      *static_cast<float*>(data) = static_cast<float>(x);
    }
  }
};
Scalar scalar_of(const KernelCall& call, const View& v) {
  base::require(v.elements() == 1 && (v.dtype() == DType::f64 || v.dtype() == DType::f32), "kernel",
                "{} with a scalar of {}", call.kind, name_of(v.dtype()));
  return {v.data, v.dtype() == DType::f64};
}

// What multiplies the terms of a sample's tokens, and the scores of each expert. In the workspace: the share of each
// sample's positions that have labels, then the reciprocal of the mean load.
struct LossFactors {
  const int32_t* labels = nullptr;  // [batch label_seq]; null: none
  const int32_t* counts = nullptr;  // [batch expert]; null: of a loss without
  const double* load = nullptr;     // [candidate]; null: the counts
  float* made = nullptr;
  int batch = 0, label_seq = 0, candidates = 0;
  double of_count = 0;  // the factor of a count

  __device__ float share(int sample) const { return made[sample]; }
  __device__ float cost(int sample, int expert) const {
    if (load == nullptr) return static_cast<float>(counts[sample * candidates + expert] * of_count);
    const float factor = made[batch];
    return factor == 0 ? 1 : static_cast<float>(load[expert]) * factor;
  }
};

// A block per sample, and one for the load.
__global__ void __launch_bounds__(256) make_loss_factors(LossFactors f) {
  __shared__ double scratch[32];
  const auto sample = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  if (sample < f.batch) {
    for (int i = thread; f.labels != nullptr && i < f.label_seq; i += 256)
      sum += f.labels[static_cast<int64_t>(sample) * f.label_seq + i] >= 0;
  } else {
    for (int e = thread; f.load != nullptr && e < f.candidates; e += 256) sum += f.load[e];
  }
  sum = block_sum(sum, scratch);
  if (thread != 0) return;
  const double share = f.labels == nullptr ? 1 : sum / f.label_seq;
  f.made[sample] = static_cast<float>(sample < f.batch ? share : sum > 0 ? f.candidates / sum : 0);
}

int64_t bytes_of_factors(int64_t batch) {
  return (batch + 1 + 63) / 64 * 64 * static_cast<int64_t>(sizeof(float));
}

LossFactors launch_factors(const KernelCall& call, const View& logits, const View& labels) {
  LossFactors f = {.labels = data<int32_t>(labels),
                   .made = reinterpret_cast<float*>(call.workspace.data()),
                   .batch = static_cast<int>(logits.shape()[0].size),
                   .candidates = static_cast<int>(width(logits.shape()))};
  if (labels.data != nullptr) f.label_seq = static_cast<int>(labels.shape()[1].size);
  return f;
}
LossFactors balance_factors(const KernelCall& call, const View& logits, const View& labels, const View& counts,
                            const View& load) {
  LossFactors f = launch_factors(call, logits, labels);
  f.counts = data<int32_t>(counts), f.load = data<double>(load);
  base::require(load.data == nullptr || load.dtype() == DType::f64, "kernel", "{} with a load of {}", call.kind,
                name_of(load.dtype()));
  const auto tokens = static_cast<double>(call.index("seq").whole() * call.attributes.integer("top_k"));
  f.of_count = static_cast<double>(f.candidates) / tokens;
  return f;
}
void make_factors(const KernelCall& call, const LossFactors& f) {
  launch(*call.stream, dim3(static_cast<unsigned>(f.batch + 1)), dim3(256), 0, make_loss_factors, f);
}

// Of a token: the sum of its scores, and of them times the costs of the experts.
struct TokenCost {
  float sum, cost;
};
__device__ inline TokenCost token_cost(const Router& r, const LossFactors& f, const Softmax& softmax, int64_t token,
                                       int sample) {
  float sum = 0, cost = 0;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < r.candidates; i += 32) {
    const float score = softmax.score(r, r.logit(token, i));
    sum += score;
    cost += score * f.cost(sample, i);
  }
  return {lanes_sum(sum), lanes_sum(cost)};
}

// The terms of this block's tokens; of_labels: of the balance loss, else of the z-loss.
__global__ void __launch_bounds__(kTokenThreads)
    sum_router_terms(Router r, LossFactors f, bool balances, double* blocks) {
  __shared__ double scratch[32];
  double sum = 0;  // the same in all lanes
  for_tokens(r.tokens, [&](int64_t token, int, bool own) {
    const auto sample = static_cast<int>(token / r.seq);
    const Softmax softmax = softmax_of(r, token);
    float term;
    if (balances) {
      const TokenCost c = token_cost(r, f, softmax, token, sample);
      term = c.cost / c.sum;
    } else {
      term = softmax.top + logf(softmax.sum);
      term *= term;
    }
    if (own && r.places.real(token)) sum += static_cast<double>(f.share(sample)) * term;
  });
  sum = block_sum(threadIdx.x % 32 == 0 ? sum : 0.0, scratch);
  if (threadIdx.x == 0) blocks[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(256) join_router_terms(const double* blocks, int count, Scalar loss, bool add) {
  __shared__ double scratch[32];
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 256) sum += blocks[i];
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) loss.put(sum, add);
}

int64_t blocks_of_terms(int64_t tokens) {
  return std::clamp<int64_t>(tokens / 64, 1, 2 * kProcessors);
}
int64_t terms_workspace(const tensor::Shape& logits) {
  return bytes_of_factors(logits[0].size) + blocks_of_terms(rows(logits)) * static_cast<int64_t>(sizeof(double));
}

void sum_terms(const KernelCall& call, const Router& r, const LossFactors& f, bool balances) {
  make_factors(call, f);
  auto* const blocks = reinterpret_cast<double*>(call.workspace.data() + bytes_of_factors(f.batch));
  const int64_t count = blocks_of_terms(r.tokens);
  launch(*call.stream, dim3(static_cast<unsigned>(count)), dim3(kTokenThreads), 0, sum_router_terms, r, f, balances,
         blocks);
  launch(*call.stream, dim3(1), dim3(256), 0, join_router_terms, blocks, static_cast<int>(count),
         scalar_of(call, call.outs[0]), call.accumulates(0));
}

__global__ void __launch_bounds__(kTokenThreads)
    router_terms_grad(Router r, LossFactors f, bool balances, Scalar dloss, AnyData dlogits, bool add) {
  const auto given = static_cast<float>(dloss.get());
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for_tokens(r.tokens, [&](int64_t token, int, bool own) {
    const auto sample = static_cast<int>(token / r.seq);
    const bool real = r.places.real(token);
    const Softmax softmax = softmax_of(r, token);
    const float factor = given * f.share(sample);
    const auto store = [&](int i, float d) { set_element(dlogits, token * r.candidates + i, real ? d : 0, add); };
    if (!balances) {
      const float log_sum = softmax.top + logf(softmax.sum);
      for (int i = lane; own && i < r.candidates; i += 32)
        store(i, 2 * factor * log_sum * expf(r.logit(token, i) - log_sum));
      return;
    }
    const TokenCost c = token_cost(r, f, softmax, token, sample);
    const auto dscore = [&](int i) { return factor * (f.cost(sample, i) - c.cost / c.sum) / c.sum; };
    float weighted = 0;
    for (int i = lane; i < r.candidates; i += 32) weighted += softmax.score(r, r.logit(token, i)) * dscore(i);
    weighted = lanes_sum(weighted);
    for (int i = lane; own && i < r.candidates; i += 32) {
      const float s = softmax.score(r, r.logit(token, i));
      store(i, r.sigmoid ? s * (1 - s) * dscore(i) : s * (dscore(i) - weighted));
    }
  });
}

// --- Loads and biases: sums of integers, exact in any order

__global__ void __launch_bounds__(kPieceThreads)
    add_counts(const int32_t* counts, int batch, int experts, double* load, bool add) {
  for (int64_t e = first_piece(); e < experts; e += all_threads()) {
    double sum = add ? load[e] : 0;
    for (int b = 0; b < batch; ++b) sum += counts[static_cast<int64_t>(b) * experts + e];
    load[e] = sum;
  }
}

// The sum and the maximum over all experts, in one block of 256 threads.
struct LoadOfAll {
  double sum, most;
};
__device__ inline LoadOfAll load_of_all(const double* load, int experts, double* scratch) {
  double sum = 0, most = 0;
  for (int e = static_cast<int>(threadIdx.x); e < experts; e += 256) {
    sum += load[e];
    most = load[e] > most ? load[e] : most;
  }
  sum = block_sum(sum, scratch);
  most = lanes_max(most);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = most;
  __syncthreads();
  for (int i = 0; i < 8; ++i) most = scratch[i] > most ? scratch[i] : most;
  return {sum, most};
}

__global__ void __launch_bounds__(256) measure_balance(const double* load, int experts, Scalar most) {
  __shared__ double scratch[32];
  const LoadOfAll all = load_of_all(load, experts, scratch);
  if (threadIdx.x == 0) most.put(all.sum > 0 ? all.most * experts / all.sum : 0, false);
}

__global__ void __launch_bounds__(256)
    move_biases(AnyData bias, AnyData out, const double* load, int experts, Scalar finite, float rate) {
  __shared__ double scratch[32];
  const double mean = load_of_all(load, experts, scratch).sum / experts;
  const bool moves = finite.get() != 0;
  for (int e = static_cast<int>(threadIdx.x); e < experts; e += 256) {
    float x = element(bias, e);
    if (moves && load[e] != mean) x += load[e] < mean ? rate : -rate;
    set_element(out, e, x, false);
  }
}

const double* load_of(const KernelCall& call, const View& v) {
  base::require(v.dtype() == DType::f64, "kernel", "{} of a load in {}", call.kind, name_of(v.dtype()));
  return data<double>(v);
}

}  // namespace

void route(const KernelCall& call) {
  const View& logits = call.ins[RouteIn::kLogits];
  const Choosing c = {.router = router_of(call, logits),
                      .bias = any_data("route", call.ins[RouteIn::kBias]),
                      .weights = any_data("route", call.outs[RouteOut::kWeights]),
                      .experts = data<int32_t>(call.outs[RouteOut::kExperts]),
                      .top_k = static_cast<int>(call.attributes.integer("top_k")),
                      .groups = static_cast<int>(call.attributes.integer_or("groups", 1)),
                      .groups_per_token = static_cast<int>(call.attributes.integer_or("groups_per_token", 1)),
                      .normalize = call.attributes.integer("normalize") != 0,
                      .scale = call.attributes.number("scale")};
  const size_t shared = sizeof(double) * kTokenWarps * static_cast<size_t>(2 * c.router.candidates + c.groups);
  launch_tokens(call, c.router.tokens, shared, choose_experts, c);
}

void route_grad(const KernelCall& call) {
  const ChoosingBack c = {.router = router_of(call, call.ins[RouteGradIn::kLogits]),
                          .experts = data<int32_t>(call.ins[RouteGradIn::kExperts]),
                          .dweights = any_data("route_grad", call.ins[RouteGradIn::kDweights]),
                          .dlogits = any_data("route_grad", call.outs[0]),
                          .top_k = static_cast<int>(call.attributes.integer("top_k")),
                          .normalize = call.attributes.integer("normalize") != 0,
                          .add = call.accumulates(0),
                          .scale = static_cast<float>(call.attributes.number("scale"))};
  launch_tokens(call, c.router.tokens, 0, choose_experts_grad, c);
}

int64_t balance_loss_workspace(const KernelShapes& shapes) {
  return terms_workspace(shapes.ins[BalanceLossIn::kLogits]->shape);
}
int64_t router_z_loss_workspace(const KernelShapes& shapes) {
  return terms_workspace(shapes.ins[RouterZLossIn::kLogits]->shape);
}
int64_t router_loss_grad_workspace(const KernelShapes& shapes) {
  return bytes_of_factors(shapes.ins[0]->shape[0].size);
}

void balance_loss(const KernelCall& call) {
  const View& logits = call.ins[BalanceLossIn::kLogits];
  const LossFactors f = balance_factors(call, logits, call.ins[BalanceLossIn::kLabels],
                                        call.ins[BalanceLossIn::kCounts], call.ins[BalanceLossIn::kLoad]);
  sum_terms(call, router_of(call, logits), f, true);
}

void balance_loss_grad(const KernelCall& call) {
  using In = BalanceLossGradIn;
  const View& logits = call.ins[In::kLogits];
  const LossFactors f =
      balance_factors(call, logits, call.ins[In::kLabels], call.ins[In::kCounts], call.ins[In::kLoad]);
  make_factors(call, f);
  const Router r = router_of(call, logits);
  launch_tokens(call, r.tokens, 0, router_terms_grad, r, f, true, scalar_of(call, call.ins[In::kDloss]),
                any_data("balance_loss_grad", call.outs[0]), call.accumulates(0));
}

void router_z_loss(const KernelCall& call) {
  const View& logits = call.ins[RouterZLossIn::kLogits];
  sum_terms(call, router_of(call, logits), launch_factors(call, logits, call.ins[RouterZLossIn::kLabels]), false);
}

void router_z_loss_grad(const KernelCall& call) {
  using In = RouterZLossGradIn;
  const View& logits = call.ins[In::kLogits];
  const LossFactors f = launch_factors(call, logits, call.ins[In::kLabels]);
  make_factors(call, f);
  const Router r = router_of(call, logits);
  launch_tokens(call, r.tokens, 0, router_terms_grad, r, f, false, scalar_of(call, call.ins[In::kDloss]),
                any_data("router_z_loss_grad", call.outs[0]), call.accumulates(0));
}

void expert_load(const KernelCall& call) {
  const tensor::Shape& counts = call.ins[0].shape();
  load_of(call, call.outs[0]);
  const auto experts = static_cast<int>(width(counts));
  launch_pieces(*call.stream, experts, add_counts, data<int32_t>(call.ins[0]), static_cast<int>(rows(counts)), experts,
                data<double>(call.outs[0]), call.accumulates(0));
}

void expert_balance(const KernelCall& call) {
  launch(*call.stream, dim3(1), dim3(256), 0, measure_balance, load_of(call, call.ins[0]),
         static_cast<int>(call.ins[0].elements()), scalar_of(call, call.outs[0]));
}

void balance_bias(const KernelCall& call) {
  const View &bias = call.ins[BalanceBiasIn::kBias], &load = call.ins[BalanceBiasIn::kLoad];
  launch(*call.stream, dim3(1), dim3(256), 0, move_biases, any_data("balance_bias", bias),
         any_data("balance_bias", call.outs[0]), load_of(call, load), static_cast<int>(load.elements()),
         scalar_of(call, call.ins[BalanceBiasIn::kFinite]), static_cast<float>(call.attributes.number("rate")));
}

}  // namespace kintsugi::KINTSUGI_GPU
