// AdamW with moments in bf16, rounded stochastically by random numbers of the position in the whole weight, and in
// 8-bit codes with a scale per block of elements. Numbers and codes are those of the processor.
#include "kintsugi/kernels/adamw8.h"
#include "kintsugi/kernels/gpu/runs.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

using kernels::Adamw8In;
using kernels::Adamw8Out;
using kernels::AdamwIn;
using kernels::AdamwOut;

// The scalars of a step, in device memory or given.
struct AdamwNumbers {
  const double *factor, *finite, *updates;
  const Numbers* later;
  double beta1, beta2, rate;  // rate: factor of the learning rate
  float epsilon, decay;
};
// The same for the threads of a block.
struct AdamwScalars {
  float factor, rate, correction1, correction2;
};

__device__ inline float inverse_correction(double beta, double updates) {
  double power = 1;
  for (auto t = static_cast<int64_t>(updates) + 1; t > 0; t /= 2, beta *= beta)
    if (t % 2 == 1) power *= beta;
  return static_cast<float>(1 / (1 - power));
}
__device__ inline AdamwScalars scalars_of(const AdamwNumbers& n) {
  return {static_cast<float>(*n.factor), static_cast<float>(n.rate * n.later->learning_rate),
          inverse_correction(n.beta1, *n.updates), inverse_correction(n.beta2, *n.updates)};
}

// One element; m and v are replaced. Returns the new weight.
__device__ __forceinline__ float adamw_element(const AdamwNumbers& n, const AdamwScalars& s, float w, float g, float& m,
                                               float& v) {
  const auto beta1 = static_cast<float>(n.beta1), beta2 = static_cast<float>(n.beta2);
  const float gradient = g * s.factor;
  m = beta1 * m + (1 - beta1) * gradient;
  v = beta2 * v + (1 - beta2) * gradient * gradient;
  return w - s.rate * (m * s.correction1 / (sqrtf(v * s.correction2) + n.epsilon) + n.decay * w);
}

AdamwNumbers adamw_numbers(const KernelCall& call, size_t factor, size_t finite, size_t updates) {
  return {.factor = data<double>(call.ins[factor]),
          .finite = data<double>(call.ins[finite]),
          .updates = data<double>(call.ins[updates]),
          .later = call.later,
          .beta1 = call.attributes.number("beta1"),
          .beta2 = call.attributes.number("beta2"),
          .rate = call.attributes.number_or("rate", 1.0),
          .epsilon = static_cast<float>(call.attributes.number("epsilon")),
          .decay = static_cast<float>(call.attributes.number("weight_decay"))};
}

void require_fp32(std::string_view kind, const View& v) {
  base::require(v.dtype() == DType::f32, "kernel", "{} of {} on a device", kind, name_of(v.dtype()));
}

// --- Moments in bf16

// Adjacent elements of the operands, at most those of one weight, and their positions in the whole weight.
struct WeightRun {
  int64_t begin = 0, count = 0;  // elements
  int64_t offset = 0;            // of `begin` in the weight's block
  bool placed = false;           // otherwise of no weight: without random numbers
  std::array<uint32_t, 2> key = {};
  Runs runs = {};
};

struct Adamw16 {
  const float* w_in;
  const bf16 *m_in, *v_in;
  float* w;
  bf16 *m, *v;
  AnyData g, weight;
  AdamwNumbers numbers;
};

// As kernels::round_stochastically().
__device__ __forceinline__ bf16 round_by(float x, uint32_t random) {
  return {static_cast<uint16_t>((std::bit_cast<uint32_t>(x) + (random & 0xFFFFu)) >> 16)};
}

static_assert(sizeof(Adamw16) + sizeof(WeightRun) <= 4096);  // limit on kernel arguments

