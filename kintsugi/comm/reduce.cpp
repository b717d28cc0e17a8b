#include "kintsugi/comm/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kintsugi/base/error.h"

// SSE4, AVX2, AVX-512 or NEON, above what the compiler may always use (bits of hwy/detect_targets.h).
#define HWY_DISABLED_TARGETS 0xF0010FFLL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/comm/reduce.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::comm::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kBlock = 2048;  // elements that fit in the L1 cache
constexpr size_t kMaxLanes = HWY_MAX_BYTES / 4;

template <typename T>
struct wide {
  using type = T;
};
template <>
struct wide<tensor::bf16> {
  using type = float;
};
template <>
struct wide<tensor::f16> {
  using type = float;
};
template <typename T>
using wide_t = typename wide<T>::type;

template <typename D, typename T>
HWY_INLINE hn::Vec<D> load([[maybe_unused]] D d, const T* p) {
  return hn::LoadU(d, p);
}
template <typename D>
HWY_INLINE hn::Vec<D> load([[maybe_unused]] D d, const tensor::bf16* p) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> d16;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(p)))));
}
// Rounds to nearest even and keeps NaN.
template <typename D>
HWY_INLINE void store([[maybe_unused]] D d, hn::Vec<D> v, tensor::bf16* p) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> d16;
  const auto bits = hn::BitCast(du, v);
  const auto high = hn::ShiftRight<16>(bits);
  const auto half = hn::Add(hn::And(high, hn::Set(du, 1u)), hn::Set(du, 0x7FFFu));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, half));
  const auto nan = hn::Or(high, hn::Set(du, 0x40u));
  const auto out = hn::IfThenElse(hn::RebindMask(du, hn::Eq(v, v)), rounded, nan);
  hn::StoreU(hn::TruncateTo(d16, out), d16, reinterpret_cast<uint16_t*>(p));
}
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
template <typename D>
HWY_INLINE hn::Vec<D> load(D d, const tensor::f16* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
}
template <typename D>
HWY_INLINE void store(D d, hn::Vec<D> v, tensor::f16* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, v), d16, reinterpret_cast<hwy::float16_t*>(p));
}
#else
template <typename D>
HWY_INLINE hn::Vec<D> load(D d, const tensor::f16* p) {
  HWY_ALIGN float x[kMaxLanes];
  for (size_t i = 0; i < hn::Lanes(d); ++i) x[i] = static_cast<float>(p[i]);
  return hn::Load(d, x);
}
template <typename D>
HWY_INLINE void store(D d, hn::Vec<D> v, tensor::f16* p) {
  HWY_ALIGN float x[kMaxLanes];
  hn::Store(v, d, x);
  for (size_t i = 0; i < hn::Lanes(d); ++i) p[i] = tensor::f16(x[i]);
}
#endif

struct Plus {
  template <typename V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};
// Maximum (`up`) or minimum; propagates NaN.
template <bool up>
struct Further {
  template <typename V>
  HWY_INLINE V operator()(V a, V b) const {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      const auto beyond = up ? hn::Lt(a, b) : hn::Lt(b, a);
      return hn::IfThenElse(hn::Or(beyond, hn::IsNaN(b)), b, a);
    } else {
      return up ? hn::Max(a, b) : hn::Min(a, b);
    }
  }
};

// sum[i] = op(a[i], b[i]) for i < n. `sum` has room for whole vectors.
template <typename A, typename T, typename Op>
HWY_INLINE void join(Op op, const A* a, const T* b, wide_t<T>* sum, size_t n) {
  const hn::ScalableTag<wide_t<T>> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(op(load(d, a + i), load(d, b + i)), d, sum + i);
  if (i < n) {
    A rest_a[kMaxLanes] = {};
    T rest_b[kMaxLanes] = {};
    std::memcpy(rest_a, a + i, (n - i) * sizeof(A));
    std::memcpy(rest_b, b + i, (n - i) * sizeof(T));
    hn::StoreU(op(load(d, rest_a), load(d, rest_b)), d, sum + i);
  }
}

template <typename W>
HWY_INLINE void divide(W* sum, W by, size_t n) {
  if constexpr (hwy::IsFloat<W>()) {
    const hn::ScalableTag<W> d;
    for (size_t i = 0; i < n; i += hn::Lanes(d)) hn::Store(hn::Div(hn::Load(d, sum + i), hn::Set(d, by)), d, sum + i);
  } else {
    for (size_t i = 0; i < n; ++i) sum[i] /= by;
  }
}

