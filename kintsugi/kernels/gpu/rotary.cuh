// Rotary position embedding. A block processes all heads of several adjacent positions, computing their cosines and
// sines once in shared memory.
#include <span>
#include <vector>

#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/rotary_turns.h"
#include "kintsugi/kernels/gpu/strides.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kThreads = 256, kMostPairs = 256;

// A value to rotate: `heads` rows of head_dim per position.
struct Turned {
  const void* x;
  void* y;
  int64_t heads;
  Divisor heads_by;  // heads
};

// Values with the same positions in one launch, such as queries and keys.
struct Rotary {
  static constexpr size_t kMost = 2;
  Turned at[kMost];
  int64_t positions;  // [batch seq]
  int64_t head_dim;
  int together;          // positions per block
  int64_t turned;        // units per row: N pairs each
  Divisor units;         // per row, including units of N elements that are copied
  Divisor seq;           // its size
  LocalIndex index;      // of seq, and its offset
  const Numbers* moved;  // null: no offset
  RotaryTurns<kMostPairs> turns;
};

// Interleaved: pairs are adjacent; else a pair has one element in each half.
template <typename T, int N, bool kInterleaved>
__global__ void __launch_bounds__(kThreads, 4) turn(Rotary r) {
  GPU_DYNAMIC_SHARED(float, cosines);  // [together half], then sines
  const Turned& of = r.at[blockIdx.y];
  const T* const x = static_cast<const T*>(of.x);
  T* const y = static_cast<T*>(of.y);
  wait_for_kernels_before();
  let_next_begin();
  const int half = r.turns.half;
  float* const sines = cosines + r.together * half;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * r.together;
  const auto here = static_cast<int>(r.positions - begin < r.together ? r.positions - begin : r.together);
  for (int i = static_cast<int>(threadIdx.x); i < here * half; i += static_cast<int>(blockDim.x)) {
    const int64_t position = begin + i / half;
    int64_t whole = r.index[position - r.seq.quotient(position) * r.seq.by];
    if (r.moved != nullptr) whole += r.moved->position;
    r.turns.angle(i % half, whole, cosines[i], sines[i]);
  }
  __syncthreads();
  const int64_t count = here * of.heads * r.units.by;
  for (int64_t unit = threadIdx.x; unit < count; unit += blockDim.x) {
    const int64_t row = r.units.quotient(unit), i = unit - row * r.units.by;
    const int64_t first_of_row = (begin * of.heads + row) * r.head_dim;
    if (i >= r.turned) {  // beyond the pairs
      const int64_t at = first_of_row + 2 * half + (i - r.turned) * N;
      if (x != y) *reinterpret_cast<Vec<T, N>*>(y + at) = *reinterpret_cast<const Vec<T, N>*>(x + at);
      continue;
    }
    const int64_t at = first_of_row + (kInterleaved ? 2 : 1) * i * N, other = at + (kInterleaved ? N : half);
    auto a = *reinterpret_cast<const Vec<T, N>*>(x + at), b = *reinterpret_cast<const Vec<T, N>*>(x + other);
    const int64_t table = of.heads_by.quotient(row) * half + i * N;
    constexpr int kFloats = std::min(N, 4);  // 16 bytes
    Vec<float, kFloats> cosine[N / kFloats], sine[N / kFloats];
    GPU_UNROLL
    for (int k = 0; k < N; k += kFloats) {
      cosine[k / kFloats] = *reinterpret_cast<const Vec<float, kFloats>*>(cosines + table + k);
      sine[k / kFloats] = *reinterpret_cast<const Vec<float, kFloats>*>(sines + table + k);
    }
    GPU_UNROLL
    for (int k = 0; k < N; ++k) {
      const float c = cosine[k / kFloats][k % kFloats], s = sine[k / kFloats][k % kFloats];
      T& p = !kInterleaved ? a[k] : 2 * k < N ? a[2 * k % N] : b[2 * k % N];
      T& q = !kInterleaved ? b[k] : 2 * k + 1 < N ? a[(2 * k + 1) % N] : b[(2 * k + 1) % N];
      turn_pair(p, q, c, s);
    }
    *reinterpret_cast<Vec<T, N>*>(y + at) = a;
    *reinterpret_cast<Vec<T, N>*>(y + other) = b;
  }
}