// N elements per thread, 1 or 4; offset and count of the run are multiples of N.
template <int N>
__global__ void __launch_bounds__(kPieceThreads) adamw16_step(Adamw16 a, WeightRun run) {
  __shared__ AdamwScalars shared;
  const int64_t local = first_piece() * N, at = run.begin + local;
  const bool there = local < run.count, updates = *a.numbers.finite != 0;
  float w[N] = {}, g[N] = {};
  Vec<bf16, N> m = {}, v = {};
  if (there) {
    load_run(w, a.w_in + at), a.g.load(g, at);
    m = *reinterpret_cast<const Vec<bf16, N>*>(a.m_in + at), v = *reinterpret_cast<const Vec<bf16, N>*>(a.v_in + at);
  }
  if (threadIdx.x == 0) shared = scalars_of(a.numbers);
  __syncthreads();
  if (!there) return;
  if (updates) {
    std::array<uint32_t, 4> words = {};
    const int64_t place = run.placed ? run.runs.place((run.offset + local) / N, N) : -1;
    if (place >= 0) {
      const auto stream = static_cast<uint64_t>(a.numbers.later->step), block = static_cast<uint64_t>(place) >> 2;
      const int shift = static_cast<int>(place & 3);
      words = kernels::random_block(run.key, stream, block);
      if (shift != 0) {
        const auto first = words;
        auto next = words;
        if constexpr (N > 1) next = kernels::random_block(run.key, stream, block + 1);
        words[0] = pick(first[0], first[1], first[2], first[3], shift);
        words[1] = pick(first[1], first[2], first[3], next[0], shift);
        words[2] = pick(first[2], first[3], next[0], next[1], shift);
        words[3] = pick(first[3], next[0], next[1], next[2], shift);
      }
    }
    const AdamwScalars s = shared;
    GPU_UNROLL
    for (int i = 0; i < N; ++i) {
      float of_m = widen(m[i]), of_v = widen(v[i]);
      w[i] = adamw_element(a.numbers, s, w[i], g[i], of_m, of_v);
      m[i] = round_by(of_m, words[static_cast<size_t>(i)]);
      v[i] = round_by(of_v, words[static_cast<size_t>(i)] >> 16);
    }
  }
  put_run(a.w + at, w, false);
  *reinterpret_cast<Vec<bf16, N>*>(a.m + at) = m, *reinterpret_cast<Vec<bf16, N>*>(a.v + at) = v;
  if (a.weight.data != nullptr) a.weight.put(at, w, false);
}

// Calls f(run) for the parts of n elements that belong to one weight each, or to none.
template <typename F>
void for_weight_runs(const KernelCall& call, int64_t n, const F& f) {
  std::vector<const kernels::StatePlace*> places;
  for (const kernels::StatePlace& place : call.places) places.push_back(&place);
  std::ranges::sort(places, {}, &kernels::StatePlace::first);
  int64_t done = 0;
  const auto no_weight = [&](int64_t end) {
    if (done < end) f(WeightRun{.begin = done, .count = end - done}, std::span<const tensor::DimIndex>());
  };
  for (const kernels::StatePlace* place : places) {
    int64_t elements = 1;
    for (const tensor::DimIndex& dim : place->index) elements *= dim.local();
    const int64_t begin = std::max<int64_t>(done, place->first), end = std::min(n, place->first + elements);
    if (begin >= end) continue;
    no_weight(begin);
    WeightRun run = {.begin = begin, .count = end - begin, .offset = begin - place->first, .placed = true};
    run.key = kernels::random_key(call.numbers.seed, {reinterpret_cast<const char*>(&place->key), sizeof place->key});
    f(run, std::span<const tensor::DimIndex>(place->index));
    done = end;
  }
  no_weight(n);
}

template <int N>
void launch_adamw16(const KernelCall& call, const Adamw16& a, const WeightRun& run) {
  const int64_t blocks = quotient_up(run.count, int64_t{kPieceThreads} * N);
  launch(*call.stream, dim3(static_cast<unsigned>(blocks)), dim3(kPieceThreads), 0, adamw16_step<N>, a, run);
}

