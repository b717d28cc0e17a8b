// Column sums, once per SIMD target. Each thread has its own columns, so that the order of sums does not depend on the
// number of threads.
#if defined(KINTSUGI_COLUMNS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KINTSUGI_COLUMNS_INL
#undef KINTSUGI_COLUMNS_INL
#else
#define KINTSUGI_COLUMNS_INL
#endif

#include <algorithm>

#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// y[c] (+)= sum over rows of term(row, c), for columns in `mine`; `vector` gives the terms of lanes() columns, `single`
// that of one. Sums 32 rows at a time, which also bounds the error of fp32 sums.
template <typename F, typename G>
HWY_INLINE void add_columns(int64_t rows, base::Range mine, bool add, float* y, const F& vector, const G& single) {
  constexpr int64_t kRows = 32;
  if (!add) std::fill(y + mine.begin, y + mine.end, 0.0f);
  for (int64_t begin = 0; begin < rows; begin += kRows) {
    const int64_t end = std::min(rows, begin + kRows);
    int64_t c = mine.begin;
    for (; c + lanes() <= mine.end; c += lanes()) {
      V sum = zero();
      for (int64_t r = begin; r < end; ++r) sum = hn::Add(sum, vector(r, c));
      store(hn::Add(load(y + c), sum), y + c);
    }
    for (; c < mine.end; ++c) {
      float sum = 0;
      for (int64_t r = begin; r < end; ++r) sum += single(r, c);
      y[c] += sum;
    }
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
