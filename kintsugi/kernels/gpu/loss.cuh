// Losses: cross-entropy from the statistics of the head, of whole samples or pixels by class, and squared differences;
// scores per sample, and how often classes are found. Sums are in fp64, over blocks that depend only on the shapes, and
// then over blocks.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/loss_terms.h"

namespace kintsugi::KINTSUGI_GPU {

int64_t class_loss_workspace(const KernelShapes&);
int64_t cross_entropy_workspace(const KernelShapes&);
int64_t squared_error_workspace(const KernelShapes&);

namespace {

using kernels::ClassLossIn;
using kernels::CrossEntropyIn;
using kernels::SampleScoresIn;
using kernels::SampleScoresOut;

constexpr int kThreads = 256;

// One block: sums what `terms` gives for some of its items.
template <typename F>
__global__ void __launch_bounds__(kThreads) sum_terms(F terms, int64_t items, LossTerm* blocks) {
  __shared__ double scratch[32];
  LossTerm sum;
  for (int64_t i = first_piece(); i < items; i += all_threads()) {
    const LossTerm term = terms(i);
    sum.loss += term.loss;
    sum.count += term.count;
  }
  sum.loss = block_sum(sum.loss, scratch);
  sum.count = block_sum(sum.count, scratch);
  if (threadIdx.x == 0) blocks[blockIdx.x] = sum;
}

// The scalar outputs of a loss: fp64 or fp32.
struct LossSums {
  void *loss, *count;
  bool wide, add_loss, add_count;

  __device__ void put(void* to, double x, bool add) const {
    if (wide) {
      auto* const at = static_cast<double*>(to);
      *at = add ? *at + x : x;
    } else {
      auto* const at = static_cast<float*>(to);
      *at = static_cast<float>(add ? static_cast<double>(*at) + x : x);
    }
  }
};

__global__ void __launch_bounds__(kThreads) join_terms(const LossTerm* blocks, int count, LossSums to) {
  __shared__ double scratch[32];
  LossTerm sum;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    sum.loss += blocks[i].loss;
    sum.count += blocks[i].count;
  }
  sum.loss = block_sum(sum.loss, scratch);
  sum.count = block_sum(sum.count, scratch);
  if (threadIdx.x != 0) return;
  to.put(to.loss, sum.loss, to.add_loss);
  to.put(to.count, sum.count, to.add_count);
}

int64_t sum_blocks_of(int64_t items) {
  return std::clamp<int64_t>(items / 1024, 1, 264);
}
int64_t sums_workspace(int64_t items) {
  return sum_blocks_of(items) * static_cast<int64_t>(sizeof(LossTerm));
}

template <typename F>
void launch_sums(std::string_view kind, const KernelCall& call, const F& terms, int64_t items, std::byte* workspace) {
  const LossSums to = {.loss = call.outs[0].data,
                       .count = call.outs[1].data,
                       .wide = is_wide_scalar(kind, call.outs[0]),
                       .add_loss = call.accumulates(0),
                       .add_count = call.accumulates(1)};
  base::require(is_wide_scalar(kind, call.outs[1]) == to.wide, "kernel", "{} with scalars of two types", kind);
  auto* const blocks = reinterpret_cast<LossTerm*>(workspace);
  const int64_t count = sum_blocks_of(items);
  launch(*call.stream, dim3(static_cast<unsigned>(count)), dim3(kThreads), 0, sum_terms<F>, terms, items, blocks);
  launch(*call.stream, dim3(1), dim3(kThreads), 0, join_terms, blocks, static_cast<int>(count), to);
}

// --- Cross-entropy

template <typename T>
__global__ void __launch_bounds__(kThreads)
    spread_loss(TokenTerms t, int64_t count, LossScalar dloss, T* dlse, T* dtarget, bool add_lse, bool add_target) {
  const float d = dloss();
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    const float made = t.counts(i) ? d : 0;
    put(&dlse[i], made, add_lse);
    put(&dtarget[i], -made, add_target);
  }
}

// --- Scores

struct SampleScores {
  double *log_likelihood, *count, *misses;  // [batch]
};

