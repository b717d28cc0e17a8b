// Attention by a library, where there is one: what it is asked for, by the host alone. No documents, windows, caps,
// sinks or dropout, all queries of whole sequences, and nothing is added to: the rest is for our own kernels
// (attention.cuh, attention_grad.cuh).
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "kintsugi/device/device.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels {

// Elements from one to the next; the elements of a head lie side by side.
struct AttentionStrides {
  int64_t batch = 0, head = 0, place = 0;
  auto operator<=>(const AttentionStrides&) const = default;
};
struct AttentionOperand {
  const void* data = nullptr;
  AttentionStrides at;
};

// q, o, d_o, dq: [batch heads seq head_dim]; k, v, dk, dv: [batch kv_heads seq head_dim], of which each is seen by
// heads / kv_heads neighbours; lse: [batch heads seq] in fp32.
struct LibraryAttention {
  int64_t batch = 0, heads = 0, kv_heads = 0, seq = 0, head_dim = 0;
  tensor::DType dtype = tensor::DType::bf16;
  bool causal = false, gradient = false;
  float scale = 1;
  AttentionOperand q = {}, k = {}, v = {}, o = {}, lse = {};
  AttentionOperand d_o = {}, dq = {}, dk = {}, dv = {};  // of the gradient alone
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

// A gradient that is the same in each run keeps those of all scores once, in 16 bits, from where that of q is made. A
// call has no more of them than so many bytes: some samples, or some heads of one, that call after call share the
// memory. Tests set less.
inline int64_t most_library_scores = int64_t{1} << 30;

// As many samples, and heads of keys, as a call has; none: not even one head fits, and the library is not asked.
struct LibraryShare {
  int64_t batch = 0, kv_heads = 0;
};
inline LibraryShare library_share(int64_t batch, int64_t kv_heads, int64_t scores_of_head) {
  // As few calls as can be, of about the same size.
  const auto share = [](int64_t all, int64_t most) {
    const int64_t calls = (all + most - 1) / most;
    return (all + calls - 1) / calls;
  };
  const int64_t heads = most_library_scores / std::max<int64_t>(scores_of_head, 1);
  if (heads >= kv_heads) return {share(batch, heads / kv_heads), kv_heads};
  return heads > 0 ? LibraryShare{1, share(kv_heads, heads)} : LibraryShare();
}
// Bytes of a head of keys: of all queries that see it.
inline int64_t library_scores(int64_t group, int64_t seq) {
  const auto round = [](int64_t x, int64_t to) { return (x + to - 1) / to * to; };
  return group * round(seq, 64) * round(seq, 128) * 2;
}

// What a library is given to work in; 0: it is not asked.
inline int64_t library_attention_bytes(int64_t batch, int64_t kv_heads, int64_t group, int64_t seq, bool gradient) {
  if (!gradient) return 1 << 20;
  const int64_t of_head = library_scores(group, seq);
  const LibraryShare share = library_share(batch, kv_heads, of_head);
  const int64_t scores = share.batch * share.kv_heads * of_head, rows = batch * kv_heads * group * seq * 16;
  return share.batch == 0 ? 0 : (scores + rows + 255) / 256 * 256 + (1 << 20);
}

// False, and nothing is done: the library is not there, or has no way for this. In a stream in which nothing is
// enqueued it only looks for one.
using AttentionByLibrary = bool (*)(const LibraryAttention& a, device::Stream& stream);
bool cudnn_attention(const LibraryAttention& a, device::Stream& stream);  // cuda/cudnn.cpp

}  // namespace kintsugi::kernels
