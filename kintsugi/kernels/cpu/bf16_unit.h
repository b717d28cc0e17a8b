// CPU units that multiply bf16 and accumulate in fp32, each as a few functions on packed panels. An element of a matmul
// is one sum over k from its beginning, in an order determined only by the unit: bits do not depend on blocks, threads
// or surrounding rows and columns. Units differ in rounding:
//   amx          sums of 16 products of even and of odd k (tdpbf16ps), then their sum
//   avx512_bf16  pairs of k (vdpbf16ps); flushes denormals to 0, as does amx
//   plain        fp32, one k after another; FMA if available
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels::cpu {

constexpr int64_t kTile = 32;  // rows and columns of a tile of c
constexpr int64_t kStep = 32;  // of k; panels are padded to whole steps with zeros

// Columns or rows of a matrix to pack: element (i, l) is at from[i * stride + l * k_stride], i < count <= kTile, l < k.
// One of the strides is 1.
struct Bf16Panel {
  const tensor::bf16* from = nullptr;
  int64_t stride = 0, k_stride = 0;
  int64_t count = 0, k = 0;
};

// c [kTile kTile] = a * b over `steps` steps of k, or c += a * b.
struct Bf16Tile {
  int64_t steps = 0;
  const tensor::bf16* a = nullptr;  // row i of step s is 32 elements at a + i * a_row + s * a_step
  int64_t a_row = 0, a_step = 0;    // a packed panel has kStep and kTile * kStep
  const tensor::bf16* b =
      nullptr;  // a packed panel: [steps 2 16 16 2], the last two: columns of the half, k of the pair
  float* c = nullptr;
  int64_t c_row = 0;
  bool adds = false;
};

struct Bf16Product;

struct Bf16Unit {
  std::string_view name;
  void (*begin)();                                     // before matmuls of the calling thread
  void (*end)();                                       // after them
  void (*pack_a)(const Bf16Panel&, tensor::bf16* to);  // [steps kTile kStep]
  void (*pack_b)(const Bf16Panel&, tensor::bf16* to);
  void (*multiply)(const Bf16Tile&);
  // From a tile of sums, [kTile kTile], to c at (row, column), as specified by Bf16Product.
  void (*finish)(const Bf16Product&, const float* tile, int64_t row, int64_t column, int64_t rows, int64_t columns);
};

// The units of this machine, fastest first; plain is the last.
std::span<const Bf16Unit* const> bf16_units();

// The unit that kernels use: the first, or what a test or benchmark has selected.
const Bf16Unit& bf16_unit();
void use_bf16_unit(const Bf16Unit* unit);  // null: reset to the first

}  // namespace kintsugi::kernels::cpu
