// Elementwise kernels except activations: sums of operands, copies to other dims and dtypes, constants, gates, masks,
// and the state of the loss scale.
#include "kintsugi/kernels/gpu/activations.h"
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/moves.h"
#include "kintsugi/kernels/gpu/places.h"
#include "kintsugi/kernels/gpu/strides.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// --- fill

// Outputs of any dtype, as a repeated byte pattern.
struct Filled {
  std::byte* to;
  int64_t bytes;
  Word16 pattern;  // element, repeated
  int unit;        // bytes per element
};
struct FilledList {
  static constexpr int kMost = 64;
  Filled at[kMost];
};

template <typename W>
__device__ void fill_words(std::byte* to, int64_t bytes, W word) {
  const auto words = static_cast<int64_t>(bytes / static_cast<int64_t>(sizeof(W)));
  for (int64_t at = first_piece(); at < words; at += all_threads()) reinterpret_cast<W*>(to)[at] = word;
}

// Single elements before the first and after the last multiple of 16 bytes, words in between.
template <typename W>
__device__ void fill_elements(const Filled& y) {
  const W element = reinterpret_cast<const W*>(&y.pattern)[0];
  const auto begin = static_cast<int64_t>(reinterpret_cast<uintptr_t>(y.to));
  int64_t head = (begin + 15) / 16 * 16 - begin;
  if (head > y.bytes) head = y.bytes;
  const int64_t body = (y.bytes - head) / 16 * 16;
  fill_words(y.to, head, element);
  fill_words(y.to + head, body, y.pattern);
  fill_words(y.to + head + body, y.bytes - head - body, element);
}

__global__ void __launch_bounds__(kPieceThreads) fill_all(FilledList list) {
  const Filled& y = list.at[blockIdx.y];
  switch (y.unit) {
    case 8:
      return fill_elements<uint64_t>(y);
    case 4:
      return fill_elements<uint32_t>(y);
    case 2:
      return fill_elements<uint16_t>(y);
    default:
      return fill_elements<uint8_t>(y);
  }
}

Word16 pattern_of(DType dtype, double value) {
  Word16 pattern = {};
  if (value == 0) return pattern;  // all-zero bytes in every dtype
  tensor::dispatch(dtype, [&]<typename T>(T) {
    const T element = static_cast<T>(static_cast<tensor::arithmetic_t<T>>(value));
    for (size_t i = 0; i < 16 / sizeof(T); ++i)
      std::memcpy(reinterpret_cast<std::byte*>(&pattern) + i * sizeof(T), &element, sizeof(T));
  });
  return pattern;
}

// --- cast, accumulate, scale

// y = by * x, N elements at a time.
template <typename X, typename Y, int N>
__global__ void __launch_bounds__(kPieceThreads) convert(const X* x, Y* y, int64_t count, double by, bool add) {
  using A = Sum<X, Y>;
  const A factor = static_cast<A>(by);
  for (int64_t at = first_piece() * N; at + N <= count; at += all_threads() * N) {
    const auto in = *reinterpret_cast<const Vec<X, N>*>(x + at);
    Vec<Y, N> out = {};
    if (add) out = *reinterpret_cast<const Vec<Y, N>*>(y + at);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) store(&out[i], static_cast<A>(widen(in[i])) * factor, add);
    *reinterpret_cast<Vec<Y, N>*>(y + at) = out;
  }
}

void convert_all(std::string_view kind, const KernelCall& call, double by) {
  dispatch_wide(kind, call.ins[0].dtype(), [&]<typename X>(X) {
    dispatch_wide(kind, call.outs[0].dtype(), [&]<typename Y>(Y) {
      const X* x = data<X>(call.ins[0]);
      Y* y = data<Y>(call.outs[0]);
      const int64_t count = call.outs[0].elements();
      base::require(call.ins[0].elements() == count, "kernel", "{} of {} elements to {}", kind, call.ins[0].elements(),
                    count);
      const bool add = call.accumulates(0);
      constexpr int kN = std::min(kWide<X>, kWide<Y>);
      const int64_t wide = all_wide(x, y) ? count / kN * kN : 0;
      if (wide > 0) launch_pieces(*call.stream, wide / kN, convert<X, Y, kN>, x, y, wide, by, add);
      if (wide < count)
        launch_pieces(*call.stream, count - wide, convert<X, Y, 1>, x + wide, y + wide, count - wide, by, add);
    });
  });
}

