// The vocabulary's logits and their loss. Statistics alone and gradient alone go through blocks of the vocabulary: a
// product into a block of the workspace, then a pass over its rows. Computed together they use whole rows of logits,
// as many as fit in a block, and make them once. The blocks, and so all bits except those of the library, do not
// depend on the number of threads.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/gemm.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/head.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

struct Exponential {
  float below, by;
  HWY_INLINE V operator()(V x) const { return hn::Mul(exp_of(hn::Sub(x, set(below))), set(by)); }
};

// The running maximum of a row and the sum of exponentials below it, over n more logits.
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

// Logits to their gradients.
void softmax_back(const float* logits, int64_t n, float lse, float dlse, float* gradients) {
  map(Exponential{lse, dlse}, n, gradients, logits);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {
namespace {

HWY_EXPORT(running_softmax);
HWY_EXPORT(softmax_back);

using tensor::DType;
using tensor::Type;
using tensor::View;

constexpr int64_t kMaxRows = 2048;         // of a block of logits
constexpr int64_t kBlockLogits = 2 << 20;  // about
constexpr int64_t kHeldLogits = 16 << 20;  // of whole rows, about: each block of rows adds to the whole dtable
constexpr int64_t kWideTable = 8192;       // rows of the table that are widened at a time
constexpr float kNone = -1e30f;            // below every logit, and finite

// x: [rows embed], table: [vocab embed]
struct Head {
  int64_t rows, embed, vocab;
  int64_t block_rows, block_vocab;             // of `logits`
  int64_t table_vocab;                         // of `table`
  float *logits, *x, *table, *dx, *top, *sum;  // in the workspace; x, table, dx only where T is not fp32

  const float* wide_x;
};

enum class Makes { statistics, gradient, both };

// `kept`: of the statistics, if the logits are an output, whole.
Head take_head(const Type& x, const Type& table, Makes makes, bool kept, Scratch& scratch) {
  Head h = {};
  h.embed = x.shape.size("embed");
  h.rows = x.shape.elements() / std::max<int64_t>(h.embed, 1);
  h.vocab = table.shape.size("vocab");
  h.block_rows = std::min(h.rows, kMaxRows);
  if (makes == Makes::both) {
    h.block_vocab = h.vocab;
    h.table_vocab = std::min(h.vocab, x.dtype == DType::f32 ? h.vocab : kWideTable);
    const int64_t most = std::clamp<int64_t>(kHeldLogits / std::max<int64_t>(h.vocab, 1), 1, kMaxRows);
    const int64_t blocks = std::max<int64_t>((h.rows + most - 1) / most, 1);
    h.block_rows = (h.rows + blocks - 1) / blocks;
  } else {
    h.block_vocab = std::max<int64_t>(kBlockLogits / std::max<int64_t>(h.block_rows, 1), 256) / 16 * 16;
    if (x.dtype != DType::f32) h.block_vocab = std::min(h.block_vocab, kWideTable);
    h.block_vocab = h.table_vocab = std::min(h.block_vocab, h.vocab);
  }
  if (!kept) h.logits = scratch.take<float>(h.block_rows * h.block_vocab);
  if (x.dtype != DType::f32) {
    h.x = scratch.take<float>(h.rows * h.embed);
    h.table = scratch.take<float>(h.table_vocab * h.embed);
    if (makes != Makes::statistics) h.dx = scratch.take<float>(h.rows * h.embed);
  }
  if (makes == Makes::statistics) {
    h.top = scratch.take<float>(h.rows);
    h.sum = scratch.take<float>(h.rows);
  }
  return h;
}

void widen_all(base::ThreadTeam& team, DType dtype, const std::byte* from, float* to, int64_t n) {
  team.for_shares(n, 4096, [&](base::Range r, int) {
    widen(dtype, from + r.begin * tensor::size_of(dtype), to + r.begin, r.size());
  });
}

Head begin(const KernelCall& call, Makes makes) {
  Scratch scratch(call.workspace);
  const View& x = call.ins[HeadIn::kX];
  const bool kept = makes == Makes::statistics && call.outs[HeadOut::kLogits].data;
  Head h = take_head(x.type, call.ins[HeadIn::kTable].type, makes, kept, scratch);
  h.wide_x = h.x ? h.x : reinterpret_cast<const float*>(x.data);
  if (h.x) widen_all(call.team, x.dtype(), x.data, h.x, h.rows * h.embed);
  return h;
}

// The rows of a block of the table in fp32.
const float* table_block(const KernelCall& call, const Head& h, int64_t first, int64_t count) {
  const View& table = call.ins[HeadIn::kTable];
  const std::byte* from = table.data + first * h.embed * tensor::size_of(table.dtype());
  if (!h.table) return reinterpret_cast<const float*>(from);
  widen_all(call.team, table.dtype(), from, h.table, count * h.embed);
  return h.table;
}

// Calls f(begin, count, global) for the parts of [first, first + count) of the vocabulary that are one segment each;
// global is -1 for padding, begin counts from `first`.
template <typename F>
void for_segments(const tensor::DimIndex& index, int64_t first, int64_t count, const F& f) {
  int64_t at = 0;
  for (const tensor::Segment& s : index.segments()) {
    const int64_t begin = std::max(at, first), end = std::min(at + s.count, first + count);
    if (begin < end) f(begin - first, end - begin, s.global < 0 ? -1 : s.global + begin - at);
    at += s.count;
  }
}

// Rows of x and a part of the vocabulary, with their logits or what replaces them: [rows count], rows `width` apart.
struct Block {
  int64_t row, rows, first, count;
  const float* x;      // its first row
  const float* table;  // its first row
  float* logits;
  int64_t width;
  int64_t embed;

  Product forward() const {
    return {.m = rows,
            .n = count,
            .k = embed,
            .a = x,
            .a_row = embed,
            .a_column = 1,
            .b = table,
            .b_row = 1,
            .b_column = embed,
            .c = logits,
            .c_row = width};
  }
  // dx [rows embed] = dlogits [rows count] * table [count embed]
  Product to_x(float* dx, bool accumulate) const {
    return {.m = rows,
            .n = embed,
            .k = count,
            .a = logits,
            .a_row = width,
            .a_column = 1,
            .b = table,
            .b_row = embed,
            .b_column = 1,
            .c = dx + row * embed,
            .c_row = embed,
            .accumulate = accumulate};
  }
  // dtable [count embed] = dlogits^T [count rows] * x [rows embed]
  Product to_table(float* dtable, bool accumulate) const {
    return {.m = count,
            .n = embed,
            .k = rows,
            .a = logits,
            .a_row = 1,
            .a_column = width,
            .b = x,
            .b_row = embed,
            .b_column = 1,
            .c = dtable + first * embed,
            .c_row = embed,
            .accumulate = accumulate};
  }
};

Block block_of(const Head& h, const float* table, int64_t row, int64_t first, int64_t count, float* logits,
               int64_t width) {
  return {.row = row,
          .rows = std::min(h.block_rows, h.rows - row),
          .first = first,
          .count = count,
          .x = h.wide_x + row * h.embed,
          .table = table,
          .logits = logits,
          .width = width,
          .embed = h.embed};
}

template <typename... P>
void multiply_all(base::ThreadTeam& team, const P&... products) {
  team.run([&](int thread) { (multiply_share(products, thread, team.size()), ...); });
}

// Converts the logits of one position over a part of the vocabulary to their gradients, possibly in place.
void to_gradients(const tensor::DimIndex& index, int64_t first, int64_t count, int32_t label, float lse, float dlse,
                  float dtarget, const float* logits, float* gradients) {
  if (dlse == 0 && dtarget == 0) return static_cast<void>(std::fill_n(gradients, count, 0.0f));
  const auto softmax = HWY_DYNAMIC_DISPATCH(softmax_back);
  for_segments(index, first, count, [&](int64_t at, int64_t n, int64_t global) {
    if (global < 0) return static_cast<void>(std::fill_n(gradients + at, n, 0.0f));
    softmax(logits + at, n, lse, dlse, gradients + at);
    const int64_t here = label - global;
    if (here >= 0 && here < n) gradients[at + here] += dtarget;
  });
}

// Adds the same logits to the running maximum and sum; the label's is stored in `target`, if it is in this part.
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
  take_head(*shapes.ins[HeadIn::kX], *shapes.ins[HeadIn::kTable], makes, kept, scratch);
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
  const Head h = begin(call, Makes::statistics);
  const int32_t* labels = data<int32_t>(call.ins[HeadIn::kLabels]);
  float *lse = data<float>(call.outs[Out::kLse]), *target = data<float>(call.outs[Out::kTarget]);
  const tensor::DimIndex& index = call.index("vocab");
  float* kept = data<float>(call.outs[Out::kLogits]);  // or null
  std::fill_n(h.top, h.rows, kNone);
  std::fill_n(h.sum, h.rows, 0.0f);
  std::fill_n(target, h.rows, 0.0f);
  for (int64_t first = 0; first < h.vocab; first += h.block_vocab) {
    const int64_t count = std::min(h.block_vocab, h.vocab - first);
    const float* table = table_block(call, h, first, count);
    for (int64_t row = 0; row < h.rows; row += h.block_rows) {
      float* logits = kept ? kept + row * h.vocab + first : h.logits;
      const Block block = block_of(h, table, row, first, count, logits, kept ? h.vocab : count);
      multiply_all(call.team, block.forward());
      call.team.for_shares(block.rows, 1, [&](base::Range r, int) {
        for (int64_t i = row + r.begin; i < row + r.end; ++i) {
          float* of_row = logits + (i - row) * block.width;
          to_statistics(index, first, count, labels[i], of_row, h.top + i, h.sum + i, target + i);
          if (kept) clear_padding(index, first, count, of_row);
        }
      });
    }
  }
  for (int64_t i = 0; i < h.rows; ++i) lse[i] = lse_of(h.top[i], h.sum[i]);
}

void head_grad(const KernelCall& call) {
  using In = HeadGradIn;
  using Out = HeadGradOut;
  const Head h = begin(call, Makes::gradient);
  const int32_t* labels = data<int32_t>(call.ins[In::kLabels]);
  const float *lse = data<float>(call.ins[In::kLse]), *dlse = data<float>(call.ins[In::kDlse]),
              *dtarget = data<float>(call.ins[In::kDtarget]);
  const float* kept = data<float>(call.ins[In::kLogits]);  // or null
  float *dx = h.dx ? h.dx : data<float>(call.outs[Out::kDx]), *dtable = data<float>(call.outs[Out::kDtable]);
  const bool adds = call.accumulates(Out::kDtable);
  const tensor::DimIndex& index = call.index("vocab");
  for (int64_t first = 0; first < h.vocab; first += h.block_vocab) {
    const int64_t count = std::min(h.block_vocab, h.vocab - first);
    const float* table = table_block(call, h, first, count);
    for (int64_t row = 0; row < h.rows; row += h.block_rows) {
      const Block block = block_of(h, table, row, first, count, h.logits, count);
      if (!kept) multiply_all(call.team, block.forward());
      call.team.for_shares(block.rows, 1, [&](base::Range r, int) {
        for (int64_t i = row + r.begin; i < row + r.end; ++i) {
          float* gradients = h.logits + (i - row) * count;
          to_gradients(index, first, count, labels[i], lse[i], dlse[i], dtarget[i],
                       kept ? kept + i * h.vocab + first : gradients, gradients);
        }
      });
      multiply_all(call.team, block.to_x(dx, first > 0), block.to_table(dtable, row > 0 || adds));
    }
  }
  store_dx(call, h, call.outs[Out::kDx]);
}

void head_with_grad(const KernelCall& call) {
  using In = HeadWithGradIn;
  using Out = HeadWithGradOut;
  const Head h = begin(call, Makes::both);
  const int32_t* labels = data<int32_t>(call.ins[In::kLabels]);
  const float *dlse = data<float>(call.ins[In::kDlse]), *dtarget = data<float>(call.ins[In::kDtarget]);
  float *lse = data<float>(call.outs[Out::kLse]), *target = data<float>(call.outs[Out::kTarget]);
  float *dx = h.dx ? h.dx : data<float>(call.outs[Out::kDx]), *dtable = data<float>(call.outs[Out::kDtable]);
  const bool adds = call.accumulates(Out::kDtable);
  const tensor::DimIndex& index = call.index("vocab");
  for (int64_t row = 0; row < h.rows; row += h.block_rows) {
    const auto parts = [&](const auto& f) {
      for (int64_t first = 0; first < h.vocab; first += h.table_vocab) {
        const int64_t count = std::min(h.table_vocab, h.vocab - first);
        f(block_of(h, table_block(call, h, first, count), row, first, count, h.logits + first, h.vocab));
      }
    };
    parts([&](const Block& block) { multiply_all(call.team, block.forward()); });
    const int64_t rows = std::min(h.block_rows, h.rows - row);
    call.team.for_shares(rows, 1, [&](base::Range r, int) {
      for (int64_t i = row + r.begin; i < row + r.end; ++i) {
        float* logits = h.logits + (i - row) * h.vocab;
        float top = kNone, sum = 0;
        target[i] = 0;
        to_statistics(index, 0, h.vocab, labels[i], logits, &top, &sum, target + i);
        lse[i] = lse_of(top, sum);
        to_gradients(index, 0, h.vocab, labels[i], lse[i], dlse[i], dtarget[i], logits, logits);
      }
    });
    parts([&](const Block& block) {
      multiply_all(call.team, block.to_x(dx, block.first > 0), block.to_table(dtable, row > 0 || adds));
    });
  }
  store_dx(call, h, call.outs[Out::kDx]);
}

}  // namespace kintsugi::kernels::cpu
#endif