// Our own loop: for small blocks the C library's is several times slower on some processors.
void copy_bytes(const uint8_t* from, uint8_t* to, size_t bytes, bool stream) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (stream) {
    const size_t ahead = std::min(bytes, (lanes - reinterpret_cast<uintptr_t>(to) % lanes) % lanes);
    std::memcpy(to, from, ahead);
    for (i = ahead; i + lanes <= bytes; i += lanes) hn::Stream(hn::LoadU(d, from + i), d, to + i);
  } else {
    for (; i + 4 * lanes <= bytes; i += 4 * lanes) {
      const auto a = hn::LoadU(d, from + i), b = hn::LoadU(d, from + i + lanes);
      const auto e = hn::LoadU(d, from + i + 2 * lanes), f = hn::LoadU(d, from + i + 3 * lanes);
      hn::StoreU(a, d, to + i);
      hn::StoreU(b, d, to + i + lanes);
      hn::StoreU(e, d, to + i + 2 * lanes);
      hn::StoreU(f, d, to + i + 3 * lanes);
    }
  }
  std::memcpy(to + i, from + i, bytes - i);
}

template <typename T, typename Op>
void reduce_with(Op op, bool mean, const Terms& terms) {
  using W = wide_t<T>;
  HWY_ALIGN W sum[kBlock];  // kBlock is a multiple of the vector length
  HWY_ALIGN T narrow[kBlock];
  const size_t count = terms.bytes / sizeof(T);
  const size_t ranks = terms.ins.size();
  const auto in = [&](size_t k, size_t at) { return reinterpret_cast<const T*>(terms.ins[k] + terms.in_at) + at; };
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t n = std::min(kBlock, count - at);
    join(op, in(0, at), in(1, at), sum, n);
    for (size_t k = 2; k < ranks; ++k) join(op, static_cast<const W*>(sum), in(k, at), sum, n);
    if (mean) divide(sum, static_cast<W>(ranks), n);
    const auto* result = reinterpret_cast<const uint8_t*>(sum);
    if constexpr (!std::is_same_v<T, W>) {
      const hn::ScalableTag<W> d;
      for (size_t i = 0; i < n; i += hn::Lanes(d)) store(d, hn::Load(d, sum + i), narrow + i);
      result = reinterpret_cast<const uint8_t*>(narrow);
    }
    for (std::byte* out : terms.outs) {
      if (out == nullptr) continue;
      std::byte* to = out + terms.out_at;
      const auto is_to = [&](const std::byte* in) { return in + terms.in_at == to; };
      const bool stream = terms.stream && std::none_of(terms.ins.begin(), terms.ins.end(), is_to);
      copy_bytes(result, reinterpret_cast<uint8_t*>(to + at * sizeof(T)), n * sizeof(T), stream);
    }
  }
}

template <typename T>
void reduce_as(const Terms& terms, Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return reduce_with<T>(Plus(), false, terms);
    case Reduction::mean:
      return reduce_with<T>(Plus(), true, terms);
    case Reduction::max:
      return reduce_with<T>(Further<true>(), false, terms);
    case Reduction::min:
      return reduce_with<T>(Further<false>(), false, terms);
  }
}

}  // namespace

void reduce_any(const Terms& terms, tensor::DType dtype, Reduction reduction) {
  switch (dtype) {
    case tensor::DType::f64:
      return reduce_as<double>(terms, reduction);
    case tensor::DType::f32:
      return reduce_as<float>(terms, reduction);
    case tensor::DType::bf16:
      return reduce_as<tensor::bf16>(terms, reduction);
    case tensor::DType::f16:
      return reduce_as<tensor::f16>(terms, reduction);
    case tensor::DType::i64:
      return reduce_as<int64_t>(terms, reduction);
    case tensor::DType::i32:
      return reduce_as<int32_t>(terms, reduction);
    default:
      throw base::InternalError("comm", "a reduction of {}", tensor::name_of(dtype));
  }
}

}  // namespace kintsugi::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::comm {

HWY_EXPORT(reduce_any);
HWY_EXPORT(copy_bytes);

void reduce(const Terms& terms, tensor::DType dtype, Reduction reduction) {
  if (terms.ins.size() > 1) {
    HWY_DYNAMIC_DISPATCH(reduce_any)(terms, dtype, reduction);
    if (terms.stream) hwy::FlushStream();
    return;
  }
  for (std::byte* out : terms.outs) {
    if (out != nullptr) copy(terms.ins[0] + terms.in_at, out + terms.out_at, terms.bytes, terms.stream);
  }
}

void copy(const std::byte* from, std::byte* to, size_t bytes, bool stream) {
  if (from == to || bytes == 0) return;
  HWY_DYNAMIC_DISPATCH(copy_bytes)
  (reinterpret_cast<const uint8_t*>(from), reinterpret_cast<uint8_t*>(to), bytes, stream);
  if (stream) hwy::FlushStream();
}

}  // namespace kintsugi::comm
#endif