// --- add, broadcast

// Operands of a sum, with their strides along the dims of the output.
template <typename X>
struct Summands {
  static constexpr int kMost = 32;
  Dims dims;  // in pieces of N elements: the last dim is N times shorter
  int count = 0;
  const X* x[kMost] = {};
  int64_t strides[kMost][kMostDims] = {};  // in pieces
  bool repeats[kMost] = {};                // one element for the whole piece
};

// y = sum of the operands from left to right, in pieces of N elements along the last dim. K operands; 0: any number.
template <typename X, typename Y, int N, int K>
__global__ void __launch_bounds__(kPieceThreads) add_operands(Summands<X> in, Y* y, int64_t pieces, bool add) {
  using A = Sum<X, Y>;
  const int operands = K == 0 ? in.count : K;
  for (int64_t p = first_piece(); p < pieces; p += all_threads()) {
    int64_t index[kMostDims];
    in.dims.split(p, index);
    A sum[N] = {};
    GPU_UNROLL
    for (int k = 0; k < operands; ++k) {
      int64_t at = 0;
      GPU_UNROLL
      for (int d = 0; d < kMostDims; ++d)
        if (d < in.dims.rank) at += index[d] * in.strides[k][d];
      Vec<X, N> some;
      if (N == 1 || in.repeats[k]) {
        const X one = in.x[k][at];
        GPU_UNROLL
        for (int i = 0; i < N; ++i) some[i] = one;
      } else {
        some = *reinterpret_cast<const Vec<X, N>*>(in.x[k] + at);
      }
      GPU_UNROLL
      for (int i = 0; i < N; ++i) sum[i] += static_cast<A>(widen(some[i]));
    }
    Vec<Y, N> out = {};
    if (add) out = *reinterpret_cast<const Vec<Y, N>*>(y + p * N);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) store(&out[i], sum[i], add);
    *reinterpret_cast<Vec<Y, N>*>(y + p * N) = out;
  }
}

template <typename X, typename Y, int N, int K>
void launch_add(const KernelCall& call, const Summands<X>& in) {
  const int64_t pieces = call.outs[0].elements() / N;
  launch_pieces(*call.stream, pieces, add_operands<X, Y, N, K>, in, data<Y>(call.outs[0]), pieces, call.accumulates(0));
}

// Converts the operands to pieces of `n` elements; false if that is impossible.
template <typename X>
bool in_pieces(const KernelCall& call, const std::vector<Walked>& dims, int n, Summands<X>& in) {
  in.count = static_cast<int>(call.ins.size());
  in.dims.rank = static_cast<int>(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool last = d + 1 == dims.size();
    if (last && dims[d].size % n != 0) return false;
    in.dims.size[d] = Divisor(last ? dims[d].size / n : dims[d].size);
    for (size_t k = 0; k < call.ins.size(); ++k) {
      const int64_t stride = dims[d].strides[k];
      if (last) in.repeats[k] = stride == 0;
      if (n > 1 && (last ? stride > 1 : stride % n != 0 && dims.back().strides[k] != 0)) return false;
      in.strides[k][d] = last ? stride * n : stride;
    }
  }
  for (size_t k = 0; k < call.ins.size(); ++k) {
    in.x[k] = data<X>(call.ins[k]);
    if (n > 1 && !in.repeats[k] && !all_wide(in.x[k])) return false;
  }
  return n == 1 || all_wide(call.outs[0].data);
}