// Number of heads per position of x.
int64_t heads_of(const View& x) {
  return x.shape().stride(static_cast<size_t>(x.shape().find("seq"))) / x.size("head_dim");
}

// The parameters of the first call, common to all.
Rotary rotary_of(const KernelCall& call) {
  const View& x = call.ins[0];
  Rotary r = {};
  r.head_dim = x.size("head_dim"), r.seq = Divisor(x.size("seq"));
  r.positions = x.elements() / (heads_of(x) * r.head_dim);
  base::require(fill_turns(r.turns, call), "kernel", "rotary of heads of {} on a device: at most {} are turned",
                r.head_dim, 2 * kMostPairs);
  r.index = local_index(call.index("seq"));
  r.moved = call.moves("seq") ? call.later : nullptr;
  return r;
}

void turn_all(std::span<const KernelCall> calls) {
  const KernelCall& call = calls[0];
  Rotary r = rotary_of(call);
  bool wide = true;
  int64_t at_position = 0;
  std::vector<device::Stream::Bytes> written;
  for (size_t i = 0; i < calls.size(); ++i) {
    const View &x = calls[i].ins[0], &y = calls[i].outs[0];
    r.at[i] = {x.data, y.data, heads_of(x), Divisor(heads_of(x))};
    at_position = std::max(at_position, heads_of(x) * r.head_dim);
    wide &= all_wide(x.data, y.data);
    written.push_back(bytes_of(y));
  }
  // Enough positions to give each thread several vectors, but enough blocks, and at most 32 KiB of shared memory.
  const int64_t wanted = std::max<int64_t>(1, 32768 / at_position), spread = std::max<int64_t>(1, r.positions / 1056);
  const int half = r.turns.half;
  const int64_t fits = std::max<int64_t>(1, 4096 / std::max(half, 1));
  r.together = static_cast<int>(std::min({wanted, spread, fits}));
  const bool interleaved = call.attributes.integer("interleaved") != 0;
  dispatch("rotary", call.ins[0].dtype(), [&]<typename T>(T) {
    constexpr int kN = kWide<T>;
    const int64_t rest = r.head_dim - 2 * half;
    wide &= half % kN == 0 && rest % kN == 0;
    const int64_t n = wide ? kN : 1;
    r.turned = half / n;
    r.units = Divisor(r.turned + rest / n);
    const auto kernel =
        interleaved ? (wide ? turn<T, kN, true> : turn<T, 1, true>) : (wide ? turn<T, kN, false> : turn<T, 1, false>);
    const int64_t blocks = (r.positions + r.together - 1) / r.together;
    launch_overlapping(*call.stream, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(calls.size())),
                       dim3(kThreads), static_cast<size_t>(r.together) * static_cast<size_t>(half) * 2 * sizeof(float),
                       std::move(written), kernel, r);
  });
}

}  // namespace

// x: [batch seq ... head_dim]
void rotary(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  base::require(x.dtype() == y.dtype() && !call.accumulates(0), "kernel", "rotary of {} to {} on a device",
                name_of(x.dtype()), name_of(y.dtype()));
  if (y.elements() > 0) turn_all({&call, 1});
}

// Fuses queries and keys.
bool rotary_together(std::span<const KernelCall> calls) {
  const View& x = calls[0].ins[0];
  const auto same = [&](const KernelCall& call) {
    const View& other = call.ins[0];
    return call.attributes == calls[0].attributes && other.dtype() == x.dtype() && call.outs[0].dtype() == x.dtype() &&
           other.elements() > 0 && !call.accumulates(0) && other.size("seq") == x.size("seq") &&
           other.size("head_dim") == x.size("head_dim") &&
           other.elements() / heads_of(other) == x.elements() / heads_of(x) && call.moved == calls[0].moved;
  };
  if (calls.size() > Rotary::kMost || !std::all_of(calls.begin(), calls.end(), same)) return false;
  turn_all(calls);
  return true;
}

}  // namespace kintsugi::KINTSUGI_GPU
