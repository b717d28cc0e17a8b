// Heads from parts of adjacent dims. a: [... part_a], b: [... part_b], which may lack the last dims of a's before
// part_a, y: [... head_dim]
#include <algorithm>
#include <cstring>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/experts.h"

namespace kintsugi::kernels::cpu {
namespace {

constexpr int64_t kHeadsAtOnce = 64;  // of a thread
constexpr int64_t kSumColumns = 256;

int64_t last_of(const tensor::View& x) {
  return x.shape()[x.shape().rank() - 1].size;
}

}  // namespace

bool join_head_dims_takes(const Operands& o) {
  return is_fast(o.ins[0].dtype) && is_fast(o.outs[0].dtype);
}

void join_head_dims(const KernelCall& call) {
  const tensor::View &a = call.ins[0], &b = call.ins[1], &y = call.outs[0];
  const int64_t size = tensor::size_of(y.dtype()), of_y = last_of(y) * size, of_a = last_of(a) * size,
                of_b = b.data ? last_of(b) * size : 0, heads = y.elements() / last_of(y),
                repeats = b.data && heads > 0 ? heads / (b.elements() / last_of(b)) : 1;
  call.team.for_shares(heads, kHeadsAtOnce, [&](base::Range r, int) {
    for (int64_t head = r.begin; head < r.end; ++head) {
      std::byte* to = y.data + head * of_y;
      std::memcpy(to, a.data + head * of_a, static_cast<size_t>(of_a));
      if (of_b > 0) std::memcpy(to + of_a, b.data + head / repeats * of_b, static_cast<size_t>(of_b));
      std::memset(to + of_a + of_b, 0, static_cast<size_t>(of_y - of_a - of_b));
    }
  });
}

void join_head_dims_grad(const KernelCall& call) {
  const tensor::View &y = call.ins[0], &a = call.outs[0], &b = call.outs[1];
  const int64_t size = tensor::size_of(y.dtype()), of_y = last_of(y) * size, of_a = last_of(a) * size,
                heads = y.elements() / last_of(y);
  call.team.for_shares(heads, kHeadsAtOnce, [&](base::Range r, int) {
    for (int64_t head = r.begin; head < r.end; ++head)
      std::memcpy(a.data + head * of_a, y.data + head * of_y, static_cast<size_t>(of_a));
  });
  if (!b.data) return;
  const int64_t columns = last_of(b), rows = b.elements() / columns, repeats = rows > 0 ? heads / rows : 0;
  call.team.for_shares(rows, 1, [&](base::Range r, int) {
    float sum[kSumColumns], one[kSumColumns];
    for (int64_t row = r.begin; row < r.end; ++row)
      for (int64_t begin = 0; begin < columns; begin += kSumColumns) {
        const int64_t n = std::min(kSumColumns, columns - begin);
        std::fill_n(sum, n, 0.0f);
        for (int64_t i = 0; i < repeats; ++i) {
          widen(y.dtype(), y.data + (row * repeats + i) * of_y + of_a + begin * size, one, n);
          for (int64_t c = 0; c < n; ++c) sum[c] += one[c];
        }
        narrow(b.dtype(), sum, b.data + (row * columns + begin) * size, n, false);
      }
  });
}

}  // namespace kintsugi::kernels::cpu
