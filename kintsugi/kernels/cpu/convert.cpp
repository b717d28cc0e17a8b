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

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(widen_any);
HWY_EXPORT(narrow_any);

void widen(tensor::DType dtype, const std::byte* in, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(widen_any)(dtype, in, out, n);
}
void narrow(tensor::DType dtype, const float* in, std::byte* out, int64_t n, bool add) {
  HWY_DYNAMIC_DISPATCH(narrow_any)(dtype, in, out, n, add);
}

}  // namespace kintsugi::kernels::cpu
#endif