// --- Moments in codes

// Numbers of a code and the middles between them, as kernels::DynamicCodes. middles: rounded down, so that a number in
// fp32 is above one if and only if it is above the exact middle; the last is infinite.
struct CodeTable {
  float numbers[256];  // by code
  float middles[256];  // between each number and the next, in ascending order
};
struct CodeTables {
  CodeTable of_m, of_v;
};

struct Adamw8 {
  static constexpr int kDecades = 7;
  const float* w_in;
  const uint8_t *m_in, *v_in;
  const float *m_scale_in, *v_scale_in;
  float* w;
  uint8_t *m, *v;
  float *m_scale, *v_scale;
  AnyData g, weight;
  AdamwNumbers numbers;
  int64_t count;
  bool wide;
  double powers[kDecades];  // 10^-6 to 1
};

// The number at an index in ascending order; has_sign: negative numbers too.
__device__ inline double sorted_number(const double (&powers)[Adamw8::kDecades], bool has_sign, int index) {
  if (index == 255) return 1;
  int above = has_sign ? index - 127 : index;  // of 0
  if (above == 0) return 0;
  const bool negative = above < 0;
  if (negative) above = -above;
  // Decade d has f << d numbers, f = 1 or 2, after the smaller decades.
  const int f = has_sign ? 1 : 2;
  int decade = 0;
  while (above - 1 >= f * ((2 << decade) - 1)) ++decade;
  const int fractions = f << decade, i = above - 1 - f * ((1 << decade) - 1);
  const double middle = 0.1 + 0.9 * (i + 0.5) / fractions, x = powers[decade] * middle;
  return negative ? -x : x;
}

// By a block of 256 threads, and a barrier.
__device__ inline void fill_table(const double (&powers)[Adamw8::kDecades], bool has_sign, CodeTable& table) {
  const int index = static_cast<int>(threadIdx.x), zero = has_sign ? 127 : 0;
  const double x = sorted_number(powers, has_sign, index);
  table.numbers[(index - zero) & 255] = static_cast<float>(x);
  float middle = INFINITY;
  if (index < 255) {
    const double exact = (x + sorted_number(powers, has_sign, index + 1)) / 2;
    middle = static_cast<float>(exact);
    if (static_cast<double>(middle) > exact) {
      const auto bits = std::bit_cast<uint32_t>(middle);
      middle = std::bit_cast<float>(middle > 0 ? bits - 1 : bits + 1);
    }
  }
  table.middles[index] = middle;
}

// The code of the nearest number; of two, the smaller.
__device__ __forceinline__ uint8_t nearest_code(const CodeTable& table, int zero, float x) {
  int index = 0;
  GPU_UNROLL
  for (int half = 128; half > 0; half /= 2)
    if (table.middles[index + half - 1] < x) index += half;
  return static_cast<uint8_t>(index - zero);
}

constexpr int kOfLane = static_cast<int>(tensor::kStateBlock) / 32;  // elements

// Reads or writes the adjacent elements of a lane, of which `here` exist.
template <typename T>
__device__ __forceinline__ void load_lane(T (&x)[kOfLane], const T* from, bool wide, int here) {
  if (wide) {
    constexpr int kWord = std::min(kOfLane, 16 / static_cast<int>(sizeof(T)));
    GPU_UNROLL
    for (int w = 0; w < kOfLane; w += kWord) {
      const auto word = *reinterpret_cast<const Vec<T, kWord>*>(from + w);
      GPU_UNROLL
      for (int i = 0; i < kWord; ++i) x[w + i] = word[i];
    }
    return;
  }
  GPU_UNROLL
  for (int i = 0; i < kOfLane; ++i) x[i] = i < here ? from[i] : T{};
}
template <typename T>
__device__ __forceinline__ void store_lane(T* to, const T (&x)[kOfLane], bool wide, int here) {
  if (wide) {
    constexpr int kWord = std::min(kOfLane, 16 / static_cast<int>(sizeof(T)));
    GPU_UNROLL
    for (int w = 0; w < kOfLane; w += kWord) {
      Vec<T, kWord> word = {};
      GPU_UNROLL
      for (int i = 0; i < kWord; ++i) word[i] = x[w + i];
      *reinterpret_cast<Vec<T, kWord>*>(to + w) = word;
    }
    return;
  }
  GPU_UNROLL
  for (int i = 0; i < kOfLane; ++i)
    if (i < here) to[i] = x[i];
}

