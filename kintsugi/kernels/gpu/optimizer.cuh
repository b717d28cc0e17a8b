// The update: sums of squares of blocks of 1,024 elements in fp64, what gradients are scaled by, AdamW and SGD, which
// read and write each state once.
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using kernels::AdamwIn;
using kernels::AdamwOut;
using kernels::SgdIn;
using kernels::SgdOut;
using kernels::UpdateScaleIn;
using kernels::UpdateScaleOut;

template <typename T, typename S>
__global__ void square_blocks(const T* g, int64_t count, S* blocks, bool add) {
  __shared__ double scratch[32];
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * 1024;
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < 1024; i += 256) {
    const double x = begin + i < count ? static_cast<double>(widen(g[begin + i])) : 0;
    sum += x * x;
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) blocks[blockIdx.x] = static_cast<S>(add ? static_cast<double>(blocks[blockIdx.x]) + sum : sum);
}

// Lists of numbers, added one list after another.
struct Lists {
  static constexpr int kMost = 100;
  const void* data[kMost];
  int64_t count[kMost];
  int lists = 0;
};

// total: where the sum of earlier lists is, or `first`.
template <typename S>
__global__ void sum_lists(Lists lists, double* total, bool first) {
  __shared__ double scratch[32];
  double all = first ? 0 : *total;
  for (int l = 0; l < lists.lists; ++l) {
    const auto* x = static_cast<const S*>(lists.data[l]);
    double sum = 0;
    for (int64_t i = threadIdx.x; i < lists.count[l]; i += blockDim.x) sum += static_cast<double>(x[i]);
    all += block_sum(sum, scratch);
  }
  __syncthreads();
  if (threadIdx.x == 0) *total = all;
}

void sum_all(const KernelCall& call, std::span<const View> blocks, double* total) {
  Lists lists;
  bool first = true;
  const auto flush = [&](DType dtype) {
    if (dtype == DType::f64)
      launch(*call.stream, dim3(1), dim3(1024), 0, sum_lists<double>, lists, total, first);
    else
      launch(*call.stream, dim3(1), dim3(1024), 0, sum_lists<float>, lists, total, first);
    lists.lists = 0;
    first = false;
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    lists.data[lists.lists] = blocks[i].data;
    lists.count[lists.lists++] = blocks[i].elements();
    if (lists.lists == Lists::kMost || i + 1 == blocks.size() || blocks[i + 1].dtype() != blocks[i].dtype())
      flush(blocks[i].dtype());
  }
  if (blocks.empty()) flush(DType::f64);
}

__global__ void finish_sum(const double* total, double* to, bool add) {
  *to = add ? *to + *total : *total;
}

__global__ void scale_update(const double* squares, const double* count, const double* loss_scale, double clip,
                             double* norm, double* factor, double* finite) {
  const double s = 1 / (*count * *loss_scale);
  const double n = s * sqrt(*squares);
  const bool good = n - n == 0 && *count > 0;
  const double clipped = clip / (n + 1e-6);
  const double f = clip > 0 ? s * (clipped < 1 ? clipped : 1.0) : s;
  *norm = n;
  *finite = good ? 1 : 0;
  *factor = good ? f : 0;
}

// What updates share. The states are fp32, and may be in place; a new weight is also stored in another type, if any.
template <typename G>
struct Update {
  const float *w_in, *m_in, *v_in;
  const G* g;
  float *w, *m, *v;
  AnyData weight;
  const double *factor, *finite;
  const Numbers* later;
  int64_t count;
  float decay;
};
template <typename G>
struct Adamw {
  Update<G> u;
  const double* updates;
  float beta1, beta2, epsilon;
};
template <typename G>
struct Sgd {
  Update<G> u;
  float momentum;
};

// N elements at a time.
template <typename G, int N>
__global__ void __launch_bounds__(256) adamw_step(Adamw<G> a, int64_t begin, int64_t end) {
  const Update<G>& u = a.u;
  __shared__ float corrections[2];
  if (threadIdx.x < 2) {
    const double t = *a.updates + 1, beta = static_cast<double>(threadIdx.x == 0 ? a.beta1 : a.beta2);
    corrections[threadIdx.x] = static_cast<float>(1 / (1 - pow(beta, t)));
  }
  __syncthreads();
  const bool updates = *u.finite != 0;
  const auto factor = static_cast<float>(*u.factor), rate = static_cast<float>(u.later->learning_rate);
  for (int64_t at = begin + first_piece() * N; at < end; at += all_threads() * N) {
    float w[N], m[N], v[N], g[N];
    load_run(w, u.w_in + at), load_run(m, u.m_in + at), load_run(v, u.v_in + at), load_run(g, u.g + at);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) {
      if (!updates) continue;
      const float gradient = g[i] * factor;
      m[i] = a.beta1 * m[i] + (1 - a.beta1) * gradient;
      v[i] = a.beta2 * v[i] + (1 - a.beta2) * gradient * gradient;
      w[i] -= rate * (m[i] * corrections[0] / (sqrtf(v[i] * corrections[1]) + a.epsilon) + u.decay * w[i]);
    }
    put_run(u.w + at, w, false), put_run(u.m + at, m, false), put_run(u.v + at, v, false);
    if (u.weight.data != nullptr) u.weight.put(at, w, false);
  }
}

