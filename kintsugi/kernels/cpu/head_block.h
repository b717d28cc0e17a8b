// The products of the vocabulary's head (head.cpp) and the memory that they need. bf16 goes to the processor's unit as
// it is (gemm_bf16.h), and gradients of logits are bf16 too; fp16 is widened.
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
  int64_t width;                    // from row to row of `logits`, of whole blocks
  int64_t table_vocab;              // of `table`
  bool narrow;                      // x and the table are bf16
  // In the workspace; x and table only where they are widened, dx only where it is not fp32.
  float *logits, *x, *table, *dx, *top, *sum;
  float* wide_bias;  // where it is not fp32
  Bf16Scratch products;

  const std::byte* given_x;  // where they are used as they are
  const std::byte* given_table;
  const float* bias;  // [vocab]; null if there is none
};

struct HeadTypes {
  const tensor::Type &x, &table;
  const tensor::Type* bias;  // or null
};

// `kept`: of the statistics, if the logits are an output, whole.
Head take_head(const HeadTypes& types, Makes makes, bool kept, int threads, Scratch& scratch);

// With memory, x ready for products, and the bias in fp32.
Head begin_head(const KernelCall& call, Makes makes);

// Rows of x and a part of the vocabulary, with their logits: [rows count], rows `width` apart.
struct Block {
  int64_t row = 0, rows = 0, first = 0, count = 0;
  const float* table = nullptr;  // its first row, where it is fp32
  float* logits = nullptr;
  int64_t width = 0;
};

// Rows of the table from `first` on in fp32, or null where they are used as they are.
const float* wide_table(const KernelCall& call, const Head& h, int64_t first, int64_t count);

// logits = x table^T
void multiply_forward(const KernelCall& call, const Head& h, const Block& block);

// dx (+)= dlogits table, dtable (+)= dlogits^T x, unless it is null. The gradients are where the logits were: in bf16
// from the beginning of each row on, if `narrow`.
void multiply_back(const KernelCall& call, const Head& h, const Block& block, float* dx, bool adds_dx, float* dtable,
                   bool adds_dtable);

}  // namespace kintsugi::kernels::cpu
