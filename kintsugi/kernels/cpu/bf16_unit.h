// The units of processors that multiply bf16 and add in fp32, each behind a few functions on packed panels. An element
// of a product is one sum over k from its beginning on, in an order that the unit alone determines: bits do not depend
// on blocks, threads or the rows and columns around it. Units differ in how they round:
//   amx          sums of 16 products of even and of odd k (tdpbf16ps), then their sum
//   avx512_bf16  pairs of k (vdpbf16ps); subnormal numbers count as 0 here and in amx
//   plain        fp32, one k after another; fused where the processor can
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels::cpu {

constexpr int64_t kTile = 32;  // rows and columns of a tile of c
constexpr int64_t kStep = 32;  // of k; panels are padded to whole steps with zeros

// Columns or rows of a matrix, to be packed: element (i, l) is at from[i * stride + l * k_stride], i < count <= kTile,
// l < k. One of the strides is 1.
struct Bf16Panel {
  const tensor::bf16* from = nullptr;
  int64_t stride = 0, k_stride = 0;
  int64_t count = 0, k = 0;
};

// c [kTile kTile] = a * b over `steps` steps of k, or the sum goes on from what c is.
struct Bf16Tile {
  int64_t steps = 0;
  const tensor::bf16* a = nullptr;  // row i of step s is 32 elements at a + i * a_row + s * a_step
  int64_t a_row = 0, a_step = 0;    // a packed panel has kStep and kTile * kStep
  const tensor::bf16* b = nullptr;  // a packed panel: [steps 2 16 16 2], the last: columns of the half, k of the pair
  float* c = nullptr;
  int64_t c_row = 0;
  bool adds = false;
};

struct Bf16Product;

struct Bf16Unit {
  std::string_view name;
  void (*begin)();                                     // before products of the calling thread
  void (*end)();                                       // after them
  void (*pack_a)(const Bf16Panel&, tensor::bf16* to);  // [steps kTile kStep]
  void (*pack_b)(const Bf16Panel&, tensor::bf16* to);
  void (*multiply)(const Bf16Tile&);
  // From a tile of sums, [kTile kTile], to c at (row, column), as Bf16Product says.
  void (*finish)(const Bf16Product&, const float* tile, int64_t row, int64_t column, int64_t rows, int64_t columns);
};

// Those that this machine has, the fastest first; plain is the last.
std::span<const Bf16Unit* const> bf16_units();

// The one that kernels use: the first, or what a test or a benchmark asked for.
const Bf16Unit& bf16_unit();
void use_bf16_unit(const Bf16Unit* unit);  // null: the first again

}  // namespace kintsugi::kernels::cpu