// One block per sample.
__global__ void __launch_bounds__(kThreads)
    sample_rows(TokenTerms t, const float* top, int64_t columns, SampleScores to) {
  __shared__ double scratch[32];
  const int64_t sample = blockIdx.x;
  double likelihood = 0, count = 0, misses = 0;
  for (int64_t s = threadIdx.x; s < columns; s += kThreads) {
    const int64_t i = sample * columns + s;
    const LossTerm term = t(i);
    if (term.count == 0) continue;
    likelihood -= term.loss;
    count += 1;
    misses += one_of(t.target, i) >= top[i] ? 0 : 1;
  }
  likelihood = block_sum(likelihood, scratch);
  count = block_sum(count, scratch);
  misses = block_sum(misses, scratch);
  if (threadIdx.x != 0) return;
  to.log_likelihood[sample] = likelihood;
  to.count[sample] = count;
  to.misses[sample] = misses;
}

// --- Classes

// logits: [batch spatial... class], labels: [batch spatial...], weights: [batch], absent for class_hits
template <typename T>
struct Samples {
  const T* logits;
  const int32_t* labels;
  AnyData weights;
  Places places;
  int64_t count;
  Divisor each;  // labels of a sample
  int classes;
  float smoothing;

  __device__ bool counts(int64_t at) const {
    return at < count && labels[at] >= 0 && labels[at] < classes && places.real(at);
  }
  __device__ float weight(int64_t at) const { return one_of(weights, each.quotient(at)); }
};

// Of the logits of a label.
struct LogitSums {
  float log_sum_exp, mean;
};

// By 32 lanes; `here`: number of classes, 0 if not needed.
template <typename T>
__device__ LogitSums logit_sums(const T* logits, int here) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float top = -INFINITY;
  for (int c = lane; c < here; c += 32) {
    const float x = widen(logits[c]);
    if (!(x <= top)) top = x;  // also propagates NaN
  }
  top = lanes_max(top);
  Sums<2> sums = {};
  for (int c = lane; c < here; c += 32) {
    const float x = widen(logits[c]);
    sums.at[0] += expf(x - top);
    sums.at[1] += x;
  }
  sums = lanes_sum(sums);
  return {top + logf(sums.at[0]), sums.at[1] / static_cast<float>(here)};
}

// 32 lanes per label.
template <typename T>
__global__ void __launch_bounds__(kThreads) sample_terms(Samples<T> s, LossTerm* terms) {
  const int64_t at = first_piece() / 32;
  const bool counts = s.counts(at);
  const T* const logits = s.logits + (at < s.count ? at : 0) * s.classes;
  const LogitSums sums = logit_sums(logits, counts ? s.classes : 0);
  if (threadIdx.x % 32 != 0 || at >= s.count) return;
  LossTerm made;
  if (counts) {
    const auto weight = static_cast<double>(s.weight(at));
    double target = static_cast<double>(widen(logits[s.labels[at]]));
    if (s.smoothing > 0) target += static_cast<double>(s.smoothing) * (static_cast<double>(sums.mean) - target);
    made = {weight * (static_cast<double>(sums.log_sum_exp) - target), weight};
  }
  terms[at] = made;
}

// Whether a label is the most likely class, and one of the five most likely: `loss` and `count` of its term. The rank
// of a label is the number of classes with a larger logit, plus earlier classes with an equal one.
template <typename T>
__global__ void __launch_bounds__(kThreads) hit_terms(Samples<T> s, LossTerm* terms) {
  const int64_t at = first_piece() / 32;
  const bool counts = s.counts(at);
  const T* const logits = s.logits + (at < s.count ? at : 0) * s.classes;
  const int label = counts ? s.labels[at] : 0;
  const float own = counts ? widen(logits[label]) : 0;
  int before = 0;
  for (int c = static_cast<int>(threadIdx.x) % 32; counts && c < s.classes; c += 32) {
    const float x = widen(logits[c]);
    before += x > own || (x == own && c < label) ? 1 : 0;
  }
  before = lanes_sum(before);
  if (threadIdx.x % 32 != 0 || at >= s.count) return;
  const bool found = counts && own == own;
  terms[at] = {found && before < 1 ? 1.0 : 0.0, found && before < 5 ? 1.0 : 0.0};
}

