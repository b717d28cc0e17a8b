#include "kintsugi/kernels/cpu/rows.h"

#include <algorithm>

#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/rows.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace {
struct Add {
  HWY_INLINE V operator()(V y, V x) const { return hn::Add(y, x); }
};
}  // namespace

void add_row(const ScatterRows& s, int64_t i, int64_t row, base::Range columns) {
  float* to = s.table + row * s.columns + columns.begin;
  for_type(s.dtype, [&]<typename T>(T) {
    map(Add(), columns.size(), to, static_cast<const float*>(to),
        reinterpret_cast<const T*>(s.dy) + i * s.columns + columns.begin);
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(add_row);

void clear_table(const ScatterRows& s, base::ThreadTeam& team) {
  team.for_shares(s.table_rows * s.columns, 4096,
                  [&](base::Range r, int) { std::fill_n(s.table + r.begin, r.size(), 0.0f); });
}

void add_to_row(const ScatterRows& s, int64_t i, int64_t row, base::Range columns) {
  HWY_DYNAMIC_DISPATCH(add_row)(s, i, row, columns);
}

}  // namespace kintsugi::kernels::cpu
#endif
