// The matmuls of the output head (head.cpp) and their memory. bf16 is used directly by the CPU's unit (gemm_bf16.h),
// with logit gradients in bf16; fp16 is widened.
#pragma once

#include "kintsugi/kernels/cpu/gemm_bf16.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/operands.h"

namespace kintsugi::kernels::cpu {

enum class Makes { statistics, gradient, both };

// x: [rows embed], table: [vocab embed]
struct Head {
  int64_t rows, embed, vocab;
  int64_t block_rows, block_vocab;  // of `logits`
  int64_t width;                    // row stride of `logits`, in whole blocks
  int64_t table_vocab;              // of `table`
  bool narrow;                      // x and the table are bf16
  // In the workspace; x and table only if they are widened, dx only if it is not fp32.
  float *logits, *x, *table, *dx, *top, *sum;
  float* wide_bias;  // if the bias is not fp32
  Bf16Scratch products;

  const std::byte* given_x;  // if used directly
  const std::byte* given_table;
  const float* bias;  // [vocab]; null: none
};

struct HeadTypes {
  const tensor::Type &x, &table;
  const tensor::Type* bias;  // or null
};

// `kept`: for statistics, if all logits are an output.
Head take_head(const HeadTypes& types, Makes makes, bool kept, int threads, Scratch& scratch);

// With memory, x ready for matmuls, and the bias in fp32.
Head begin_head(const KernelCall& call, Makes makes);

// Rows of x and a part of the vocabulary, with their logits: [rows count], with row stride `width`.
struct Block {
  int64_t row = 0, rows = 0, first = 0, count = 0;
  const float* table = nullptr;  // its first row, if it is fp32
  float* logits = nullptr;
  int64_t width = 0;
};

// Rows of the table from `first` in fp32, or null if used directly.
const float* wide_table(const KernelCall& call, const Head& h, int64_t first, int64_t count);

// logits = x table^T
void multiply_forward(const KernelCall& call, const Head& h, const Block& block);

// dx (+)= dlogits table, dtable (+)= dlogits^T x, unless it is null. Gradients overwrite the logits: in bf16 from the
// beginning of each row, if `narrow`.
void multiply_back(const KernelCall& call, const Head& h, const Block& block, float* dx, bool adds_dx, float* dtable,
                   bool adds_dtable);

}  // namespace kintsugi::kernels::cpu