struct MadeTerms {
  const LossTerm* terms;
  __device__ LossTerm operator()(int64_t i) const { return terms[i]; }
};

// dlogits = dloss * weight * (softmax - (1 - smoothing) at the label - smoothing / classes)
template <typename T>
__global__ void __launch_bounds__(kThreads) sample_grad(Samples<T> s, LossScalar dloss, T* dlogits, bool add) {
  const int64_t at = first_piece() / 32;
  const bool counts = s.counts(at);
  const int64_t begin = (at < s.count ? at : 0) * s.classes;
  const float lse = logit_sums(s.logits + begin, counts ? s.classes : 0).log_sum_exp;
  if (at >= s.count) return;
  const float by = counts ? dloss() * s.weight(at) : 0, everywhere = s.smoothing / static_cast<float>(s.classes);
  for (int c = static_cast<int>(threadIdx.x) % 32; c < s.classes; c += 32) {
    float slope = 0;
    if (counts) slope = expf(widen(s.logits[begin + c]) - lse) - (c == s.labels[at] ? 1 - s.smoothing : 0) - everywhere;
    put(&dlogits[begin + c], by * slope, add);
  }
}

// Calls f with the typed Samples of a call.
template <typename F>
void with_samples(const KernelCall& call, const F& f) {
  using In = ClassLossIn;
  const View &logits = call.ins[In::kLogits], &labels = call.ins[In::kLabels];
  const View weights = call.ins.size() > In::kWeights ? call.ins[In::kWeights] : View();
  const int64_t samples = labels.shape()[0].size;
  dispatch("class_loss", logits.dtype(), [&]<typename T>(T) {
    f(Samples<T>{.logits = data<T>(logits),
                 .labels = data<int32_t>(labels),
                 .weights = any_data("class_loss", weights),
                 .places = places_of("class_loss", call, labels.shape()),
                 .count = labels.elements(),
                 .each = Divisor(samples == 0 ? 1 : std::max<int64_t>(labels.elements() / samples, 1)),
                 .classes = static_cast<int>(width(logits.shape())),
                 .smoothing = static_cast<float>(call.attributes.number_or("smoothing", 0.0))});
  });
}
dim3 blocks_of_samples(int64_t count) {
  return dim3(static_cast<unsigned>((count + kThreads / 32 - 1) / (kThreads / 32)));
}

// --- Squared differences

// y, targets: [batch spatial... target]; NaN marks a missing target.
struct Differences {
  AnyData y, targets;
  Places places;

  __device__ LossTerm operator()(int64_t i) const {
    const double d = static_cast<double>(one_of(y, i)) - static_cast<double>(one_of(targets, i));
    return counts(i) ? LossTerm{d * d, 1} : LossTerm();
  }
  __device__ bool counts(int64_t i) const {
    const float target = one_of(targets, i);
    return target == target && places.real(i);
  }
};
Differences differences_of(const KernelCall& call) {
  return {.y = any_data("squared_error", call.ins[0]),
          .targets = any_data("squared_error", call.ins[1]),
          .places = places_of("squared_error", call, call.ins[0].shape())};
}

__global__ void __launch_bounds__(kThreads)
    spread_differences(Differences s, int64_t count, LossScalar dloss, AnyData dy, bool add) {
  const float twice = 2 * dloss();
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    const float made[1] = {s.counts(i) ? twice * (one_of(s.y, i) - one_of(s.targets, i)) : 0};
    dy.put(i, made, add);
  }
}

}  // namespace

int64_t cross_entropy_workspace(const KernelShapes& s) {
  return sums_workspace(s.ins[CrossEntropyIn::kLabels]->shape.elements());
}

void cross_entropy(const KernelCall& call) {
  const View& labels = call.ins[CrossEntropyIn::kLabels];
  const TokenTerms terms = {.lse = any_data("cross_entropy", call.ins[CrossEntropyIn::kLse]),
                            .target = any_data("cross_entropy", call.ins[CrossEntropyIn::kTarget]),
                            .labels = data<int32_t>(labels),
                            .places = places_of("cross_entropy", call, labels.shape())};
  launch_sums("cross_entropy", call, terms, labels.elements(), call.workspace.data());
}

