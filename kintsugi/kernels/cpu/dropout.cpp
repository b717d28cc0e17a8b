#include <algorithm>

#include "kintsugi/kernels/cpu/dropout_stream.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#include "kintsugi/kernels/random.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/dropout.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/random-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// Factors of the elements [4 * block, 4 * block + 4 * lanes()).
HWY_INLINE void block_factors(const DropoutStream& s, uint64_t block, float* factors) {
  VU low = hn::Set(DU(), static_cast<uint32_t>(block)), high = hn::Set(DU(), static_cast<uint32_t>(block >> 32));
  add_blocks(low, high, hn::Iota(DU(), 0));
  const Words w = random_blocks(s.key, s.step, low, high);
  const V factor = set(s.factor);
  hn::StoreInterleaved4(kept_factor(w.w0, s.threshold, factor), kept_factor(w.w1, s.threshold, factor),
                        kept_factor(w.w2, s.threshold, factor), kept_factor(w.w3, s.threshold, factor), D(), factors);
}

struct Select {
  HWY_INLINE V operator()(V x, V factor) const {
    return hn::IfThenZeroElse(hn::Eq(factor, zero()), hn::Mul(x, factor));
  }
};

// y = dropout(x) for n elements, the first of which has global index `element`.
template <typename T>
void drop_as(const DropoutStream& s, uint64_t element, int64_t n, const T* x, T* y) {
  constexpr int64_t kChunk = 512;
  HWY_ALIGN float factors[kChunk + 8 * kMaxLanes];
  while (n > 0) {
    const int64_t skip = static_cast<int64_t>(element & 3), some = std::min(kChunk, n);
    for (int64_t i = 0; i < skip + some; i += 4 * lanes())
      block_factors(s, (element >> 2) + static_cast<uint64_t>(i / 4), factors + i);
    map(Select(), some, y, x, static_cast<const float*>(factors + skip));
    n -= some, x += some, y += some, element += static_cast<uint64_t>(some);
  }
}

void drop_run(const KernelCall& call, const DropoutStream& s, uint64_t element, int64_t begin, int64_t n) {
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    drop_as(s, element, n, reinterpret_cast<const T*>(call.ins[0].data) + begin,
            reinterpret_cast<T*>(call.outs[0].data) + begin);
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(drop_run);

namespace {

// The global index of the local element `at`, or -1 at padding.
int64_t place_of(const KernelCall& call, const tensor::Shape& shape, int64_t at) {
  int64_t place = 0, radix = 1;
  for (size_t i = shape.rank(); i-- > 0;) {
    const tensor::DimIndex& index = call.index(shape[i].name);
    const int64_t global = index[at % shape[i].size];
    at /= shape[i].size;
    if (global < 0) return -1;
    place += (global + (shape[i].name == "batch" ? call.numbers.batch_offset : 0)) * radix;
    radix *= index.whole();
  }
  return place;
}

}  // namespace

void dropout(const KernelCall& call) {
  const tensor::View& y = call.outs[0];
  const double p = call.attributes.number("p");
  const DropoutStream stream{random_key(call.numbers.seed, call.attributes.text("key")),
                             static_cast<uint64_t>(call.numbers.step), dropout_threshold(p),
                             static_cast<float>(1 / (1 - p))};
  // Runs that are contiguous in the whole: the last dims, as long as all except the outermost of them are unsplit.
  const tensor::Shape& shape = y.shape();
  int64_t run = 1;
  for (size_t i = shape.rank(); i-- > 0;) {
    const tensor::DimIndex& index = call.index(shape[i].name);
    if (!index.contiguous()) break;
    run *= shape[i].size;
    if (index.whole() != shape[i].size) break;
  }
  run = std::max<int64_t>(run, 1);
  const auto drop = HWY_DYNAMIC_DISPATCH(drop_run);
  call.team.for_shares(y.elements(), 4096, [&](base::Range r, int) {
    for (int64_t at = r.begin; at < r.end;) {
      const int64_t n = std::min(run - at % run, r.end - at), place = place_of(call, shape, at);
      if (place >= 0) {
        drop(call, stream, static_cast<uint64_t>(place), at, n);
      } else {
        const int64_t size = tensor::size_of(y.dtype());
        std::fill_n(y.data + at * size, n * size, std::byte{0});
      }
      at += n;
    }
  });
}

}  // namespace kintsugi::kernels::cpu
#endif
