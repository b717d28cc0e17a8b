// The vocabulary's logits and their loss, in blocks of the vocabulary: a product into a block of the workspace, then a
// pass over its rows. The blocks, and so all bits but those of the library, do not depend on the number of threads.
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
void softmax_back(float* logits, int64_t n, float lse, float dlse) {
  map(Exponential{lse, dlse}, n, logits, logits);
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
constexpr float kNone = -1e30f;            // below every logit, and finite

// x: [rows embed], table: [vocab embed]
struct Head {
  int64_t rows, embed, vocab;
  int64_t block_rows, block_vocab;
  float *logits, *x, *table, *dx, *top, *sum;  // in the workspace; x, table, dx only where T is not fp32

  const float* wide_x;
};

Head take_head(const Type& x, const Type& table, bool grad, Scratch& scratch) {
  Head h = {};
  h.embed = x.shape.size("embed");
  h.rows = x.shape.elements() / std::max<int64_t>(h.embed, 1);
  h.vocab = table.shape.size("vocab");
  h.block_rows = std::min(h.rows, kMaxRows);
  h.block_vocab = std::max<int64_t>(kBlockLogits / std::max<int64_t>(h.block_rows, 1), 256) / 16 * 16;
  if (x.dtype != DType::f32) h.block_vocab = std::min<int64_t>(h.block_vocab, 8192);  // it is widened whole
  h.block_vocab = std::min(h.block_vocab, h.vocab);
  h.logits = scratch.take<float>(h.block_rows * h.block_vocab);
  if (x.dtype != DType::f32) {
    h.x = scratch.take<float>(h.rows * h.embed);
    h.table = scratch.take<float>(h.block_vocab * h.embed);
    if (grad) h.dx = scratch.take<float>(h.rows * h.embed);
  }
  if (!grad) {
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

Head begin(const KernelCall& call, bool grad) {
  Scratch scratch(call.workspace);
  Head h = take_head(call.ins[0].type, call.ins[1].type, grad, scratch);
  h.wide_x = h.x ? h.x : reinterpret_cast<const float*>(call.ins[0].data);
  if (h.x) widen_all(call.team, call.ins[0].dtype(), call.ins[0].data, h.x, h.rows * h.embed);
  return h;
}

// The rows of a block of the table in fp32.
const float* table_block(const KernelCall& call, const Head& h, int64_t first, int64_t count) {
  const View& table = call.ins[1];
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

// Logits of a block of rows and a block of the vocabulary; thread t of the team computes its share.
Product logits_product(const Head& h, const float* table, int64_t row, int64_t rows, int64_t vocab) {
  return {.m = rows,
          .n = vocab,
          .k = h.embed,
          .a = h.wide_x + row * h.embed,
          .a_row = h.embed,
          .a_column = 1,
          .b = table,
          .b_row = 1,
          .b_column = h.embed,
          .c = h.logits,
          .c_row = vocab};
}

}  // namespace

int64_t head_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  take_head(shapes.ins[0], shapes.ins[1], false, scratch);
  return scratch.bytes();
}

int64_t head_grad_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  take_head(shapes.ins[0], shapes.ins[1], true, scratch);
  return scratch.bytes();
}

void head(const KernelCall& call) {
  const Head h = begin(call, false);
  const int32_t* labels = reinterpret_cast<const int32_t*>(call.ins[2].data);
  float* lse = reinterpret_cast<float*>(call.outs[0].data);
  float* target = reinterpret_cast<float*>(call.outs[1].data);
  const tensor::DimIndex& index = call.index("vocab");
  base::ThreadTeam& team = call.team;
  std::fill_n(h.top, h.rows, kNone);
  std::fill_n(h.sum, h.rows, 0.0f);
  std::fill_n(target, h.rows, 0.0f);
  const auto running = HWY_DYNAMIC_DISPATCH(running_softmax);
  for (int64_t first = 0; first < h.vocab; first += h.block_vocab) {
    const int64_t count = std::min(h.block_vocab, h.vocab - first);
    const float* table = table_block(call, h, first, count);
    for (int64_t row = 0; row < h.rows; row += h.block_rows) {
      const int64_t rows = std::min(h.block_rows, h.rows - row);
      const Product product = logits_product(h, table, row, rows, count);
      team.run([&](int thread) { multiply_share(product, thread, team.size()); });
      team.for_shares(rows, 1, [&](base::Range r, int) {
        for (int64_t i = r.begin; i < r.end; ++i) {
          const float* logits = h.logits + i * count;
          for_segments(index, first, count, [&](int64_t at, int64_t n, int64_t global) {
            if (global < 0) return;
            running(logits + at, n, h.top + row + i, h.sum + row + i);
            const int64_t label = labels[row + i] - global;
            if (label >= 0 && label < n) target[row + i] = logits[at + label];
          });
        }
      });
    }
  }
  for (int64_t i = 0; i < h.rows; ++i) {
    lse[i] = h.sum[i] == 0 ? -std::numeric_limits<float>::infinity() : h.top[i] + std::log(h.sum[i]);
  }
}

void head_grad(const KernelCall& call) {
  const Head h = begin(call, true);
  const int32_t* labels = reinterpret_cast<const int32_t*>(call.ins[2].data);
  const auto statistics = [&](size_t i) { return reinterpret_cast<const float*>(call.ins[i].data); };
  const float *lse = statistics(3), *dlse = statistics(4), *dtarget = statistics(5);
  float* dx = h.dx ? h.dx : reinterpret_cast<float*>(call.outs[0].data);
  float* dtable = reinterpret_cast<float*>(call.outs[1].data);
  const tensor::DimIndex& index = call.index("vocab");
  base::ThreadTeam& team = call.team;
  const int threads = team.size();
  const auto softmax = HWY_DYNAMIC_DISPATCH(softmax_back);
  for (int64_t first = 0; first < h.vocab; first += h.block_vocab) {
    const int64_t count = std::min(h.block_vocab, h.vocab - first);
    const float* table = table_block(call, h, first, count);
    for (int64_t row = 0; row < h.rows; row += h.block_rows) {
      const int64_t rows = std::min(h.block_rows, h.rows - row);
      const Product product = logits_product(h, table, row, rows, count);
      team.run([&](int thread) { multiply_share(product, thread, threads); });
      team.for_shares(rows, 1, [&](base::Range r, int) {
        for (int64_t i = r.begin; i < r.end; ++i) {
          float* logits = h.logits + i * count;
          const float d_lse = dlse[row + i], d_target = dtarget[row + i];
          if (d_lse == 0 && d_target == 0) {
            std::fill_n(logits, count, 0.0f);
            continue;
          }
          for_segments(index, first, count, [&](int64_t at, int64_t n, int64_t global) {
            if (global < 0) return static_cast<void>(std::fill_n(logits + at, n, 0.0f));
            softmax(logits + at, n, lse[row + i], d_lse);
            const int64_t label = labels[row + i] - global;
            if (label >= 0 && label < n) logits[at + label] += d_target;
          });
        }
      });
      // dx: [rows embed] += dlogits [rows vocab] * table [vocab embed]; dtable = dlogits^T * x.
      const Product back{.m = rows,
                         .n = h.embed,
                         .k = count,
                         .a = h.logits,
                         .a_row = count,
                         .a_column = 1,
                         .b = table,
                         .b_row = h.embed,
                         .b_column = 1,
                         .c = dx + row * h.embed,
                         .c_row = h.embed,
                         .accumulate = first > 0};
      const Product weight{.m = count,
                           .n = h.embed,
                           .k = rows,
                           .a = h.logits,
                           .a_row = 1,
                           .a_column = count,
                           .b = h.wide_x + row * h.embed,
                           .b_row = h.embed,
                           .b_column = 1,
                           .c = dtable + first * h.embed,
                           .c_row = h.embed,
                           .accumulate = row > 0 || call.accumulates(1)};
      team.run([&](int thread) {
        multiply_share(back, thread, threads);
        multiply_share(weight, thread, threads);
      });
    }
  }
  if (!h.dx) return;
  const View& out = call.outs[0];
  team.for_shares(h.rows * h.embed, 4096, [&](base::Range r, int) {
    narrow(out.dtype(), h.dx + r.begin, out.data + r.begin * tensor::size_of(out.dtype()), r.size());
  });
}

}  // namespace kintsugi::kernels::cpu
#endif