void cross_entropy_grad(const KernelCall& call) {
  const View& labels = call.ins[0];
  const TokenTerms terms = {.lse = {},
                            .target = {},
                            .labels = data<int32_t>(labels),
                            .places = places_of("cross_entropy", call, labels.shape())};
  dispatch("cross_entropy_grad", call.outs[0].dtype(), [&]<typename T>(T) {
    launch_pieces(*call.stream, labels.elements(), spread_loss<T>, terms, labels.elements(),
                  loss_scalar("cross_entropy_grad", call.ins[1]), data<T>(call.outs[0]), data<T>(call.outs[1]),
                  call.accumulates(0), call.accumulates(1));
  });
}

void sample_scores(const KernelCall& call) {
  using In = SampleScoresIn;
  using Out = SampleScoresOut;
  const View &labels = call.ins[In::kLabels], &top = call.ins[In::kTop];
  base::require(top.dtype() == DType::f32, "kernel", "sample_scores of {}", name_of(top.dtype()));
  const TokenTerms terms = {.lse = any_data("sample_scores", call.ins[In::kLse]),
                            .target = any_data("sample_scores", call.ins[In::kTarget]),
                            .labels = data<int32_t>(labels),
                            .places = places_of("sample_scores", call, labels.shape())};
  const int64_t samples = labels.size("batch");
  if (samples == 0) return;
  launch(*call.stream, dim3(static_cast<unsigned>(samples)), dim3(kThreads), 0, sample_rows, terms, data<float>(top),
         labels.size("seq"),
         SampleScores{.log_likelihood = data<double>(call.outs[Out::kLogLikelihood]),
                      .count = data<double>(call.outs[Out::kCount]),
                      .misses = data<double>(call.outs[Out::kMisses])});
}

// A term per label, then their sums.
int64_t class_loss_workspace(const KernelShapes& s) {
  const int64_t labels = s.ins[ClassLossIn::kLabels]->shape.elements();
  return labels * static_cast<int64_t>(sizeof(LossTerm)) + sums_workspace(labels);
}

void class_loss(const KernelCall& call) {
  with_samples(call, [&]<typename T>(const Samples<T>& s) {
    auto* const terms = reinterpret_cast<LossTerm*>(call.workspace.data());
    launch(*call.stream, blocks_of_samples(s.count), dim3(kThreads), 0, sample_terms<T>, s, terms);
    launch_sums("class_loss", call, MadeTerms{terms}, s.count, reinterpret_cast<std::byte*>(terms + s.count));
  });
}

void class_hits(const KernelCall& call) {
  with_samples(call, [&]<typename T>(const Samples<T>& s) {
    auto* const terms = reinterpret_cast<LossTerm*>(call.workspace.data());
    launch(*call.stream, blocks_of_samples(s.count), dim3(kThreads), 0, hit_terms<T>, s, terms);
    launch_sums("class_hits", call, MadeTerms{terms}, s.count, reinterpret_cast<std::byte*>(terms + s.count));
  });
}

void class_loss_grad(const KernelCall& call) {
  with_samples(call, [&]<typename T>(const Samples<T>& s) {
    base::require(call.outs[0].dtype() == call.ins[ClassLossIn::kLogits].dtype(), "kernel", "class_loss_grad to {}",
                  name_of(call.outs[0].dtype()));
    launch(*call.stream, blocks_of_samples(s.count), dim3(kThreads), 0, sample_grad<T>, s,
           loss_scalar("class_loss_grad", call.ins[ClassLossIn::kDloss]), data<T>(call.outs[0]), call.accumulates(0));
  });
}

int64_t squared_error_workspace(const KernelShapes& s) {
  return sums_workspace(s.ins[0]->shape.elements());
}

void squared_error(const KernelCall& call) {
  launch_sums("squared_error", call, differences_of(call), call.ins[0].elements(), call.workspace.data());
}

void squared_error_grad(const KernelCall& call) {
  const int64_t count = call.outs[0].elements();
  launch_pieces(*call.stream, count, spread_differences, differences_of(call), count,
                loss_scalar("squared_error_grad", call.ins[2]), any_data("squared_error_grad", call.outs[0]),
                call.accumulates(0));
}

}  // namespace kintsugi::KINTSUGI_GPU
