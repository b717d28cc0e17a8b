#include "kintsugi/kernels/cpu/convert.h"

#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/convert.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

struct Same {
  HWY_INLINE V operator()(V x) const { return x; }
};
struct Plus {
  HWY_INLINE V operator()(V y, V x) const { return hn::Add(y, x); }
};

template <typename T>
void widen_as(const std::byte* in, float* out, int64_t n) {
  map(Same(), n, out, reinterpret_cast<const T*>(in));
}
template <typename T>
void narrow_as(const float* in, std::byte* out, int64_t n, bool add) {
  T* to = reinterpret_cast<T*>(out);
  if (add) {
    map(Plus(), n, to, to, in);
  } else {
    map(Same(), n, to, in);
  }
}

void widen_any(tensor::DType dtype, const std::byte* in, float* out, int64_t n) {
  for_type(dtype, [&]<typename T>(T) { widen_as<T>(in, out, n); });
}
void narrow_any(tensor::DType dtype, const float* in, std::byte* out, int64_t n, bool add) {
  for_type(dtype, [&]<typename T>(T) { narrow_as<T>(in, out, n, add); });
}

HWY_INLINE V load_codes(const int8_t* p) {
  const hn::Rebind<int8_t, D> d8;
  return hn::ConvertTo(D(), hn::PromoteTo(DI(), hn::LoadU(d8, p)));
}

void widen_codes_any(const int8_t* codes, const float* scale, int64_t rows, int64_t columns, float* out) {
  const int64_t whole = columns / lanes() * lanes();
  for (int64_t row = 0; row < rows; ++row, codes += columns, out += columns) {
    for (int64_t i = 0; i < whole; i += lanes()) store(hn::Mul(load_codes(codes + i), load(scale + i)), out + i);
    for (int64_t i = whole; i < columns; ++i) out[i] = static_cast<float>(codes[i]) * scale[i];
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(widen_any);
HWY_EXPORT(narrow_any);
HWY_EXPORT(widen_codes_any);

void widen(tensor::DType dtype, const std::byte* in, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(widen_any)(dtype, in, out, n);
}
void widen_codes(const int8_t* codes, const float* scale, int64_t rows, int64_t columns, float* out) {
  HWY_DYNAMIC_DISPATCH(widen_codes_any)(codes, scale, rows, columns, out);
}
void narrow(tensor::DType dtype, const float* in, std::byte* out, int64_t n, bool add) {
  HWY_DYNAMIC_DISPATCH(narrow_any)(dtype, in, out, n, add);
}

}  // namespace kintsugi::kernels::cpu
#endif
