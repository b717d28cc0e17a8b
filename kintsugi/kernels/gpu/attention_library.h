// The interface to library attention: requests that the host alone can evaluate. Without documents, windows, caps,
// sinks, dropout or accumulation, and only whole sequences of queries; everything else uses our own kernels
// (attention.cuh, attention_grad.cuh).
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "kintsugi/device/device.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels {

// Strides in elements; the elements of a head are contiguous.
struct AttentionStrides {
  int64_t batch = 0, head = 0, place = 0;
  auto operator<=>(const AttentionStrides&) const = default;
};
struct AttentionOperand {
  const void* data = nullptr;
  AttentionStrides at;
};

// q, o, d_o, dq: [batch heads seq head_dim]; k, v, dk, dv: [batch kv_heads seq head_dim], each shared by heads /
// kv_heads adjacent heads; lse: [batch heads seq] in fp32.
struct LibraryAttention {
  int64_t batch = 0, heads = 0, kv_heads = 0, seq = 0, head_dim = 0;
  tensor::DType dtype = tensor::DType::bf16;
  bool causal = false, gradient = false;
  float scale = 1;
  AttentionOperand q = {}, k = {}, v = {}, o = {}, lse = {};
  AttentionOperand d_o = {}, dq = {}, dk = {}, dv = {};  // gradient only
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

// A deterministic gradient stores the gradients of all scores once, in 16 bits, for the computation of dq. A call
// stores at most this many bytes: some samples, or some heads of one, and consecutive calls share the memory. Tests
// reduce it.
inline int64_t most_library_scores = int64_t{1} << 30;

// Samples and kv heads per call; 0: not even one head fits, and the library is not used.
struct LibraryShare {
  int64_t batch = 0, kv_heads = 0;
};
inline LibraryShare library_share(int64_t batch, int64_t kv_heads, int64_t scores_of_head) {
  // The minimum number of calls, of about equal size.
  const auto share = [](int64_t all, int64_t most) {
    const int64_t calls = (all + most - 1) / most;
    return (all + calls - 1) / calls;
  };
  const int64_t heads = most_library_scores / std::max<int64_t>(scores_of_head, 1);
  if (heads >= kv_heads) return {share(batch, heads / kv_heads), kv_heads};
  return heads > 0 ? LibraryShare{1, share(kv_heads, heads)} : LibraryShare();
}
// Bytes per kv head, over all queries that see it.
inline int64_t library_scores(int64_t group, int64_t seq) {
  const auto round = [](int64_t x, int64_t to) { return (x + to - 1) / to * to; };
  return group * round(seq, 64) * round(seq, 128) * 2;
}

// Workspace of a library; 0: the library is not used.
inline int64_t library_attention_bytes(int64_t batch, int64_t kv_heads, int64_t group, int64_t seq, bool gradient) {
  if (!gradient) return 1 << 20;
  const int64_t of_head = library_scores(group, seq);
  const LibraryShare share = library_share(batch, kv_heads, of_head);
  const int64_t scores = share.batch * share.kv_heads * of_head, rows = batch * kv_heads * group * seq * 16;
  return share.batch == 0 ? 0 : (scores + rows + 255) / 256 * 256 + (1 << 20);
}

// Returns false, with nothing done, if the library is missing or does not support the request. In a stream that
// discards work, only checks for support.
using AttentionByLibrary = bool (*)(const LibraryAttention& a, device::Stream& stream);
bool cudnn_attention(const LibraryAttention& a, device::Stream& stream);  // cuda/cudnn.cpp

}  // namespace kintsugi::kernels
