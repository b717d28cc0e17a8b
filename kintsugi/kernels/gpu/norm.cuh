// Layer norm and RMS norm, a block of threads for each row, and their gradients.
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {

int64_t norm_grad_workspace(const KernelShapes&);

namespace {

using kernels::NormGradIn;
using kernels::NormGradOut;
using kernels::NormIn;

constexpr int kThreads = 256;
constexpr int kColumns = 64;      // of a block that sums over rows
constexpr int64_t kChunks = 264;  // parts of the rows, for the gradients of gamma and beta

// Of a row: what it is shifted and scaled by.
struct RowStatistics {
  float mean, inverse;
};

template <bool kMean, typename T>
__device__ RowStatistics statistics_of(const T* x, int width, float epsilon, float* scratch) {
  float mean = 0;
  if (kMean) {
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < width; i += kThreads) sum += widen(x[i]);
    mean = block_sum(sum, scratch) / static_cast<float>(width);
  }
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kThreads) {
    const float d = widen(x[i]) - mean;
    squares += d * d;
  }
  squares = block_sum(squares, scratch);
  return {mean, rsqrtf(squares / static_cast<float>(width) + epsilon)};
}

template <bool kMean, typename T, typename W>
__global__ void normalize(const T* x, const W* gamma, const W* beta, T* y, int width, float epsilon, float offset,
                          bool add) {
  __shared__ float scratch[32];
  x += static_cast<int64_t>(blockIdx.x) * width;
  y += static_cast<int64_t>(blockIdx.x) * width;
  const RowStatistics s = statistics_of<kMean>(x, width, epsilon, scratch);
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kThreads) {
    const float shift = beta == nullptr ? 0 : widen(beta[i]);
    put(&y[i], (widen(x[i]) - s.mean) * s.inverse * (offset + widen(gamma[i])) + shift, add);
  }
}

template <bool kMean, typename T, typename W>
__global__ void normalize_grad(const T* x, const W* gamma, const T* dy, T* dx, RowStatistics* rows, int width,
                               float epsilon, float offset, bool add) {
  __shared__ float scratch[32];
  x += static_cast<int64_t>(blockIdx.x) * width;
  dy += static_cast<int64_t>(blockIdx.x) * width;
  dx += static_cast<int64_t>(blockIdx.x) * width;
  const RowStatistics s = statistics_of<kMean>(x, width, epsilon, scratch);
  if (threadIdx.x == 0) rows[blockIdx.x] = s;
  float sum = 0, product = 0;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kThreads) {
    const float g = widen(dy[i]) * (offset + widen(gamma[i])), xhat = (widen(x[i]) - s.mean) * s.inverse;
    sum += g;
    product += g * xhat;
  }
  sum = kMean ? block_sum(sum, scratch) / static_cast<float>(width) : 0;
  product = block_sum(product, scratch) / static_cast<float>(width);
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kThreads) {
    const float g = widen(dy[i]) * (offset + widen(gamma[i])), xhat = (widen(x[i]) - s.mean) * s.inverse;
    put(&dx[i], s.inverse * (g - sum - xhat * product), add);
  }
}

// partial: [chunk 2 width]; a block has kColumns columns and 4 rows at a time.
template <typename T>
__global__ void column_sums(const T* x, const T* dy, const RowStatistics* rows, float* partial, int64_t count,
                            int width) {
  __shared__ float sums[2][4][kColumns];
  const int lane = static_cast<int>(threadIdx.x) % kColumns, part = static_cast<int>(threadIdx.x) / kColumns;
  const int column = static_cast<int>(blockIdx.x) * kColumns + lane;
  const int64_t begin = count * blockIdx.y / gridDim.y, end = count * (blockIdx.y + 1) / gridDim.y;
  float gamma = 0, beta = 0;
  if (column < width)
    for (int64_t row = begin + part; row < end; row += 4) {
      const float d = widen(dy[row * width + column]);
      beta += d;
      gamma += d * (widen(x[row * width + column]) - rows[row].mean) * rows[row].inverse;
    }
  sums[0][part][lane] = gamma;
  sums[1][part][lane] = beta;
  __syncthreads();
  if (part < 2 && column < width) {
    const float sum = sums[part][0][lane] + sums[part][1][lane] + sums[part][2][lane] + sums[part][3][lane];
    partial[(static_cast<int64_t>(blockIdx.y) * 2 + part) * width + column] = sum;
  }
}