template <typename X, typename Y, int... Operands>
void add_as(const KernelCall& call) {
  base::require(!call.ins.empty() && call.ins.size() <= static_cast<size_t>(Summands<X>::kMost), "kernel",
                "a sum of {} operands on a device", call.ins.size());
  if (call.outs[0].elements() == 0) return;
  std::vector<tensor::Shape> shapes;
  for (const View& x : call.ins) {
    base::require(x.dtype() == call.ins[0].dtype(), "kernel", "a sum of {} and {} on a device", name_of(x.dtype()),
                  name_of(call.ins[0].dtype()));
    shapes.push_back(x.shape());
  }
  const std::vector<Walked> dims = walk(call.outs[0].shape(), shapes);
  constexpr int kN = std::min(kWide<X>, kWide<Y>);
  Summands<X> in;
  const bool wide = in_pieces(call, dims, kN, in);
  if (!wide) in_pieces(call, dims, 1, in);
  const auto with = [&]<int K>(std::integral_constant<int, K>) {
    wide ? launch_add<X, Y, kN, K>(call, in) : launch_add<X, Y, 1, K>(call, in);
  };
  // Specialized for the operand counts in the list.
  const bool found = ((in.count == Operands && (with(std::integral_constant<int, Operands>()), true)) || ...);
  if (!found) with(std::integral_constant<int, 0>());
}

// --- gated

template <typename F>
void with_gate(const KernelCall& call, const F& f) {
  const std::string& name = call.attributes.text("activation");
  if (name == "silu") return f(Silu());
  if (name == "gelu") return f(GeluErf());
  if (name == "gelu_tanh") return f(GeluTanh());
  if (name == "relu2") return f(Relu2());
  base::require(name == "relu", "gated", "no activation \"{}\"", name);
  f(Relu());
}

// y = value(gate) * up
template <typename F, typename T, int N>
__global__ void __launch_bounds__(kPieceThreads) gate_up(const T* gate, const T* up, T* y, int64_t count, bool add) {
  wait_for_kernels_before();
  let_next_begin();
  for (int64_t at = first_piece() * N; at + N <= count; at += all_threads() * N) {
    const auto g = *reinterpret_cast<const Vec<T, N>*>(gate + at);
    const auto u = *reinterpret_cast<const Vec<T, N>*>(up + at);
    Vec<T, N> out = {};
    if (add) out = *reinterpret_cast<const Vec<T, N>*>(y + at);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) put(&out[i], F::value(widen(g[i])) * widen(u[i]), add);
    *reinterpret_cast<Vec<T, N>*>(y + at) = out;
  }
}

template <typename T>
struct GateGrad {
  const T *gate, *up, *dy;
  T *dgate, *dup;
  bool add_gate, add_up;
};
// dgate = dy * up * slope(gate), dup = dy * value(gate)
template <typename F, typename T, int N>
__global__ void __launch_bounds__(kPieceThreads) gate_up_grad(GateGrad<T> p, int64_t begin, int64_t count) {
  for (int64_t at = begin + first_piece() * N; at + N <= count; at += all_threads() * N) {
    const auto g = *reinterpret_cast<const Vec<T, N>*>(p.gate + at);
    const auto u = *reinterpret_cast<const Vec<T, N>*>(p.up + at);
    const auto dy = *reinterpret_cast<const Vec<T, N>*>(p.dy + at);
    Vec<T, N> dgate = {}, dup = {};
    if (p.add_gate) dgate = *reinterpret_cast<const Vec<T, N>*>(p.dgate + at);
    if (p.add_up) dup = *reinterpret_cast<const Vec<T, N>*>(p.dup + at);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) {
      float value, slope;
      F::both(widen(g[i]), value, slope);
      put(&dgate[i], widen(dy[i]) * widen(u[i]) * slope, p.add_gate);
      put(&dup[i], widen(dy[i]) * value, p.add_up);
    }
    *reinterpret_cast<Vec<T, N>*>(p.dgate + at) = dgate;
    *reinterpret_cast<Vec<T, N>*>(p.dup + at) = dup;
  }
}

// --- mask

// The dims of a value, merging adjacent ones without padding, and the index of those with padding.
struct Masked {
  Dims dims;  // in words
  bool padded[kMostDims] = {};
  LocalIndex index[kMostDims];
};