// 32 lanes per block of elements.
__global__ void __launch_bounds__(kPieceThreads) adamw8_step(Adamw8 a) {
  __shared__ CodeTables tables;
  __shared__ AdamwScalars shared;
  constexpr int kGroups = kPieceThreads / 32;
  constexpr int kZeroOfM = 127, kZeroOfV = 0;
  fill_table(a.powers, true, tables.of_m), fill_table(a.powers, false, tables.of_v);
  if (threadIdx.x == 0) shared = scalars_of(a.numbers);
  __syncthreads();
  const AdamwScalars s = shared;
  const bool updates = *a.numbers.finite != 0;
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  const int64_t blocks = (a.count + tensor::kStateBlock - 1) / tensor::kStateBlock;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kGroups; first < blocks;
       first += static_cast<int64_t>(gridDim.x) * kGroups) {
    const int64_t block = first + group, at = block * tensor::kStateBlock + lane * kOfLane, left = a.count - at;
    const int here = left <= 0 ? 0 : left < kOfLane ? static_cast<int>(left) : kOfLane;
    const bool wide = a.wide && here == kOfLane;
    float w[kOfLane] = {}, g[kOfLane] = {}, m[kOfLane], v[kOfLane];
    uint8_t m_codes[kOfLane] = {}, v_codes[kOfLane] = {};
    float m_scale = 0, v_scale = 0;
    if (block < blocks) {
      load_lane(w, a.w_in + at, wide, here);
      load_lane(m_codes, a.m_in + at, wide, here), load_lane(v_codes, a.v_in + at, wide, here);
      m_scale = a.m_scale_in[block], v_scale = a.v_scale_in[block];
      if (wide) {
        a.g.load(g, at);
      } else {
        GPU_UNROLL
        for (int i = 0; i < kOfLane; ++i) {
          float one[1] = {};
          if (i < here) a.g.load(one, at + i);
          g[i] = one[0];
        }
      }
    }
    float m_most = 0, v_most = 0;
    GPU_UNROLL
    for (int i = 0; i < kOfLane; ++i) {
      m[i] = tables.of_m.numbers[m_codes[i]] * m_scale, v[i] = tables.of_v.numbers[v_codes[i]] * v_scale;
      const float next = adamw_element(a.numbers, s, w[i], g[i], m[i], v[i]);
      if (!updates || i >= here) continue;
      w[i] = next;
      const float magnitude = fabsf(m[i]);
      m_most = magnitude > m_most ? magnitude : m_most, v_most = v[i] > v_most ? v[i] : v_most;
    }
    m_most = lanes_max(m_most), v_most = lanes_max(v_most);
    if (updates) {
      m_scale = m_most, v_scale = v_most;
      GPU_UNROLL
      for (int i = 0; i < kOfLane; ++i) {
        m_codes[i] = m_most > 0 ? nearest_code(tables.of_m, kZeroOfM, m[i] / m_most) : uint8_t{0};
        v_codes[i] = v_most > 0 ? nearest_code(tables.of_v, kZeroOfV, v[i] / v_most) : uint8_t{0};
      }
    }
    if (block >= blocks) continue;
    store_lane(a.w + at, w, wide, here);
    store_lane(a.m + at, m_codes, wide, here), store_lane(a.v + at, v_codes, wide, here);
    if (lane == 0) a.m_scale[block] = m_scale, a.v_scale[block] = v_scale;
    if (a.weight.data == nullptr) continue;
    if (wide) {
      a.weight.put(at, w, false);
    } else {
      GPU_UNROLL
      for (int i = 0; i < kOfLane; ++i) {
        const float one[1] = {w[i]};
        if (i < here) a.weight.put(at + i, one, false);
      }
    }
  }
}

}  // namespace

