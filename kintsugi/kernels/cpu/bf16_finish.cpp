#include "kintsugi/kernels/cpu/bf16_finish.h"

#include "kintsugi/kernels/cpu/bf16_unit.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/bf16_finish.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

struct Store {
  HWY_INLINE V operator()(V x) const { return x; }
};
struct Add {
  HWY_INLINE V operator()(V x, V y) const { return hn::Add(x, y); }
};
struct AddBoth {
  HWY_INLINE V operator()(V x, V y, V z) const { return hn::Add(hn::Add(x, y), z); }
};

// One row: `bias` has n contiguous elements, or is null.
template <typename T, typename B>
HWY_INLINE void finish_row(const float* sums, const B* bias, bool accumulate, int64_t n, T* c) {
  if (bias && accumulate) {
    map(AddBoth(), n, c, sums, bias, c);
  } else if (bias) {
    map(Add(), n, c, sums, bias);
  } else if (accumulate) {
    map(Add(), n, c, sums, c);
  } else {
    map(Store(), n, c, sums);
  }
}

template <typename T, typename B>
void finish_rows(const Bf16Product& p, const float* tile, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  const B* bias = reinterpret_cast<const B*>(p.bias.data);
  const bool side_by_side = p.bias.column == 1;
  for (int64_t i = 0; i < rows; ++i) {
    T* c = reinterpret_cast<T*>(p.c) + (row + i) * p.c_row + column;
    const float* sums = tile + i * kTile;
    if (!bias || side_by_side) {
      finish_row<T, B>(sums, bias ? bias + (row + i) * p.bias.row + column : nullptr, p.accumulate, columns, c);
      continue;
    }
    B copy[kTile];
    for (int64_t j = 0; j < columns; ++j) copy[j] = bias[(row + i) * p.bias.row + (column + j) * p.bias.column];
    finish_row<T, B>(sums, copy, p.accumulate, columns, c);
  }
}

template <typename T>
void finish_as(const Bf16Product& p, const float* tile, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  if (p.bias.dtype == tensor::DType::bf16) {
    finish_rows<T, tensor::bf16>(p, tile, row, column, rows, columns);
  } else {
    finish_rows<T, float>(p, tile, row, column, rows, columns);
  }
}

void finish(const Bf16Product& p, const float* tile, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  if (p.c_dtype == tensor::DType::bf16) {
    finish_as<tensor::bf16>(p, tile, row, column, rows, columns);
  } else {
    finish_as<float>(p, tile, row, column, rows, columns);
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(finish);

void finish_tile(const Bf16Product& p, const float* tile, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(finish)(p, tile, row, column, rows, columns);
}

}  // namespace kintsugi::kernels::cpu
#endif
