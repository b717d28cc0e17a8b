// Merges outputs of attention over two disjoint sets of keys (Rabe, Staats 2021, section 2).
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kThreads = 256;

// o: [rows width], lse: [rows]; o and lse may alias those of a.
template <typename T, typename U>
struct Join {
  const T* o_a;
  const U* o_b;
  T* o;
  const float *lse_a, *lse_b;
  float* lse;
  int64_t rows, width;
  bool add_o, add_lse;
};

// `across` threads per row, N elements at a time. All of them read lse before one overwrites it.
template <typename T, typename U, int N>
__global__ void __launch_bounds__(kPieceThreads) join(Join<T, U> j, int across) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % across, together = kThreads / across;
  for (int64_t begin = static_cast<int64_t>(blockIdx.x) * together; begin < j.rows;
       begin += static_cast<int64_t>(gridDim.x) * together) {
    const int64_t row = begin + thread / across;
    float a = -INFINITY, b = -INFINITY;
    if (row < j.rows) a = j.lse_a[row], b = j.lse_b[row];
    __syncthreads();
    if (row >= j.rows) continue;
    const bool unchanged = b == -INFINITY;  // b adds nothing: the result is bit-identical to a
    const float top = a > b ? a : b, part_a = expf(a - top), part_b = expf(b - top), sum = part_a + part_b;
    if (lane == 0) put(j.lse + row, unchanged ? a : top + logf(sum), j.add_lse);
    if (unchanged && j.o == j.o_a && !j.add_o) continue;
    const float share_a = unchanged ? 1 : part_a / sum, share_b = unchanged ? 0 : part_b / sum;
    for (int64_t i = lane * N; i < j.width; i += across * N) {
      const int64_t at = row * j.width + i;
      const auto x = *reinterpret_cast<const Vec<T, N>*>(j.o_a + at);
      const auto z = *reinterpret_cast<const Vec<U, N>*>(j.o_b + at);
      Vec<T, N> out = {};
      if (j.add_o) out = *reinterpret_cast<const Vec<T, N>*>(j.o + at);
      GPU_UNROLL
      for (int k = 0; k < N; ++k) {
        const float u = widen(x[k]);
        put(&out[k], unchanged ? u : u * share_a + widen(z[k]) * share_b, j.add_o);
      }
      *reinterpret_cast<Vec<T, N>*>(j.o + at) = out;
    }
  }
}

}  // namespace

void attention_join(const KernelCall& call) {
  using In = kernels::AttentionJoinIn;
  using Out = kernels::AttentionOut;
  const View &o_a = call.ins[In::kOA], &o_b = call.ins[In::kOB], &o = call.outs[Out::kO];
  base::require(o_a.dtype() == o.dtype(), "kernel", "attention_join of {} to {} on a device", name_of(o_a.dtype()),
                name_of(o.dtype()));
  for (const View& v : {call.ins[In::kLseA], call.ins[In::kLseB], call.outs[Out::kLse]})
    base::require(v.dtype() == DType::f32, "kernel", "attention_join takes statistics in fp32 on a device, not {}",
                  name_of(v.dtype()));
  if (o.elements() == 0) return;
  dispatch("attention_join", o.dtype(), [&]<typename T>(T) {
    dispatch("attention_join", o_b.dtype(), [&]<typename U>(U) {
      const Join<T, U> j{.o_a = data<T>(o_a),
                         .o_b = data<U>(o_b),
                         .o = data<T>(o),
                         .lse_a = data<float>(call.ins[In::kLseA]),
                         .lse_b = data<float>(call.ins[In::kLseB]),
                         .lse = data<float>(call.outs[Out::kLse]),
                         .rows = rows(o.shape()),
                         .width = width(o.shape()),
                         .add_o = call.accumulates(Out::kO),
                         .add_lse = call.accumulates(Out::kLse)};
      constexpr int kN = std::min(kWide<T>, kWide<U>);
      const bool wide = j.width % kN == 0 && all_wide(j.o_a, j.o_b, j.o);
      int across = 1;
      while (across < 32 && across * (wide ? kN : 1) < j.width) across *= 2;
      launch_pieces(*call.stream, j.rows * across, wide ? join<T, U, kN> : join<T, U, 1>, j, across);
    });
  });
}

}  // namespace kintsugi::KINTSUGI_GPU
