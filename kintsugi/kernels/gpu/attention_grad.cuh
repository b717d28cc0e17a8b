// The gradient of attention: Dao 2023, "FlashAttention-2", section 3.1, algorithm 2, in two passes without atomics:
// blocks of keys iterate over all queries for dk and dv, blocks of queries over all keys for dq; both recompute the
// scores. With D = sum of do * o over a row and m the dropout factor: dv = m p do, dscore = p (m (do.v) - D).
#include "kintsugi/kernels/gpu/attention_grad_plain.h"
#include "kintsugi/kernels/gpu/attention_grad_shares.h"
#include "kintsugi/kernels/gpu/attention_grad_units.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// Computes lse and D of every row, with kLanes lanes that read N elements at a time; one block per tile of rows.
template <typename T, int N, int kLanes>
__global__ __launch_bounds__(256) void attention_delta(AttentionCall a) {
  constexpr int kAtOnce = 256 / kLanes;  // rows
  const int lane = static_cast<int>(threadIdx.x) % kLanes, group = static_cast<int>(threadIdx.x) / kLanes;
  const int head = static_cast<int>(blockIdx.x) / a.row_tiles, tile = static_cast<int>(blockIdx.x) % a.row_tiles;
  const int b = head / a.kv_heads, h = head % a.kv_heads;
  GPU_UNROLL
  for (int i = 0; i < kSightTile; i += kAtOnce) {
    const int r = tile * kSightTile + i + group, inside = std::min(r, a.rows - 1);
    const T* const o = static_cast<const T*>(a.o) + a.row_of(a.o_at, b, h, inside);
    const T* const d_o = static_cast<const T*>(a.d_o) + a.row_of(a.do_at, b, h, inside);
    float sum = 0;
    for (int d = lane * N; d < a.head_dim; d += kLanes * N) {
      const auto x = *reinterpret_cast<const Vec<T, N>*>(o + d), y = *reinterpret_cast<const Vec<T, N>*>(d_o + d);
      GPU_UNROLL
      for (int j = 0; j < N; ++j) sum += widen(x[j]) * widen(y[j]);
    }
    for (int mask = kLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    if (lane != 0) continue;
    const float lse = r < a.rows ? a.lse[a.row_of(a.lse_at, b, h, r)] : -INFINITY;
    Vec<float, 2>& made = a.lse_delta[static_cast<int64_t>(head) * a.row_tiles * kSightTile + r];
    if (lse == -INFINITY) {
      made = {INFINITY, 0};  // makes p zero
    } else {
      made = {lse * kLog2E, sum};
    }
  }
}

// One block per sink. dsinks: [kv_heads group]
template <typename T>
__global__ __launch_bounds__(256) void attention_grad_sinks(AttentionCall a, T* dsinks, bool add) {
  __shared__ double scratch[32];
  const int h = static_cast<int>(blockIdx.x) / a.group, g = static_cast<int>(blockIdx.x) % a.group;
  double sum = 0;
  if (a.sinks != nullptr && a.heads[h] >= 0) {
    const float sink = a.sink(h, g) * kLog2E;
    for (int b = 0; b < a.batch; ++b) {
      const auto* const of_head = a.lse_delta + static_cast<int64_t>(b * a.kv_heads + h) * a.row_tiles * kSightTile;
      for (int s = static_cast<int>(threadIdx.x); s < a.seq; s += 256) {
        const Vec<float, 2> row = of_head[s * a.group + g];
        if (a.row_info(b, s * a.group + g).place >= 0) sum -= static_cast<double>(exp2f(sink - row[0]) * row[1]);
      }
    }
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) put(dsinks + blockIdx.x, static_cast<float>(sum), add);
}

// Places dq, dk and dv as adjacent columns in the rows of `all`: [batch seq columns].
void place_in_columns(AttentionCall& a, const View& all) {
  const int64_t row = all.size("columns"), batch = all.size("seq") * row, head_dim = a.head_dim,
                keys = a.kv_heads * head_dim, queries = a.group * keys;
  base::require(row == queries + 2 * keys && a.seq == a.keys, "attention", "{} for {} and twice {} columns",
                to_string(all.shape()), queries, keys);
  std::byte* const at = all.data;
  const int64_t size = tensor::size_of(all.dtype());
  a.dq = at, a.dk = at + queries * size, a.dv = at + (queries + keys) * size;
  a.dq_at = {batch, row, a.group * head_dim, head_dim};
  a.dk_at = a.dv_at = {batch, row, head_dim};
}

}  // namespace

int64_t attention_grad_workspace(const KernelShapes& shapes) {
  return attention_bytes(shapes, true);
}

void attention_grad(const KernelCall& call) {
  using In = kernels::AttentionGradIn;
  using Out = kernels::AttentionGradOut;
  AttentionCall a = attention_call(call, true);
  const View &o = call.ins[In::kO], &lse = call.ins[In::kLse], &d_o = call.ins[In::kDo], &dq = call.outs[Out::kDq],
             &dk = call.outs[Out::kDk], &dv = call.outs[Out::kDv], &dsinks = call.outs[Out::kDsinks],
             &dqkv = call.outs[Out::kDqkv];
  const DType dtype = call.ins[In::kQ].dtype();
  base::require(lse.dtype() == DType::f32, "attention", "lse is fp32 on a device, not {}", name_of(lse.dtype()));
  for (const View* x : {&o, &d_o, &dq, &dk, &dv, &dqkv})
    base::require(x->data == nullptr || x->dtype() == dtype, "attention", "{} of {} beside q of {}",
                  to_string(x->shape()), name_of(x->dtype()), name_of(dtype));
  a.o = o.data, a.o_at = row_strides(o), a.d_o = d_o.data, a.do_at = row_strides(d_o);
  a.lse = data<float>(lse), a.lse_at = row_strides(lse);
  a.dq = dq.data, a.dq_at = row_strides(dq);
  a.dk = dk.data, a.dk_at = key_strides(dk), a.dv = dv.data, a.dv_at = key_strides(dv);
  if (dqkv.data != nullptr) place_in_columns(a, dqkv);
  if (grad_by_library(call, a)) return;
  launch_sight(call, a);
  dispatch("attention", dtype, [&]<typename T>(T) {
    const dim3 blocks(static_cast<unsigned>(a.batch * a.kv_heads * a.row_tiles));
    if (!attention_is_wide(a)) {
      launch(*call.stream, blocks, dim3(256), 0, attention_delta<T, 1, 32>, a);
    } else if (a.head_dim <= 64) {
      launch(*call.stream, blocks, dim3(256), 0, attention_delta<T, kWide<T>, 8>, a);
    } else {
      launch(*call.stream, blocks, dim3(256), 0, attention_delta<T, kWide<T>, 16>, a);
    }
    if constexpr (sizeof(T) == 2) {
      const bool more = a.softcap > 0 || a.keep > 0;
      if (attention_is_wide(a) && (more ? grad_by_units<T, true>(call, a) : grad_by_units<T, false>(call, a))) return;
    }
    if (a.head_dim <= 128 && grad_plainly<T, 32>(call, a)) return;
    if (!grad_plainly<T, 16>(call, a) && !grad_plainly<T, 8>(call, a)) refuse_head(a);
  });
  if (dsinks.data)
    dispatch("attention", dsinks.dtype(), [&]<typename T>(T) {
      launch(*call.stream, dim3(static_cast<unsigned>(a.kv_heads * a.group)), dim3(256), 0, attention_grad_sinks<T>, a,
             data<T>(dsinks), a.add[3]);
    });
}

}  // namespace kintsugi::KINTSUGI_GPU