// y = x, or 0 at padding; in place writes only padding.
template <typename W>
__global__ void __launch_bounds__(kPieceThreads) mask_words(Masked m, const W* x, W* y, int64_t words) {
  for (int64_t at = first_piece(); at < words; at += all_threads()) {
    int64_t index[kMostDims];
    m.dims.split(at, index);
    bool kept = true;
    GPU_UNROLL
    for (int d = 0; d < kMostDims; ++d)
      if (d < m.dims.rank && m.padded[d] && kept) kept = m.index[d][index[d]] >= 0;
    if (!kept) {
      y[at] = W{};
    } else if (x != y) {
      y[at] = x[at];
    }
  }
}

// --- loss_scale

__global__ void next_loss_scale(const double* finite, const double* scale, const double* good, double* next_scale,
                                double* next_good, double growth_interval) {
  if (first_piece() != 0) return;
  const double now = *scale, count = *good + 1;
  const bool is_finite = *finite != 0, grows = count >= growth_interval;
  const double half = now / 2 < 1 ? 1 : now / 2, twice = now * 2 > 16777216 ? 16777216 : now * 2;
  *next_scale = !is_finite ? half : grows ? twice : now;
  *next_good = is_finite && !grows ? count : 0;
}

}  // namespace

void fill(const KernelCall& call) {
  const double value = call.attributes.number("value");
  for (size_t begin = 0; begin < call.outs.size(); begin += FilledList::kMost) {
    const size_t count = std::min(call.outs.size() - begin, static_cast<size_t>(FilledList::kMost));
    FilledList list = {};
    int64_t longest = 0;
    for (size_t i = 0; i < count; ++i) {
      const View& y = call.outs[begin + i];
      const int64_t bytes = y.data == nullptr ? 0 : y.type.bytes();
      list.at[i] = {y.data, bytes, pattern_of(y.dtype(), value), static_cast<int>(tensor::size_of(y.dtype()))};
      longest = std::max(longest, bytes);
    }
    constexpr int64_t kMostBlocks = 1024;  // per value
    const int64_t blocks = std::min((longest + 16 * kPieceThreads - 1) / (16 * kPieceThreads), kMostBlocks);
    launch(*call.stream, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(count)), dim3(kPieceThreads), 0,
           fill_all, list);
  }
}

void cast(const KernelCall& call) {
  convert_all("cast", call, 1);
}
void accumulate(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  if (x.dtype() == DType::u8 && y.dtype() == x.dtype() && !call.accumulates(0))  // codes
    return launch_moves(call, {{.to = y.data, .from = x.data, .rows = 1, .bytes = x.type.bytes()}});
  convert_all("accumulate", call, 1);
}
void scale(const KernelCall& call) {
  convert_all("scale", call, call.attributes.number("by"));
}

void add(const KernelCall& call) {
  dispatch_wide("add", call.outs[0].dtype(), [&]<typename T>(T) {
    base::require(!call.ins.empty() && call.ins[0].dtype() == call.outs[0].dtype(), "kernel",
                  "add makes another dtype than that of its operands on a device");
    add_as<T, T, 2, 3>(call);
  });
}
void broadcast(const KernelCall& call) {
  dispatch_wide("broadcast", call.ins[0].dtype(), [&]<typename X>(X) {
    dispatch_wide("broadcast", call.outs[0].dtype(), [&]<typename Y>(Y) { add_as<X, Y, 1>(call); });
  });
}

void gated(const KernelCall& call) {
  if (call.ins[kernels::GatedIn::kCounts].data != nullptr) return gated_slots(call);
  with_gate(call, [&]<typename F>(F) {
    dispatch("gated", call.ins[0].dtype(), [&]<typename T>(T) {
      const T *gate = data<T>(call.ins[0]), *up = data<T>(call.ins[1]);
      T* y = data<T>(call.outs[0]);
      const int64_t count = call.outs[0].elements();
      const bool add = call.accumulates(0);
      constexpr int kN = kWide<T>;
      const int64_t wide = all_wide(gate, up, y) ? count / kN * kN : 0;
      const auto launch_of = [&](int64_t pieces, auto kernel, int64_t from, int64_t elements) {
        launch_overlapping(*call.stream, blocks_of_pieces(pieces, kernel), dim3(kPieceThreads), 0,
                           {bytes_of(call.outs[0])}, kernel, gate + from, up + from, y + from, elements, add);
      };
      if (wide > 0) launch_of(wide / kN, gate_up<F, T, kN>, 0, wide);
      if (wide < count) launch_of(count - wide, gate_up<F, T, 1>, wide, count - wide);
    });
  });
}

