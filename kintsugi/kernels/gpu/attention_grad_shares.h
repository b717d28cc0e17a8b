// The gradient of attention by a library, in calls of some samples or some heads each.
#pragma once

#include <vector>

#include "kintsugi/kernels/gpu/attention_common.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// lse in the libraries' layout, [batch heads seq].
__global__ void __launch_bounds__(kPieceThreads) pack_lse(AttentionCall a, float* to, int64_t count) {
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    const int s = static_cast<int>(i % a.seq), head = static_cast<int>(i / a.seq % (a.kv_heads * a.group));
    const int b = static_cast<int>(i / a.seq / (a.kv_heads * a.group));
    to[i] = a.lse[a.row_of(a.lse_at, b, head / a.group, s * a.group + head % a.group)];
  }
}

// The calls that compute a gradient, each for some samples or some heads.
std::vector<kernels::LibraryAttention> shares_of(const kernels::LibraryAttention& all) {
  const int64_t group = all.heads / all.kv_heads;
  const kernels::LibraryShare share =
      kernels::library_share(all.batch, all.kv_heads, kernels::library_scores(group, all.seq));
  std::vector<kernels::LibraryAttention> calls;
  for (int64_t b = 0; b < all.batch; b += share.batch)
    for (int64_t h = 0; h < all.kv_heads; h += share.kv_heads) {
      kernels::LibraryAttention& one = calls.emplace_back(all);
      one.batch = std::min(share.batch, all.batch - b), one.kv_heads = std::min(share.kv_heads, all.kv_heads - h);
      one.heads = one.kv_heads * group;
      const auto shift = [&](kernels::AttentionOperand& x, int64_t heads, int64_t size) {
        x.data = static_cast<const std::byte*>(x.data) + (b * x.at.batch + h * heads * x.at.head) * size;
      };
      for (auto x : {&one.q, &one.o, &one.d_o, &one.dq}) shift(*x, group, tensor::size_of(all.dtype));
      for (auto x : {&one.k, &one.v, &one.dk, &one.dv}) shift(*x, 1, tensor::size_of(all.dtype));
      shift(one.lse, group, sizeof(float));
      one.lse.at.batch = one.heads * all.seq;  // within one sample: cuDNN before 9.26 requires lse without gaps
    }
  return calls;
}

// Returns false, with nothing done, if our own kernels must be used.
bool grad_by_library(const KernelCall& call, const AttentionCall& a) {
  std::optional<kernels::LibraryAttention> asked = of_library(call, a, true);
  if (!asked) return false;
  const int64_t heads = asked->heads, count = a.batch * heads * a.seq;
  asked->workspace_bytes -= (count * 4 + 255) / 256 * 256;
  float* const lse = reinterpret_cast<float*>(call.workspace.data() + asked->workspace_bytes);
  asked->lse = {lse, {heads * a.seq, a.seq, 1}};
  const std::vector<kernels::LibraryAttention> calls = shares_of(*asked);
  device::NoStream nothing;
  for (const kernels::LibraryAttention& one : calls)
    if (!attention_by_library(one, nothing)) return false;
  launch_pieces(*call.stream, count, pack_lse, a, lse, count);
  for (const kernels::LibraryAttention& one : calls)
    base::require(attention_by_library(one, *call.stream), "attention", "a library does not do what it said");
  return true;
}

}  // namespace
}  // namespace kintsugi::KINTSUGI_GPU