template <typename G>
__global__ void add_chunks(const float* partial, G* to, int chunks, int which, int width, bool add) {
  const auto column = static_cast<int>(first_piece());
  if (column >= width) return;
  float sum = 0;
  for (int c = 0; c < chunks; ++c) sum += partial[(static_cast<int64_t>(c) * 2 + which) * width + column];
  put(&to[column], sum, add);
}

template <bool kMean>
void forward(const KernelCall& call) {
  const View &x = call.ins[NormIn::kX], &gamma = call.ins[NormIn::kGamma];
  const auto width = static_cast<int>(gamma.elements());
  const int64_t count = width == 0 ? 0 : x.elements() / width;
  const auto epsilon = static_cast<float>(call.attributes.number("epsilon")),
             offset = static_cast<float>(call.attributes.number_or("gamma_offset", 0));
  dispatch("a norm", x.dtype(), [&]<typename T>(T) {
    dispatch("a norm", gamma.dtype(), [&]<typename W>(W) {
      const W* beta = kMean && call.ins.size() > NormIn::kBeta ? data<W>(call.ins[NormIn::kBeta]) : nullptr;
      launch(*call.stream, dim3(static_cast<unsigned>(count)), dim3(kThreads), 0, normalize<kMean, T, W>, data<T>(x),
             data<W>(gamma), beta, data<T>(call.outs[0]), width, epsilon, offset, call.accumulates(0));
    });
  });
}

int64_t chunks_of(int64_t count) {
  return std::clamp<int64_t>(count / 16, 1, kChunks);
}

template <bool kMean>
void backward(const KernelCall& call) {
  const View &x = call.ins[NormGradIn::kX], &gamma = call.ins[NormGradIn::kGamma], &dy = call.ins[NormGradIn::kDy];
  const auto width = static_cast<int>(gamma.elements());
  const int64_t count = width == 0 ? 0 : x.elements() / width;
  if (count == 0) return;
  const auto epsilon = static_cast<float>(call.attributes.number("epsilon")),
             offset = static_cast<float>(call.attributes.number_or("gamma_offset", 0));
  auto* rows = reinterpret_cast<RowStatistics*>(call.workspace.data());
  auto* partial = reinterpret_cast<float*>(rows + count);
  const int64_t chunks = chunks_of(count);
  dispatch("a norm", x.dtype(), [&]<typename T>(T) {
    dispatch("a norm", gamma.dtype(), [&]<typename W>(W) {
      launch(*call.stream, dim3(static_cast<unsigned>(count)), dim3(kThreads), 0, normalize_grad<kMean, T, W>,
             data<T>(x), data<W>(gamma), data<T>(dy), data<T>(call.outs[NormGradOut::kDx]), rows, width, epsilon,
             offset, call.accumulates(NormGradOut::kDx));
    });
    launch(*call.stream, dim3(static_cast<unsigned>((width + kColumns - 1) / kColumns), static_cast<unsigned>(chunks)),
           dim3(kThreads), 0, column_sums<T>, data<T>(x), data<T>(dy), rows, partial, count, width);
  });
  for (size_t out = NormGradOut::kDgamma; out < call.outs.size(); ++out) {
    const View& to = call.outs[out];
    if (to.data == nullptr) continue;
    dispatch("a norm", to.dtype(), [&]<typename G>(G) {
      launch(*call.stream, dim3(static_cast<unsigned>((width + 63) / 64)), dim3(64), 0, add_chunks<G>, partial,
             data<G>(to), static_cast<int>(chunks), static_cast<int>(out - NormGradOut::kDgamma), width,
             call.accumulates(out));
    });
  }
}

}  // namespace

int64_t norm_grad_workspace(const KernelShapes& s) {
  const int64_t width = s.ins[NormGradIn::kGamma]->shape.elements();
  const int64_t count = width == 0 ? 0 : s.ins[NormGradIn::kX]->shape.elements() / width;
  return count * static_cast<int64_t>(sizeof(RowStatistics)) + chunks_of(count) * 2 * width * 4;
}

void layer_norm(const KernelCall& call) {
  forward<true>(call);
}
void layer_norm_grad(const KernelCall& call) {
  backward<true>(call);
}
void rms_norm(const KernelCall& call) {
  forward<false>(call);
}
void rms_norm_grad(const KernelCall& call) {
  backward<false>(call);
}

}  // namespace kintsugi::KINTSUGI_GPU
