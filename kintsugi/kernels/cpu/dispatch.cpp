#include <algorithm>

#include "kintsugi/kernels/cpu/experts.h"
#include "kintsugi/kernels/cpu/rows.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/dispatch.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

#ifndef KINTSUGI_SLOT_ROWS
#define KINTSUGI_SLOT_ROWS
namespace kintsugi::kernels::cpu {

// Maps tokens to their slots in the local block of y. x: [batch seq embed], y: [batch expert slot embed], slots,
// weights: [batch seq choice]
class SlotRows {
 public:
  SlotRows(const KernelCall& call, const tensor::View& slots, const tensor::View& y)
      : expert_(call.index("expert")),
        slot_(call.index("slot")),
        slots_(reinterpret_cast<const int32_t*>(slots.data)),
        seq_(slots.shape()[1].size),
        choices_(slots.shape()[2].size),
        experts_(y.shape()[1].size),
        slots_of_expert_(y.shape()[2].size),
        capacity_(call.attributes.integer("capacity")) {}

  int64_t choices() const { return choices_; }
  // The row of y for a token's choice, or -1.
  int64_t row(int64_t token, int64_t choice) const {
    const int64_t slot = slots_[token * choices_ + choice];
    if (slot < 0) return -1;
    const int64_t expert = local_of(expert_, slot / capacity_), place = local_of(slot_, slot % capacity_);
    return expert < 0 || place < 0 ? -1 : (token / seq_ * experts_ + expert) * slots_of_expert_ + place;
  }

 private:
  const tensor::DimIndex &expert_, &slot_;
  const int32_t* slots_;
  int64_t seq_, choices_, experts_, slots_of_expert_, capacity_;
};

}  // namespace kintsugi::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kSlotChunk = 1024;

struct Times {
  V by;
  HWY_INLINE V operator()(V x) const { return hn::Mul(by, x); }
};
struct AddTimes {
  V by;
  HWY_INLINE V operator()(V x, V sum) const { return hn::MulAdd(by, x, sum); }
};
struct Same {
  HWY_INLINE V operator()(V x) const { return x; }
};

const float* weights_of(const KernelCall& call) {
  return reinterpret_cast<const float*>(call.ins[DispatchIn::kWeights].data);
}

}  // namespace

template <typename T>
void dispatch_as(const KernelCall& call, const SlotRows& rows, base::Range tokens) {
  const T* x = reinterpret_cast<const T*>(call.ins[DispatchIn::kX].data);
  T* y = reinterpret_cast<T*>(call.outs[0].data);
  const float* weights = weights_of(call);
  const int64_t embed = call.outs[0].size("embed");
  for (int64_t t = tokens.begin; t < tokens.end; ++t)
    for (int64_t c = 0; c < rows.choices(); ++c) {
      const int64_t row = rows.row(t, c);
      if (row < 0) continue;
      if (weights) {
        map(Times{set(weights[t * rows.choices() + c])}, embed, y + row * embed, x + t * embed);
      } else {
        std::memcpy(static_cast<void*>(y + row * embed), x + t * embed, static_cast<size_t>(embed) * sizeof(T));
      }
    }
}

// In the order of the choices, with fp32 sums.
template <typename T>
void combine_as(const KernelCall& call, const SlotRows& rows, base::Range tokens) {
  HWY_ALIGN float sum[kSlotChunk];
  const T* y = reinterpret_cast<const T*>(call.ins[CombineIn::kY].data);
  T* x = reinterpret_cast<T*>(call.outs[0].data);
  const float* weights = weights_of(call);
  const int64_t embed = call.outs[0].size("embed");
  for (int64_t t = tokens.begin; t < tokens.end; ++t)
    for (int64_t begin = 0; begin < embed; begin += kSlotChunk) {
      const int64_t n = std::min(kSlotChunk, embed - begin);
      std::fill_n(sum, n, 0.0f);
      for (int64_t c = 0; c < rows.choices(); ++c)
        if (const int64_t row = rows.row(t, c); row >= 0)
          map(AddTimes{set(weights ? weights[t * rows.choices() + c] : 1.0f)}, n, sum, y + row * embed + begin,
              static_cast<const float*>(sum));
      map(Same(), n, x + t * embed + begin, static_cast<const float*>(sum));
    }
}

template <typename T>
void weigh_as(const KernelCall& call, const SlotRows& rows, base::Range tokens) {
  HWY_ALIGN float wide[kSlotChunk];
  const T* y = reinterpret_cast<const T*>(call.ins[WeighIn::kY].data);
  const T* x = reinterpret_cast<const T*>(call.ins[WeighIn::kX].data);
  float* dweights = reinterpret_cast<float*>(call.outs[0].data);
  const int64_t embed = call.ins[WeighIn::kX].size("embed");
  for (int64_t t = tokens.begin; t < tokens.end; ++t) {
    std::fill_n(dweights + t * rows.choices(), rows.choices(), 0.0f);
    for (int64_t begin = 0; begin < embed; begin += kSlotChunk) {
      const int64_t n = std::min(kSlotChunk, embed - begin);
      map(Same(), n, wide, x + t * embed + begin);
      for (int64_t c = 0; c < rows.choices(); ++c) {
        const int64_t row = rows.row(t, c);
        float some = 0.0f;
        if (row < 0) continue;
        dots<1>(wide, 0, y + row * embed + begin, n, &some);
        dweights[t * rows.choices() + c] += some;
      }
    }
  }
}

void dispatch_part(const KernelCall& call, const SlotRows& rows, base::Range tokens) {
  for_type(call.outs[0].dtype(), [&]<typename T>(T) { dispatch_as<T>(call, rows, tokens); });
}
void combine_part(const KernelCall& call, const SlotRows& rows, base::Range tokens) {
  for_type(call.outs[0].dtype(), [&]<typename T>(T) { combine_as<T>(call, rows, tokens); });
}
void weigh_part(const KernelCall& call, const SlotRows& rows, base::Range tokens) {
  for_type(call.ins[WeighIn::kX].dtype(), [&]<typename T>(T) { weigh_as<T>(call, rows, tokens); });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {
namespace {

constexpr int64_t kTokens = 16;  // minimum share

}  // namespace

HWY_EXPORT(dispatch_part);

void dispatch(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(dispatch_part);
  const tensor::View& slots = call.ins[DispatchIn::kSlots];
  const SlotRows rows(call, slots, call.outs[0]);
  call.team.for_shares(slots.elements() / rows.choices(), kTokens,
                       [&](base::Range tokens, int) { part(call, rows, tokens); });
}

HWY_EXPORT(combine_part);

void combine(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(combine_part);
  const tensor::View& slots = call.ins[CombineIn::kSlots];
  const SlotRows rows(call, slots, call.ins[CombineIn::kY]);
  call.team.for_shares(slots.elements() / rows.choices(), kTokens,
                       [&](base::Range tokens, int) { part(call, rows, tokens); });
}

HWY_EXPORT(weigh_part);

void weigh(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(weigh_part);
  const tensor::View& slots = call.ins[WeighIn::kSlots];
  const SlotRows rows(call, slots, call.ins[WeighIn::kY]);
  call.team.for_shares(slots.elements() / rows.choices(), kTokens,
                       [&](base::Range tokens, int) { part(call, rows, tokens); });
}

// Rows of one fast dtype, and fp32 weights.
bool slots_take(const Operands& o) {
  for (size_t i = 0; i < o.ins.size(); ++i)
    if (o.ins.has(i) && o.ins[i].dtype == tensor::DType::f64) return false;
  return true;
}

}  // namespace kintsugi::kernels::cpu
#endif