void gated_grad(const KernelCall& call) {
  using In = kernels::GatedGradIn;
  if (call.ins[In::kCounts].data != nullptr) return gated_slots_grad(call);
  with_gate(call, [&]<typename F>(F) {
    dispatch("gated_grad", call.ins[In::kGate].dtype(), [&]<typename T>(T) {
      const GateGrad<T> p = {data<T>(call.ins[In::kGate]), data<T>(call.ins[In::kUp]), data<T>(call.ins[In::kDy]),
                             data<T>(call.outs[0]),        data<T>(call.outs[1]),      call.accumulates(0),
                             call.accumulates(1)};
      const int64_t count = call.outs[0].elements();
      constexpr int kN = kWide<T>;
      const int64_t wide = all_wide(p.gate, p.up, p.dy, p.dgate, p.dup) ? count / kN * kN : 0;
      if (wide > 0) launch_pieces(*call.stream, wide / kN, gate_up_grad<F, T, kN>, p, 0, wide);
      if (wide < count) launch_pieces(*call.stream, count - wide, gate_up_grad<F, T, 1>, p, wide, count);
    });
  });
}

void mask(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  Masked m;
  std::vector<int64_t> sizes;
  bool any = false;
  for (const tensor::Dim& dim : y.shape()) {
    const tensor::DimIndex& index = call.index(dim.name);
    base::require(index.local() == dim.size, "kernel", "an index of {} positions for \"{}\" of size {}", index.local(),
                  dim.name, dim.size);
    const bool padded = has_padding(index), merges = !padded && !sizes.empty() && !m.padded[sizes.size() - 1];
    any |= padded;
    if (merges) {
      sizes.back() *= dim.size;
      continue;
    }
    base::require(sizes.size() < kMostDims, "kernel", "a mask of {} on a device", to_string(y.shape()));
    m.padded[sizes.size()] = padded;
    if (padded) m.index[sizes.size()] = local_index(index);
    sizes.push_back(dim.size);
  }
  if (y.elements() == 0 || (!any && x.data == y.data)) return;
  if (sizes.empty()) sizes.push_back(1);
  // Words span whole rows of the last dims without padding, as far as possible.
  const int64_t bytes = y.type.bytes(), size = tensor::size_of(y.dtype());
  const int64_t run = m.padded[sizes.size() - 1] ? size : sizes.back() * size;
  const int word = word_of({run, address(x.data), address(y.data)});
  if (!m.padded[sizes.size() - 1]) sizes.back() = run / word;
  m.dims.rank = static_cast<int>(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) m.dims.size[d] = Divisor(sizes[d]);
  with_word(word, [&]<typename W>(W) {
    const int64_t words = bytes / static_cast<int64_t>(sizeof(W));
    launch_pieces(*call.stream, words, mask_words<W>, m, data<W>(x), data<W>(y), words);
  });
}

void loss_scale(const KernelCall& call) {
  using In = kernels::LossScaleIn;
  for (const View& v : {call.ins[In::kFinite], call.ins[In::kScale], call.ins[In::kGood], call.outs[0], call.outs[1]})
    base::require(v.dtype() == DType::f64 && v.elements() == 1, "kernel", "loss_scale takes fp64 scalars");
  launch(*call.stream, dim3(1), dim3(64), 0, next_loss_scale, data<double>(call.ins[In::kFinite]),
         data<double>(call.ins[In::kScale]), data<double>(call.ins[In::kGood]), data<double>(call.outs[0]),
         data<double>(call.outs[1]), static_cast<double>(call.attributes.integer("growth_interval")));
}

}  // namespace kintsugi::KINTSUGI_GPU
