// The vocabulary's logits and their loss. Statistics alone and gradient alone process blocks of the vocabulary: a
// matmul into a block of the workspace, then a pass over its rows. Computed together, they use whole rows of logits, as
// many as fit in a block, and compute them once. The blocks, and so all bits except those of the library, do not depend
// on the number of threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/head_block.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/head.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/columns-inl.h"
#include "kintsugi/kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

struct Exponential {
  float below, by;
  HWY_INLINE V operator()(V x) const { return hn::Mul(exp_of(hn::Sub(x, set(below))), set(by)); }
};

// Updates a row's running maximum, and sum of exponentials relative to it, with n more logits.
void running_softmax(const float* logits, int64_t n, float* top, float* sum) {
  V highest = set(*top);
  int64_t i = 0;
  for (; i + lanes() <= n; i += lanes()) highest = hn::Max(highest, load(logits + i));
  float now = hn::GetLane(hn::MaxOfLanes(D(), highest));
  for (; i < n; ++i) now = std::max(now, logits[i]);
  const V below = set(now);
  V total = zero();
  for (i = 0; i + lanes() <= n; i += lanes()) total = hn::Add(total, exp_of(hn::Sub(load(logits + i), below)));
  float added = sum_of_lanes(total);
  for (; i < n; ++i) added += std::exp(logits[i] - now);
  *sum = *sum * std::exp(*top - now) + added;
  *top = now;
}

// Converts logits to their gradients, possibly in place.
void softmax_back(const float* logits, int64_t n, float lse, float dlse, float* gradients) {
  map(Exponential{lse, dlse}, n, gradients, logits);
}
void narrow_softmax_back(const float* logits, int64_t n, float lse, float dlse, tensor::bf16* gradients) {
  map(Exponential{lse, dlse}, n, gradients, logits);
}

struct Sum {
  HWY_INLINE V operator()(V x, V y) const { return hn::Add(x, y); }
};
void add_to_logits(const float* bias, int64_t n, float* logits) {
  map(Sum(), n, logits, logits, bias);
}

