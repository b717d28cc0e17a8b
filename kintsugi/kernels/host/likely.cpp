#include "kintsugi/kernels/host/likely.h"

#include <algorithm>
#include <numbers>

#include "kintsugi/kernels/cpu/simd_targets.h"
#include "kintsugi/kernels/host/winners.h"
#include "kintsugi/kernels/random.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/host/likely.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/random-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::host::HWY_NAMESPACE {
using namespace kernels::cpu::HWY_NAMESPACE;

// Several vectors at a time, to hide the latency of the maximum.
template <typename T>
HWY_INLINE float largest_of(const T* x, int64_t n) {
  constexpr int kSome = 4;
  V most[kSome];
  for (V& m : most) m = set(kNone);
  const auto take = [](V x, V& m) { m = hn::IfThenElse(hn::Gt(x, m), x, m); };
  int64_t i = 0;
  for (; i + kSome * lanes() <= n; i += kSome * lanes()) {
    HWY_UNROLL(4)
    for (int s = 0; s < kSome; ++s) take(load(x + i + s * lanes()), most[s]);
  }
  for (; i + lanes() <= n; i += lanes()) take(load(x + i), most[0]);
  for (int s = 1; s < kSome; ++s) take(most[s], most[0]);
  float found = hn::GetLane(hn::MaxOfLanes(D(), most[0]));
  for (; i < n; ++i) found = std::max(found, static_cast<float>(x[i]));
  return found;
}

int64_t first_of_largest(const Logits& logits) {
  int64_t found = -1;
  for_type(logits.dtype, [&]<typename T>(T) {
    const T* const x = static_cast<const T*>(logits.data);
    const float most = largest_of(x, logits.count);
    int64_t i = most == kNone ? logits.count : 0;
    for (; i + lanes() <= logits.count && found < 0; i += lanes()) {
      const std::ptrdiff_t at = hn::FindFirstTrue(D(), hn::Eq(load(x + i), set(most)));
      if (at >= 0) found = i + at;
    }
    for (; i < logits.count && found < 0; ++i)
      if (static_cast<float>(x[i]) == most) found = i;
  });
  return std::max<int64_t>(found, 0);
}

void consider_larger(const Logits& logits, Largest& largest) {
  for_type(logits.dtype, [&]<typename T>(T) {
    const T* const x = static_cast<const T*>(logits.data);
    int64_t i = 0;
    for (; i + lanes() <= logits.count; i += lanes()) {
      if (hn::AllFalse(D(), hn::Gt(load(x + i), set(largest.least())))) continue;
      for (int64_t lane = i; lane < i + lanes(); ++lane) largest.consider(lane, static_cast<float>(x[lane]));
    }
    for (; i < logits.count; ++i) largest.consider(i, static_cast<float>(x[i]));
  });
}

// Whether the score of any of some logits may exceed `best`, tested conservatively in fp32: `best` is reduced by the
// rounding error of a logit that can win, which is at most about 30 below the top.
struct MayWin {
  V top, scale, best;

  HWY_INLINE bool any(V x, VU words) const {
    // ~word begins with 23 - e zeros, where e is the exponent of its upper 24 bits as fp32, which represents them
    // exactly.
    const VU y = hn::ShiftRight<8>(hn::Not(words));
    const auto exponent = hn::ShiftRight<23>(hn::BitCast(DU(), hn::ConvertTo(D(), hn::BitCast(DI(), y))));
    const V one_more = hn::Sub(set(24 + 127), hn::ConvertTo(D(), hn::BitCast(DI(), exponent)));
    const V most = hn::MulAdd(set(std::numbers::ln2_v<float>), one_more, hn::Mul(hn::Sub(x, top), scale));
    return !hn::AllFalse(D(), hn::Gt(most, best));
  }
};

void consider_all(const Logits& logits, float top, double scale, const Noise& noise, Winner& winner) {
  constexpr int64_t kChunk = 1024;
  constexpr float kMargin = 1e-3f, kMostScale = 1e30f;
  HWY_ALIGN uint32_t words[kChunk];
  const auto small = static_cast<float>(std::min<double>(scale, kMostScale));
  for_type(logits.dtype, [&]<typename T>(T) {
    const T* const x = static_cast<const T*>(logits.data);
    for (int64_t begin = 0; begin < logits.count; begin += kChunk) {
      const int64_t end = std::min(begin + kChunk, logits.count);
      for (int64_t i = begin; i < end; i += 4 * lanes()) {
        const uint64_t block = noise.block + static_cast<uint64_t>(i) / 4;
        VU low = hn::Set(DU(), static_cast<uint32_t>(block)), high = hn::Set(DU(), static_cast<uint32_t>(block >> 32));
        add_blocks(low, high, hn::Iota(DU(), 0));
        const Words w = random_blocks(noise.key, noise.stream, low, high);
        hn::StoreInterleaved4(w.w0, w.w1, w.w2, w.w3, DU(), words + (i - begin));
      }
      int64_t i = begin;
      for (; i + lanes() <= end; i += lanes()) {
        const MayWin may = {set(top), set(small), set(static_cast<float>(winner.best()) - kMargin)};
        if (!may.any(load(x + i), hn::Load(DU(), words + (i - begin)))) continue;
        for (int64_t lane = 0; lane < lanes(); ++lane) winner.consider(i + lane, words[i + lane - begin]);
      }
      for (; i < end; ++i) winner.consider(i, words[i - begin]);
    }
  });
}

}  // namespace kintsugi::kernels::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::host {

HWY_EXPORT(first_of_largest);
HWY_EXPORT(consider_larger);
HWY_EXPORT(consider_all);

float Logits::operator[](int64_t i) const {
  return tensor::dispatch(dtype, [&]<typename T>(T) { return static_cast<float>(static_cast<const T*>(data)[i]); });
}

int64_t most_likely(const Logits& logits) {
  return HWY_DYNAMIC_DISPATCH(first_of_largest)(logits);
}

std::vector<int64_t> most_likely(const Logits& logits, int64_t k) {
  Largest largest(k);
  HWY_DYNAMIC_DISPATCH(consider_larger)(logits, largest);
  return largest.sorted();
}

int64_t draw(const Logits& logits, double scale, const Noise& noise, const std::vector<int64_t>& some) {
  Winner winner(logits, most_likely(logits), scale);
  for (const int64_t i : some)
    winner.consider(i, random_word(noise.key, noise.stream, 4 * noise.block + static_cast<uint64_t>(i)));
  return winner.found();
}

int64_t draw(const Logits& logits, double scale, const Noise& noise) {
  const int64_t first = most_likely(logits);
  Winner winner(logits, first, scale);
  HWY_DYNAMIC_DISPATCH(consider_all)(logits, logits[first], scale, noise, winner);
  return winner.found();
}

}  // namespace kintsugi::kernels::host
#endif
