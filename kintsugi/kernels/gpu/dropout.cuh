// Dropout with the mask defined in docs/operations.md: it depends on the position of an element in the whole, not on
// the layout.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/runs.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

struct Mask {
  std::array<uint32_t, 2> key;
  uint32_t threshold;
  float factor;
};

// y = x * factor if kept, else 0; pieces of N elements, N = 1 or a multiple of 4.
template <typename T, int N>
__global__ void __launch_bounds__(kPieceThreads)
    drop(const T* x, T* y, Runs runs, Mask mask, int64_t pieces, const Numbers* later, bool add) {
  const auto step = static_cast<uint64_t>(later->step);
  for (int64_t p = first_piece(); p < pieces; p += all_threads()) {
    const int64_t place = runs.place(p, N);
    const auto in = *reinterpret_cast<const Vec<T, N>*>(x + p * N);
    Vec<T, N> out = {};
    if (add) out = *reinterpret_cast<const Vec<T, N>*>(y + p * N);
    const auto factor_of = [&](uint32_t word) { return place >= 0 && word >= mask.threshold ? mask.factor : 0.0f; };
    const auto keep = [&](int i, uint32_t word) {
      const float factor = factor_of(word);
      put(&out[i], factor == 0 ? 0 : widen(in[i]) * factor, add);
    };
    const auto block = static_cast<uint64_t>(place < 0 ? 0 : place) >> 2;
    const int shift = static_cast<int>(place & 3);
    auto words = kernels::random_block(mask.key, step, block);
    if constexpr (N == 1) {
      keep(0, pick(words[0], words[1], words[2], words[3], shift));
    } else {
      GPU_UNROLL
      for (int i = 0; i < N; i += 4) {
        auto next = words;
        if (shift != 0 || i + 4 < N)
          next = kernels::random_block(mask.key, step, block + static_cast<uint64_t>(i / 4) + 1);
        keep(i, pick(words[0], words[1], words[2], words[3], shift));
        keep(i + 1, pick(words[1], words[2], words[3], next[0], shift));
        keep(i + 2, pick(words[2], words[3], next[0], next[1], shift));
        keep(i + 3, pick(words[3], next[0], next[1], next[2], shift));
        words = next;
      }
    }
    *reinterpret_cast<Vec<T, N>*>(y + p * N) = out;
  }
}

// Returns false if runs cannot be divided into pieces of n elements.
bool runs_of(const KernelCall& call, const tensor::Shape& shape, int n, Runs& runs) {
  std::vector<tensor::DimIndex> dims;
  for (const tensor::Dim& dim : shape) dims.push_back(call.index(dim.name));
  if (!lay_runs("dropout", dims, n, runs)) return false;
  int64_t radix = 1;
  for (size_t d = shape.rank(); d-- > 0; radix *= dims[d].whole())
    if (shape[d].name == "batch") runs.base += call.numbers.batch_offset * radix;
  return true;
}

}  // namespace

void dropout(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  if (y.elements() == 0) return;
  const double p = call.attributes.number("p");
  const Mask mask{kernels::random_key(call.numbers.seed, call.attributes.text("key")), kernels::dropout_threshold(p),
                  static_cast<float>(1 / (1 - p))};
  base::require(x.dtype() == y.dtype(), "kernel", "dropout of {} to {} on a device", name_of(x.dtype()),
                name_of(y.dtype()));
  dispatch("dropout", y.dtype(), [&]<typename T>(T) {
    constexpr int kN = kWide<T>;
    Runs runs;
    const bool wide = all_wide(x.data, y.data) && runs_of(call, y.shape(), kN, runs);
    if (!wide) runs_of(call, y.shape(), 1, runs);
    const int64_t pieces = y.elements() / (wide ? kN : 1);
    launch_pieces(*call.stream, pieces, wide ? drop<T, kN> : drop<T, 1>, data<T>(x), data<T>(y), runs, mask, pieces,
                  call.later, call.accumulates(0));
  });
}

}  // namespace kintsugi::KINTSUGI_GPU