// dbias (+)= the sum of the gradients of a block's logits down their columns, for a range of columns.
template <typename T>
void sum_gradients(const Block& block, int64_t width, base::Range columns, float* dbias, bool adds) {
  const T* gradients = reinterpret_cast<const T*>(block.logits);
  add_columns(
      block.rows, columns, adds, dbias + block.first,
      [&](int64_t r, int64_t c) HWY_ATTR { return load(gradients + r * width + c); },
      [&](int64_t r, int64_t c) { return static_cast<float>(gradients[r * width + c]); });
}
void to_bias(const Block& block, bool narrow, base::Range columns, float* dbias, bool adds) {
  if (narrow) return sum_gradients<tensor::bf16>(block, 2 * block.width, columns, dbias, adds);
  sum_gradients<float>(block, block.width, columns, dbias, adds);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {
namespace {

HWY_EXPORT(running_softmax);
HWY_EXPORT(softmax_back);
HWY_EXPORT(narrow_softmax_back);
HWY_EXPORT(add_to_logits);
HWY_EXPORT(to_bias);

using tensor::DType;
using tensor::Type;
using tensor::View;

constexpr float kNone = -1e30f;  // below every logit, and finite

// Calls f(begin, count, global) for the parts of [first, first + count) of the vocabulary that lie in a single segment;
// global is -1 for padding, begin is relative to `first`.
template <typename F>
void for_segments(const tensor::DimIndex& index, int64_t first, int64_t count, const F& f) {
  int64_t at = 0;
  for (const tensor::Segment& s : index.segments()) {
    const int64_t begin = std::max(at, first), end = std::min(at + s.count, first + count);
    if (begin < end) f(begin - first, end - begin, s.global < 0 ? -1 : s.global + begin - at);
    at += s.count;
  }
}

Block block_of(const Head& h, const float* table, int64_t row, int64_t first, int64_t count, float* logits,
               int64_t width) {
  return {.row = row,
          .rows = std::min(h.block_rows, h.rows - row),
          .first = first,
          .count = count,
          .table = table,
          .logits = logits,
          .width = width};
}

// The inputs of the gradients of one position.
struct ToGradients {
  int32_t label;
  float lse, dlse, dtarget;
};

// Converts the logits of one position over a part of the vocabulary to their gradients, possibly in place: writes from
// the first byte on for either type.
template <typename T>
void to_gradients(const tensor::DimIndex& index, int64_t first, int64_t count, const ToGradients& by,
                  const float* logits, T* gradients) {
  if (by.dlse == 0 && by.dtarget == 0) return static_cast<void>(std::fill_n(gradients, count, T()));
  for_segments(index, first, count, [&](int64_t at, int64_t n, int64_t global) {
    if (global < 0) return static_cast<void>(std::fill_n(gradients + at, n, T()));
    const int64_t here = by.label - global;
    const bool labelled = here >= 0 && here < n;
    const float logit = labelled ? logits[at + here] : 0;
    if constexpr (std::is_same_v<T, float>) {
      HWY_DYNAMIC_DISPATCH(softmax_back)(logits + at, n, by.lse, by.dlse, gradients + at);
      if (labelled) gradients[at + here] += by.dtarget;
    } else {
      HWY_DYNAMIC_DISPATCH(narrow_softmax_back)(logits + at, n, by.lse, by.dlse, gradients + at);
      if (labelled) gradients[at + here] = T(std::exp(logit - by.lse) * by.dlse + by.dtarget);
    }
  });
}

// The same, to where matmuls read them.
void to_gradients(const Head& h, const tensor::DimIndex& index, int64_t first, int64_t count, const ToGradients& by,
                  const float* logits, float* gradients) {
  if (h.narrow) return to_gradients(index, first, count, by, logits, reinterpret_cast<tensor::bf16*>(gradients));
  to_gradients(index, first, count, by, logits, gradients);
}

// Adds the same logits to the running maximum and sum; stores the label's in `target` if it is in this part.
void to_statistics(const tensor::DimIndex& index, int64_t first, int64_t count, int32_t label, const float* logits,
                   float* top, float* sum, float* target) {
  const auto running = HWY_DYNAMIC_DISPATCH(running_softmax);
  for_segments(index, first, count, [&](int64_t at, int64_t n, int64_t global) {
    if (global < 0) return;
    running(logits + at, n, top, sum);
    const int64_t here = label - global;
    if (here >= 0 && here < n) *target = logits[at + here];
  });
}

void clear_padding(const tensor::DimIndex& index, int64_t first, int64_t count, float* logits) {
  for_segments(index, first, count, [&](int64_t at, int64_t n, int64_t global) {
    if (global < 0) std::fill_n(logits + at, n, 0.0f);
  });
}

// Adds the bias of a part of the vocabulary to the logits of one position.
void add_bias(const Head& h, int64_t first, int64_t count, float* logits) {
  if (h.bias) HWY_DYNAMIC_DISPATCH(add_to_logits)(h.bias + first, count, logits);
}

// dbias (+)= the gradients of a block's logits, summed over its rows; no-op without a bias.
void bias_back(const KernelCall& call, const Head& h, const Block& block, float* dbias, bool adds) {
  if (!dbias) return;
  const auto sum = HWY_DYNAMIC_DISPATCH(to_bias);
  call.team.for_shares(block.count, 64, [&](base::Range r, int) { sum(block, h.narrow, r, dbias, adds); });
}

float lse_of(float top, float sum) {
  return sum == 0 ? -std::numeric_limits<float>::infinity() : top + std::log(sum);
}

template <typename T>
T* data(const View& view) {
  return reinterpret_cast<T*>(view.data);
}

void store_dx(const KernelCall& call, const Head& h, const View& out) {
  if (!h.dx) return;
  call.team.for_shares(h.rows * h.embed, 4096, [&](base::Range r, int) {
    narrow(out.dtype(), h.dx + r.begin, out.data + r.begin * tensor::size_of(out.dtype()), r.size());
  });
}

int64_t workspace_for(const KernelShapes& shapes, Makes makes) {
  Scratch scratch;
  const bool kept = makes == Makes::statistics && shapes.outs[HeadOut::kLogits];
  take_head({*shapes.ins[HeadIn::kX], *shapes.ins[HeadIn::kTable], shapes.ins[HeadIn::kBias]}, makes, kept,
            shapes.threads, scratch);
  return scratch.bytes();
}

}  // namespace

int64_t head_workspace(const KernelShapes& shapes) {
  return workspace_for(shapes, Makes::statistics);
}

int64_t head_grad_workspace(const KernelShapes& shapes) {
  return workspace_for(shapes, Makes::gradient);
}

int64_t head_with_grad_workspace(const KernelShapes& shapes) {
  return workspace_for(shapes, Makes::both);
}

void head(const KernelCall& call) {
  using Out = HeadOut;
  const Head h = begin_head(call, Makes::statistics);
  const int32_t* labels = data<int32_t>(call.ins[HeadIn::kLabels]);
  float *lse = data<float>(call.outs[Out::kLse]), *target = data<float>(call.outs[Out::kTarget]);
  const tensor::DimIndex& index = call.index("vocab");
  float* kept = data<float>(call.outs[Out::kLogits]);  // or null
  std::fill_n(h.top, h.rows, kNone);
  std::fill_n(h.sum, h.rows, 0.0f);
  std::fill_n(target, h.rows, 0.0f);
  for (int64_t first = 0; first < h.vocab; first += h.block_vocab) {
    const int64_t count = std::min(h.block_vocab, h.vocab - first);
    const float* table = wide_table(call, h, first, count);
    for (int64_t row = 0; row < h.rows; row += h.block_rows) {
      float* logits = kept ? kept + row * h.vocab + first : h.logits;
      const Block block = block_of(h, table, row, first, count, logits, kept ? h.vocab : h.width);
      multiply_forward(call, h, block);
      call.team.for_shares(block.rows, 1, [&](base::Range r, int) {
        for (int64_t i = row + r.begin; i < row + r.end; ++i) {
          float* of_row = logits + (i - row) * block.width;
          add_bias(h, first, count, of_row);
          to_statistics(index, first, count, labels[i], of_row, h.top + i, h.sum + i, target + i);
          if (kept) clear_padding(index, first, count, of_row);
        }
      });
    }
  }
  for (int64_t i = 0; i < h.rows; ++i) lse[i] = lse_of(h.top[i], h.sum[i]);
  if (float* top = data<float>(call.outs[Out::kTop]))
    for (int64_t i = 0; i < h.rows; ++i) top[i] = h.sum[i] == 0 ? -std::numeric_limits<float>::infinity() : h.top[i];
}

void head_grad(const KernelCall& call) {
  using In = HeadGradIn;
  using Out = HeadGradOut;
  const Head h = begin_head(call, Makes::gradient);
  const int32_t* labels = data<int32_t>(call.ins[In::kLabels]);
  const float *lse = data<float>(call.ins[In::kLse]), *dlse = data<float>(call.ins[In::kDlse]),
              *dtarget = data<float>(call.ins[In::kDtarget]);
  const float* kept = data<float>(call.ins[In::kLogits]);  // or null
  float *dx = h.dx ? h.dx : data<float>(call.outs[Out::kDx]),
        *dtable = data<float>(call.outs[Out::kDtable]);  // or null
  float* dbias = data<float>(call.outs[Out::kDbias]);    // or null
  const bool adds = call.accumulates(Out::kDtable), adds_dbias = call.accumulates(Out::kDbias);
  const tensor::DimIndex& index = call.index("vocab");
  for (int64_t first = 0; first < h.vocab; first += h.block_vocab) {
    const int64_t count = std::min(h.block_vocab, h.vocab - first);
    const float* table = wide_table(call, h, first, count);
    for (int64_t row = 0; row < h.rows; row += h.block_rows) {
      const Block block = block_of(h, table, row, first, count, h.logits, h.width);
      if (!kept) multiply_forward(call, h, block);
      call.team.for_shares(block.rows, 1, [&](base::Range r, int) {
        for (int64_t i = row + r.begin; i < row + r.end; ++i) {
          float* gradients = h.logits + (i - row) * block.width;
          if (!kept) add_bias(h, first, count, gradients);
          to_gradients(h, index, first, count, {labels[i], lse[i], dlse[i], dtarget[i]},
                       kept ? kept + i * h.vocab + first : gradients, gradients);
        }
      });
      multiply_back(call, h, block, dx, first > 0, dtable, row > 0 || adds);
      bias_back(call, h, block, dbias, row > 0 || adds_dbias);
    }
  }
  store_dx(call, h, call.outs[Out::kDx]);
}

void head_with_grad(const KernelCall& call) {
  using In = HeadWithGradIn;
  using Out = HeadWithGradOut;
  const Head h = begin_head(call, Makes::both);
  const int32_t* labels = data<int32_t>(call.ins[In::kLabels]);
  const float *dlse = data<float>(call.ins[In::kDlse]), *dtarget = data<float>(call.ins[In::kDtarget]);
  float *lse = data<float>(call.outs[Out::kLse]), *target = data<float>(call.outs[Out::kTarget]);
  float *dx = h.dx ? h.dx : data<float>(call.outs[Out::kDx]),
        *dtable = data<float>(call.outs[Out::kDtable]);  // or null
  float* dbias = data<float>(call.outs[Out::kDbias]);    // or null
  const bool adds = call.accumulates(Out::kDtable), adds_dbias = call.accumulates(Out::kDbias);
  const tensor::DimIndex& index = call.index("vocab");
  for (int64_t row = 0; row < h.rows; row += h.block_rows) {
    const auto parts = [&](const auto& f) {
      for (int64_t first = 0; first < h.vocab; first += h.table_vocab) {
        const int64_t count = std::min(h.table_vocab, h.vocab - first);
        f(block_of(h, wide_table(call, h, first, count), row, first, count, h.logits + first, h.width));
      }
    };
    parts([&](const Block& block) { multiply_forward(call, h, block); });
    const int64_t rows = std::min(h.block_rows, h.rows - row);
    call.team.for_shares(rows, 1, [&](base::Range r, int) {
      for (int64_t i = row + r.begin; i < row + r.end; ++i) {
        float* logits = h.logits + (i - row) * h.width;
        float top = kNone, sum = 0;
        target[i] = 0;
        add_bias(h, 0, h.vocab, logits);
        to_statistics(index, 0, h.vocab, labels[i], logits, &top, &sum, target + i);
        lse[i] = lse_of(top, sum);
        to_gradients(h, index, 0, h.vocab, {labels[i], lse[i], dlse[i], dtarget[i]}, logits, logits);
      }
    });
    parts([&](const Block& block) {
      multiply_back(call, h, block, dx, block.first > 0, dtable, row > 0 || adds);
      bias_back(call, h, block, dbias, row > 0 || adds_dbias);
    });
  }
  store_dx(call, h, call.outs[Out::kDx]);
}

}  // namespace kintsugi::kernels::cpu
#endif