template <typename G, int N>
__global__ void __launch_bounds__(256) sgd_step(Sgd<G> s, int64_t begin, int64_t end) {
  const Update<G>& u = s.u;
  const bool updates = *u.finite != 0;
  const auto factor = static_cast<float>(*u.factor), rate = static_cast<float>(u.later->learning_rate);
  for (int64_t at = begin + first_piece() * N; at < end; at += all_threads() * N) {
    float w[N], m[N], g[N];
    load_run(w, u.w_in + at), load_run(m, u.m_in + at), load_run(g, u.g + at);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) {
      if (!updates) continue;
      m[i] = s.momentum * m[i] + (g[i] * factor + u.decay * w[i]);
      w[i] -= rate * m[i];
    }
    put_run(u.w + at, w, false), put_run(u.m + at, m, false);
    if (u.weight.data != nullptr) u.weight.put(at, w, false);
  }
}

constexpr int kUpdated = 4;  // elements of a thread at one time

// Calls f(N, begin, end) for the elements that are read kUpdated at a time, and for those behind them.
template <typename G, typename F>
void in_runs(const Update<G>& u, const F& f) {
  const bool wide = all_wide(u.w_in, u.m_in, u.v_in, u.g, u.w, u.m, u.v, u.weight.data);
  const int64_t runs = wide ? u.count / kUpdated * kUpdated : 0;
  if (runs > 0) f(std::integral_constant<int, kUpdated>(), 0, runs);
  if (runs < u.count) f(std::integral_constant<int, 1>(), runs, u.count);
}

// The operands that all updates have, at their positions.
template <typename In, typename Out, typename G>
Update<G> update_of(std::string_view kind, const KernelCall& call) {
  for (const size_t i : {In::kW, In::kM})
    base::require(call.ins[i].dtype() == DType::f32, "kernel", "{} of {} on a device", kind,
                  name_of(call.ins[i].dtype()));
  Update<G> u = {};
  u.w_in = data<float>(call.ins[In::kW]), u.m_in = data<float>(call.ins[In::kM]);
  u.w = data<float>(call.outs[Out::kW]), u.m = data<float>(call.outs[Out::kM]);
  u.g = data<G>(call.ins[In::kG]);
  if (call.outs.size() > Out::kWeight) u.weight = any_data(kind, call.outs[Out::kWeight]);
  u.factor = data<double>(call.ins[In::kFactor]), u.finite = data<double>(call.ins[In::kFinite]);
  u.later = call.later;
  u.count = call.outs[Out::kW].elements();
  u.decay = static_cast<float>(call.attributes.number("weight_decay"));
  return u;
}

}  // namespace

int64_t sum_blocks_workspace(const KernelShapes&) {
  return 64;
}

void sum_squares(const KernelCall& call) {
  const View &g = call.ins[0], &blocks = call.outs[0];
  dispatch("sum_squares", g.dtype(), [&]<typename T>(T) {
    const auto go = [&]<typename S>(S) {
      launch(*call.stream, dim3(static_cast<unsigned>(blocks.elements())), dim3(256), 0, square_blocks<T, S>,
             data<T>(g), g.elements(), data<S>(blocks), call.accumulates(0));
    };
    blocks.dtype() == DType::f64 ? go(double{}) : go(float{});
  });
}

void sum_blocks(const KernelCall& call) {
  auto* total = reinterpret_cast<double*>(call.workspace.data());
  sum_all(call, call.ins, total);
  launch(*call.stream, dim3(1), dim3(1), 0, finish_sum, total, data<double>(call.outs[0]), call.accumulates(0));
}

void update_scale(const KernelCall& call) {
  auto* total = reinterpret_cast<double*>(call.workspace.data());
  sum_all(call, call.ins.subspan(UpdateScaleIn::kBlocks), total);
  launch(*call.stream, dim3(1), dim3(1), 0, scale_update, total, data<double>(call.ins[UpdateScaleIn::kCount]),
         data<double>(call.ins[UpdateScaleIn::kLossScale]), call.attributes.number("clip"),
         data<double>(call.outs[UpdateScaleOut::kNorm]), data<double>(call.outs[UpdateScaleOut::kFactor]),
         data<double>(call.outs[UpdateScaleOut::kFinite]));
}

void adamw(const KernelCall& call) {
  base::require(call.ins[AdamwIn::kV].dtype() == DType::f32, "kernel", "adamw of {} on a device",
                name_of(call.ins[AdamwIn::kV].dtype()));
  dispatch("adamw", call.ins[AdamwIn::kG].dtype(), [&]<typename G>(G) {
    Adamw<G> a = {.u = update_of<AdamwIn, AdamwOut, G>("adamw", call),
                  .updates = data<double>(call.ins[AdamwIn::kUpdates]),
                  .beta1 = static_cast<float>(call.attributes.number("beta1")),
                  .beta2 = static_cast<float>(call.attributes.number("beta2")),
                  .epsilon = static_cast<float>(call.attributes.number("epsilon"))};
    a.u.v_in = data<float>(call.ins[AdamwIn::kV]), a.u.v = data<float>(call.outs[AdamwOut::kV]);
    in_runs(a.u, [&]<int N>(std::integral_constant<int, N>, int64_t begin, int64_t end) {
      launch(*call.stream, blocks_for((end - begin) / N), dim3(256), 0, adamw_step<G, N>, a, begin, end);
    });
  });
}

void sgd(const KernelCall& call) {
  dispatch("sgd", call.ins[SgdIn::kG].dtype(), [&]<typename G>(G) {
    const Sgd<G> s = {.u = update_of<SgdIn, SgdOut, G>("sgd", call),
                      .momentum = static_cast<float>(call.attributes.number("momentum"))};
    in_runs(s.u, [&]<int N>(std::integral_constant<int, N>, int64_t begin, int64_t end) {
      launch(*call.stream, blocks_for((end - begin) / N), dim3(256), 0, sgd_step<G, N>, s, begin, end);
    });
  });
}

}  // namespace kintsugi::KINTSUGI_GPU
