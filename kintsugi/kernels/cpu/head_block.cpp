#include "kintsugi/kernels/cpu/head_block.h"

#include <algorithm>

#include "kintsugi/kernels/cpu/bf16_unit.h"
#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/gemm.h"

namespace kintsugi::kernels::cpu {
namespace {

using tensor::bf16;
using tensor::DType;
using tensor::View;

constexpr int64_t kMaxRows = 2048;         // of a block of logits
constexpr int64_t kBlockLogits = 2 << 20;  // approximate
constexpr int64_t kHeldLogits =
    18 << 20;  // of whole rows, approximate: each block of rows accumulates into the whole dtable
constexpr int64_t kWideTable = 8192;  // rows of the table to widen at a time
constexpr int64_t kLine = 16;         // fp32 per cache line

void widen_all(base::ThreadTeam& team, DType dtype, const std::byte* from, float* to, int64_t n) {
  team.for_shares(n, 4096, [&](base::Range r, int) {
    widen(dtype, from + r.begin * tensor::size_of(dtype), to + r.begin, r.size());
  });
}

const float* wide_x(const Head& h) {
  return h.x ? h.x : reinterpret_cast<const float*>(h.given_x);
}

template <typename... P>
void multiply_all(base::ThreadTeam& team, const P&... products) {
  team.run([&](int thread) { (multiply_share(products, thread, team.size()), ...); });
}

// logits [rows count] = x [rows embed] * table^T [embed count]
Bf16Product narrow_forward(const Head& h, const Block& block) {
  return {.m = block.rows,
          .n = block.count,
          .k = h.embed,
          .a = reinterpret_cast<const bf16*>(h.given_x) + block.row * h.embed,
          .a_row = h.embed,
          .a_column = 1,
          .b = reinterpret_cast<const bf16*>(h.given_table) + block.first * h.embed,
          .b_row = 1,
          .b_column = h.embed,
          .c = reinterpret_cast<std::byte*>(block.logits),
          .c_row = block.width};
}

// dx [rows embed] (+)= dlogits [rows count] * table [count embed]
Bf16Product narrow_to_x(const Head& h, const Block& block, float* dx, bool adds) {
  return {.m = block.rows,
          .n = h.embed,
          .k = block.count,
          .a = reinterpret_cast<const bf16*>(block.logits),
          .a_row = 2 * block.width,
          .a_column = 1,
          .b = reinterpret_cast<const bf16*>(h.given_table) + block.first * h.embed,
          .b_row = h.embed,
          .b_column = 1,
          .c = reinterpret_cast<std::byte*>(dx + block.row * h.embed),
          .c_row = h.embed,
          .accumulate = adds};
}

// dtable [count embed] (+)= dlogits^T [count rows] * x [rows embed]
Bf16Product narrow_to_table(const Head& h, const Block& block, float* dtable, bool adds) {
  return {.m = block.count,
          .n = h.embed,
          .k = block.rows,
          .a = reinterpret_cast<const bf16*>(block.logits),
          .a_row = 1,
          .a_column = 2 * block.width,
          .b = reinterpret_cast<const bf16*>(h.given_x) + block.row * h.embed,
          .b_row = h.embed,
          .b_column = 1,
          .c = reinterpret_cast<std::byte*>(dtable + block.first * h.embed),
          .c_row = h.embed,
          .accumulate = adds};
}

// The same matmuls in fp32.
Product forward(const Head& h, const Block& block) {
  return {.m = block.rows,
          .n = block.count,
          .k = h.embed,
          .a = wide_x(h) + block.row * h.embed,
          .a_row = h.embed,
          .a_column = 1,
          .b = block.table,
          .b_row = 1,
          .b_column = h.embed,
          .c = block.logits,
          .c_row = block.width};
}
Product to_x(const Head& h, const Block& block, float* dx, bool adds) {
  return {.m = block.rows,
          .n = h.embed,
          .k = block.count,
          .a = block.logits,
          .a_row = block.width,
          .a_column = 1,
          .b = block.table,
          .b_row = h.embed,
          .b_column = 1,
          .c = dx + block.row * h.embed,
          .c_row = h.embed,
          .accumulate = adds};
}
Product to_table(const Head& h, const Block& block, float* dtable, bool adds) {
  return {.m = block.count,
          .n = h.embed,
          .k = block.rows,
          .a = block.logits,
          .a_row = 1,
          .a_column = block.width,
          .b = wide_x(h) + block.row * h.embed,
          .b_row = h.embed,
          .b_column = 1,
          .c = dtable + block.first * h.embed,
          .c_row = h.embed,
          .accumulate = adds};
}

// Panels for the largest matmuls of a head.
Bf16Scratch take_products(const Head& h, Makes makes, int threads, Scratch& scratch) {
  const Block block = {.rows = h.block_rows, .count = h.block_vocab, .width = h.width};
  const Bf16Product y = narrow_forward(h, block);
  if (makes == Makes::statistics) return take_bf16_scratch({y}, threads, false, scratch);
  Bf16Product dx = narrow_to_x(h, block, nullptr, false);
  dx.a_column = 0;  // the last block may not consist of whole steps of k
  return take_bf16_scratch({y, dx, narrow_to_table(h, block, nullptr, false)}, threads, false, scratch);
}

}  // namespace

Head take_head(const HeadTypes& types, Makes makes, bool kept, int threads, Scratch& scratch) {
  const tensor::Type &x = types.x, &table = types.table;
  Head h = {};
  h.embed = x.shape.size("embed");
  h.rows = x.shape.elements() / std::max<int64_t>(h.embed, 1);
  h.vocab = table.shape.size("vocab");
  h.block_rows = std::min(h.rows, kMaxRows);
  h.narrow = x.dtype == DType::bf16 && table.dtype == DType::bf16;
  const bool widened = x.dtype != DType::f32 && !h.narrow;
  if (makes == Makes::both) {
    h.block_vocab = h.vocab;
    h.table_vocab = std::min(h.vocab, widened ? kWideTable : h.vocab);
    const int64_t most = std::clamp<int64_t>(kHeldLogits / std::max<int64_t>(h.vocab, 1), 1, kMaxRows);
    const int64_t blocks = std::max<int64_t>((h.rows + most - 1) / most, 1);
    const int64_t tiles = (h.rows + kTile - 1) / kTile;
    h.block_rows = std::min(h.rows, (tiles + blocks - 1) / blocks * kTile);
  } else {
    h.block_vocab = std::max<int64_t>(kBlockLogits / std::max<int64_t>(h.block_rows, 1), 256) / 16 * 16;
    if (widened) h.block_vocab = std::min(h.block_vocab, kWideTable);
    h.block_vocab = h.table_vocab = std::min(h.block_vocab, h.vocab);
  }
  h.width = h.narrow ? (h.block_vocab + kLine - 1) / kLine * kLine : h.block_vocab;
  if (!kept) h.logits = scratch.take<float>(h.block_rows * h.width);
  if (widened) {
    h.x = scratch.take<float>(h.rows * h.embed);
    h.table = scratch.take<float>(h.table_vocab * h.embed);
  }
  if (x.dtype != DType::f32 && makes != Makes::statistics) h.dx = scratch.take<float>(h.rows * h.embed);
  if (h.narrow) h.products = take_products(h, makes, threads, scratch);
  if (makes == Makes::statistics) {
    h.top = scratch.take<float>(h.rows);
    h.sum = scratch.take<float>(h.rows);
  }
  if (types.bias && types.bias->dtype != DType::f32) h.wide_bias = scratch.take<float>(h.vocab);
  return h;
}

Head begin_head(const KernelCall& call, Makes makes) {
  Scratch scratch(call.workspace);
  const View &x = call.ins[HeadIn::kX], &table = call.ins[HeadIn::kTable], &bias = call.ins[HeadIn::kBias];
  const bool kept = makes == Makes::statistics && call.outs[HeadOut::kLogits].data;
  Head h = take_head({x.type, table.type, bias.data ? &bias.type : nullptr}, makes, kept, call.team.size(), scratch);
  h.given_x = x.data, h.given_table = table.data;
  if (h.x) widen_all(call.team, x.dtype(), x.data, h.x, h.rows * h.embed);
  if (h.wide_bias) widen_all(call.team, bias.dtype(), bias.data, h.wide_bias, h.vocab);
  h.bias = h.wide_bias ? h.wide_bias : reinterpret_cast<const float*>(bias.data);
  return h;
}

const float* wide_table(const KernelCall& call, const Head& h, int64_t first, int64_t count) {
  if (h.narrow) return nullptr;
  const DType dtype = call.ins[HeadIn::kTable].dtype();
  const std::byte* from = h.given_table + first * h.embed * tensor::size_of(dtype);
  if (!h.table) return reinterpret_cast<const float*>(from);
  widen_all(call.team, dtype, from, h.table, count * h.embed);
  return h.table;
}

void multiply_forward(const KernelCall& call, const Head& h, const Block& block) {
  if (h.narrow) return multiply(narrow_forward(h, block), h.products, call.team);
  multiply_all(call.team, forward(h, block));
}

void multiply_back(const KernelCall& call, const Head& h, const Block& block, float* dx, bool adds_dx, float* dtable,
                   bool adds_dtable) {
  if (!h.narrow) {
    if (dtable) return multiply_all(call.team, to_x(h, block, dx, adds_dx), to_table(h, block, dtable, adds_dtable));
    return multiply_all(call.team, to_x(h, block, dx, adds_dx));
  }
  multiply(narrow_to_x(h, block, dx, adds_dx), h.products, call.team);
  if (dtable) multiply(narrow_to_table(h, block, dtable, adds_dtable), h.products, call.team);
}

}  // namespace kintsugi::kernels::cpu