void adamw16(const KernelCall& call) {
  using In = AdamwIn;
  using Out = AdamwOut;
  require_fp32("adamw16", call.ins[In::kW]);
  Adamw16 a = {.w_in = data<float>(call.ins[In::kW]),
               .m_in = data<bf16>(call.ins[In::kM]),
               .v_in = data<bf16>(call.ins[In::kV]),
               .w = data<float>(call.outs[Out::kW]),
               .m = data<bf16>(call.outs[Out::kM]),
               .v = data<bf16>(call.outs[Out::kV]),
               .g = any_data("adamw16", call.ins[In::kG]),
               .weight = {},
               .numbers = adamw_numbers(call, In::kFactor, In::kFinite, In::kUpdates)};
  if (call.outs.size() > Out::kWeight) a.weight = any_data("adamw16", call.outs[Out::kWeight]);
  constexpr int kN = 4;
  const bool wide = all_wide(a.w_in, a.m_in, a.v_in, a.w, a.m, a.v, a.g.data, a.weight.data);
  const int64_t n = call.ins[In::kW].elements();
  for_weight_runs(call, n, [&](WeightRun run, std::span<const tensor::DimIndex> dims) {
    const bool aligned = wide && run.begin % kN == 0 && run.offset % kN == 0;
    const int64_t narrow =
        aligned && (!run.placed || lay_runs("adamw16", dims, kN, run.runs)) ? run.count % kN : run.count;
    WeightRun part = run;
    part.count = run.count - narrow;
    if (part.count > 0) launch_adamw16<kN>(call, a, part);
    if (narrow == 0) return;
    part.begin += part.count, part.offset += part.count, part.count = narrow;
    if (run.placed) lay_runs("adamw16", dims, 1, part.runs);
    launch_adamw16<1>(call, a, part);
  });
}

void adamw8(const KernelCall& call) {
  using In = Adamw8In;
  using Out = Adamw8Out;
  for (const size_t i : {size_t{In::kW}, size_t{In::kMScale}, size_t{In::kVScale}}) require_fp32("adamw8", call.ins[i]);
  Adamw8 a = {.w_in = data<float>(call.ins[In::kW]),
              .m_in = data<uint8_t>(call.ins[In::kM]),
              .v_in = data<uint8_t>(call.ins[In::kV]),
              .m_scale_in = data<float>(call.ins[In::kMScale]),
              .v_scale_in = data<float>(call.ins[In::kVScale]),
              .w = data<float>(call.outs[Out::kW]),
              .m = data<uint8_t>(call.outs[Out::kM]),
              .v = data<uint8_t>(call.outs[Out::kV]),
              .m_scale = data<float>(call.outs[Out::kMScale]),
              .v_scale = data<float>(call.outs[Out::kVScale]),
              .g = any_data("adamw8", call.ins[In::kG]),
              .weight = {},
              .numbers = adamw_numbers(call, In::kFactor, In::kFinite, In::kUpdates),
              .count = call.ins[In::kW].elements(),
              .wide = false,
              .powers = {}};
  if (call.outs.size() > Out::kWeight) a.weight = any_data("adamw8", call.outs[Out::kWeight]);
  a.wide = all_wide(a.w_in, a.m_in, a.v_in, a.w, a.m, a.v, a.g.data, a.weight.data);
  for (int d = 0; d < Adamw8::kDecades; ++d) a.powers[d] = std::pow(10, d - Adamw8::kDecades + 1);
  launch_pieces(*call.stream, quotient_up(a.count, tensor::kStateBlock) * 32, adamw8_step, a);
}

}  // namespace kintsugi::KINTSUGI_GPU
