#include <algorithm>

#include "kintsugi/kernels/cpu/broadcast_layout.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/add.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace {
struct Plus {
  HWY_INLINE V operator()(V x, V y) const { return hn::Add(x, y); }
};
struct PlusTwo {
  HWY_INLINE V operator()(V x, V y, V z) const { return hn::Add(hn::Add(x, y), z); }
};
struct Copy {
  HWY_INLINE V operator()(V x) const { return x; }
};
constexpr int64_t kChunk = 1024;
}  // namespace

// Operands of y's size, or broadcast: sums in fp32 from left to right, a chunk at a time.
template <typename T>
void add_as(const KernelCall& call, base::Range r) {
  HWY_ALIGN float sum[kChunk];
  T* y = reinterpret_cast<T*>(call.outs[0].data);
  for (int64_t begin = r.begin; begin < r.end; begin += kChunk) {
    const int64_t n = std::min(kChunk, r.end - begin);
    for (size_t k = 0; k < call.ins.size(); ++k) {
      const T* x = reinterpret_cast<const T*>(call.ins[k].data);
      const int64_t size = call.ins[k].elements();
      for (int64_t done = 0; done < n;) {
        const int64_t at = (begin + done) % size, some = std::min(n - done, size - at);
        if (k == 0) {
          map(Copy(), some, sum + done, x + at);
        } else {
          map(Plus(), some, sum + done, static_cast<const float*>(sum + done), x + at);
        }
        done += some;
      }
    }
    map(Copy(), n, y + begin, static_cast<const float*>(sum));
  }
}

// Two or three operands of y's size: a single pass.
template <typename T>
bool add_at_once(const KernelCall& call, base::Range r) {
  const size_t count = call.ins.size();
  bool alike = count == 2 || count == 3;
  for (const tensor::View& x : call.ins) alike = alike && x.elements() == call.outs[0].elements();
  if (!alike) return false;
  const auto in = [&](size_t i) { return reinterpret_cast<const T*>(call.ins[i].data) + r.begin; };
  T* y = reinterpret_cast<T*>(call.outs[0].data) + r.begin;
  if (count == 2) {
    map(Plus(), r.size(), y, in(0), in(1));
  } else {
    map(PlusTwo(), r.size(), y, in(0), in(1), in(2));
  }
  return true;
}

void add_part(const KernelCall& call, base::Range r) {
  for_type(call.outs[0].dtype(), [&]<typename T>(T) {
    if (!add_at_once<T>(call, r)) add_as<T>(call, r);
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(add_part);

bool add_takes(const Operands& o) {
  if (one_number(o)) return o.ins.size() != 0;
  if (!is_fast(o.outs[0].dtype) || o.ins.size() == 0) return false;
  for (size_t i = 0; i < o.ins.size(); ++i)
    if (o.ins[i].dtype != o.outs[0].dtype || !repeats(o.ins[i].shape, o.outs[0].shape)) return false;
  return true;
}

void add(const KernelCall& call) {
  if (call.outs[0].dtype() == tensor::DType::f64) {
    double sum = 0;
    for (const tensor::View& x : call.ins) sum += x.as<double>()[0];
    call.outs[0].as<double>()[0] = sum;
    return;
  }
  const auto part = HWY_DYNAMIC_DISPATCH(add_part);
  call.team.for_shares(call.outs[0].elements(), 4096, [&](base::Range r, int) { part(call, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
