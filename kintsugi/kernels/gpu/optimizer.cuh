// The update: sums of squares of blocks of 1,024 elements in fp64, what gradients are scaled by, AdamW.
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using kernels::AdamwIn;
using kernels::AdamwOut;
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

struct AdamwNumbers {
  const double *factor, *finite, *updates;
  const Numbers* later;
  float beta1, beta2, epsilon, decay;
};

template <typename G, typename O>
__global__ void adamw_step(float* w, const float* w_in, const G* g, float* m, const float* m_in, float* v,
                           const float* v_in, O* weight, int64_t count, AdamwNumbers s) {
  const bool updates = *s.finite != 0;
  const double t = *s.updates + 1;
  const auto correction1 = static_cast<float>(1 / (1 - pow(static_cast<double>(s.beta1), t))),
             correction2 = static_cast<float>(1 / (1 - pow(static_cast<double>(s.beta2), t)));
  const auto factor = static_cast<float>(*s.factor), rate = static_cast<float>(s.later->learning_rate);
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    float own = w_in[i], mean = m_in[i], square = v_in[i];
    if (updates) {
      const float gradient = widen(g[i]) * factor;
      mean = s.beta1 * mean + (1 - s.beta1) * gradient;
      square = s.beta2 * square + (1 - s.beta2) * gradient * gradient;
      own -= rate * (mean * correction1 / (sqrtf(square * correction2) + s.epsilon) + s.decay * own);
    }
    w[i] = own;
    m[i] = mean;
    v[i] = square;
    if (weight != nullptr) weight[i] = narrow<O>(own);
  }
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
  const View &w = call.outs[AdamwOut::kW], &g = call.ins[AdamwIn::kG];
  for (const size_t i : {AdamwIn::kW, AdamwIn::kM, AdamwIn::kV})
    base::require(call.ins[i].dtype() == DType::f32, "adamw", "{} on a device", name_of(call.ins[i].dtype()));
  const AdamwNumbers s{data<double>(call.ins[AdamwIn::kFactor]),
                       data<double>(call.ins[AdamwIn::kFinite]),
                       data<double>(call.ins[AdamwIn::kUpdates]),
                       call.later,
                       static_cast<float>(call.attributes.number("beta1")),
                       static_cast<float>(call.attributes.number("beta2")),
                       static_cast<float>(call.attributes.number("epsilon")),
                       static_cast<float>(call.attributes.number("weight_decay"))};
  const View weight = call.outs.size() > AdamwOut::kWeight ? call.outs[AdamwOut::kWeight] : View();
  dispatch("adamw", g.dtype(), [&]<typename G>(G) {
    dispatch("adamw", weight.data == nullptr ? DType::f32 : weight.dtype(), [&]<typename O>(O) {
      launch(*call.stream, blocks_for(w.elements()), dim3(256), 0, adamw_step<G, O>, data<float>(w),
             data<float>(call.ins[AdamwIn::kW]), data<G>(g), data<float>(call.outs[AdamwOut::kM]),
             data<float>(call.ins[AdamwIn::kM]), data<float>(call.outs[AdamwOut::kV]),
             data<float>(call.ins[AdamwIn::kV]), data<O>(weight), w.elements(), s);
    });
  });
}

}  // namespace kintsugi::KINTSUGI_GPU
