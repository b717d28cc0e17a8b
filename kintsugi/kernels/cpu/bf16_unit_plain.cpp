// The portable unit: widens bf16 in registers and multiplies in fp32.
#include <algorithm>

#include "kintsugi/kernels/cpu/bf16_finish.h"
#include "kintsugi/kernels/cpu/bf16_units.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/bf16_unit_plain.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

constexpr int64_t kHalf = 16;
constexpr int64_t kGroup = 4;  // steps of a to widen at a time

// Rows of an accumulator block in registers, two vectors wide.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
constexpr int kRows = 6;
#else
constexpr int kRows = 12;
#endif

// Accumulates one k of R rows: a is fp32, with rows kStep * kGroup apart.
template <int R>
HWY_INLINE void add_k(const float* a, V x, V y, V* left, V* right) {
  HWY_UNROLL(12)
  for (int i = 0; i < R; ++i) {
    const V of_row = set(a[i * kStep * kGroup]);
    left[i] = hn::MulAdd(of_row, x, left[i]);
    right[i] = hn::MulAdd(of_row, y, right[i]);
  }
}

// Accumulates `steps` more steps to R rows of two vectors of columns, c and c2, whose pairs are at b and b2.
template <int R>
HWY_INLINE void add_steps(const float* a, const tensor::bf16* b, const tensor::bf16* b2, int64_t steps, float* c,
                          float* c2, int64_t c_row, bool first) {
  V left[R], right[R];
  HWY_UNROLL(12)
  for (int i = 0; i < R; ++i) {
    left[i] = first ? zero() : load(c + i * c_row);
    right[i] = first ? zero() : load(c2 + i * c_row);
  }
  const auto high = hn::Set(DU(), 0xFFFF0000u);
  const auto even = [](const tensor::bf16* p) {
    return hn::BitCast(D(), hn::ShiftLeft<16>(hn::LoadU(DU(), reinterpret_cast<const uint32_t*>(p))));
  };
  const auto odd = [&](const tensor::bf16* p) {
    return hn::BitCast(D(), hn::And(hn::LoadU(DU(), reinterpret_cast<const uint32_t*>(p)), high));
  };
  for (int64_t s = 0; s < steps; ++s, b += kTile * kStep, b2 += kTile * kStep, a += kStep)
    for (int64_t p = 0; p < kHalf; ++p) {
      add_k<R>(a + 2 * p, even(b + p * kStep), even(b2 + p * kStep), left, right);
      add_k<R>(a + 2 * p + 1, odd(b + p * kStep), odd(b2 + p * kStep), left, right);
    }
  HWY_UNROLL(12)
  for (int i = 0; i < R; ++i) {
    store(left[i], c + i * c_row);
    store(right[i], c2 + i * c_row);
  }
}

// The index of column j in the panel's two halves.
HWY_INLINE int64_t place(int64_t j) {
  return j / kHalf * kHalf * kStep + j % kHalf * 2;
}

void multiply_tile(const Bf16Tile& t) {
  HWY_ALIGN float wide[kTile * kStep * kGroup];
  const int64_t N = lanes();
  for (int64_t s = 0; s < t.steps; s += kGroup) {
    const int64_t steps = std::min(kGroup, t.steps - s);
    for (int64_t i = 0; i < kTile; ++i)
      for (int64_t q = 0; q < steps; ++q)
        for (int64_t l = 0; l < kStep; l += N)
          store(load(t.a + i * t.a_row + (s + q) * t.a_step + l), wide + (i * kGroup + q) * kStep + l);
    for (int64_t j = 0; j < kTile; j += 2 * N)
      for (int64_t i = 0; i < kTile; i += kRows) {
        const tensor::bf16* b = t.b + s * kTile * kStep + place(j);
        const tensor::bf16* b2 = t.b + s * kTile * kStep + place(j + N);
        const float* a = wide + i * kStep * kGroup;
        float* c = t.c + i * t.c_row + j;
        if (i + kRows <= kTile) {
          add_steps<kRows>(a, b, b2, steps, c, c + N, t.c_row, s == 0 && !t.adds);
        } else {
          add_steps<kTile % kRows>(a, b, b2, steps, c, c + N, t.c_row, s == 0 && !t.adds);
        }
      }
  }
  if (t.steps == 0 && !t.adds)
    for (int64_t i = 0; i < kTile; ++i) std::fill_n(t.c + i * t.c_row, kTile, 0.0f);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {
namespace {

HWY_EXPORT(multiply_tile);

using tensor::bf16;

constexpr int64_t kHalfTile = kTile / 2;

void nothing() {}

void multiply(const Bf16Tile& t) {
  HWY_DYNAMIC_DISPATCH(multiply_tile)(t);
}

bf16 at(const Bf16Panel& panel, int64_t i, int64_t l) {
  return i < panel.count && l < panel.k ? panel.from[i * panel.stride + l * panel.k_stride] : bf16();
}

// Whether the panel contains the whole step from l, so that no element needs a check.
bool is_whole(const Bf16Panel& panel, int64_t l) {
  return panel.count == kTile && l + kStep <= panel.k;
}

void pack_a(const Bf16Panel& panel, bf16* to) {
  for (int64_t l = 0; l < panel.k; l += kStep)
    for (int64_t i = 0; i < kTile; ++i, to += kStep) {
      const bf16* const from = panel.from + i * panel.stride + l * panel.k_stride;
      if (i < panel.count && l + kStep <= panel.k && panel.k_stride == 1) {
        std::copy_n(from, kStep, to);
      } else if (is_whole(panel, l)) {
        for (int64_t q = 0; q < kStep; ++q) to[q] = from[q * panel.k_stride];
      } else {
        for (int64_t q = 0; q < kStep; ++q) to[q] = at(panel, i, l + q);
      }
    }
}

void pack_b(const Bf16Panel& panel, bf16* to) {
  for (int64_t l = 0; l < panel.k; l += kStep)
    for (int64_t j = 0; j < kTile; j += kHalfTile)
      for (int64_t q = 0; q < kStep; q += 2, to += 2 * kHalfTile) {
        if (!is_whole(panel, l)) {
          for (int64_t i = 0; i < kHalfTile; ++i) {
            to[2 * i] = at(panel, j + i, l + q);
            to[2 * i + 1] = at(panel, j + i, l + q + 1);
          }
          continue;
        }
        const bf16* const even = panel.from + j * panel.stride + (l + q) * panel.k_stride;
        const bf16* const odd = even + panel.k_stride;
        if (panel.stride == 1) {
          for (int64_t i = 0; i < kHalfTile; ++i) to[2 * i] = even[i], to[2 * i + 1] = odd[i];
        } else {
          for (int64_t i = 0; i < kHalfTile; ++i)
            to[2 * i] = even[i * panel.stride], to[2 * i + 1] = odd[i * panel.stride];
        }
      }
}

constexpr Bf16Unit kUnit = {"plain", nothing, nothing, pack_a, pack_b, multiply, finish_tile};

}  // namespace

const Bf16Unit* plain_unit() {
  return &kUnit;
}

}  // namespace kintsugi::kernels::cpu
#endif
