// Attention by a library, where there is one: what it is asked for, by the host alone. No documents, windows, caps,
// sinks or dropout, all queries of whole sequences, and nothing is added to: the rest is for our own kernels
// (attention.cuh, attention_grad.cuh).
#pragma once

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

// What a library is given to work in. A gradient that is the same in each run keeps those of all scores once, in 16
// bits, from where that of q is made; 0: too much, and the library is not asked.
constexpr int64_t kMostLibraryBytes = int64_t{1} << 30;
inline int64_t library_attention_bytes(int64_t batch, int64_t heads, int64_t seq, bool gradient) {
  if (!gradient) return 1 << 20;
  const auto round = [](int64_t x, int64_t to) { return (x + to - 1) / to * to; };
  const int64_t scores = batch * heads * round(seq, 64) * round(seq, 128) * 2, rows = batch * heads * seq * 16;
  const int64_t bytes = round(scores + rows, 256) + (1 << 20);
  return bytes > kMostLibraryBytes ? 0 : bytes;
}

// False, and nothing is done: the library is not there, or has no way for this. In a stream in which nothing is enqueued
// it only looks for one.
using AttentionByLibrary = bool (*)(const LibraryAttention& a, device::Stream& stream);
bool cudnn_attention(const LibraryAttention& a, device::Stream& stream);  // cuda/cudnn.cpp

}  // namespace kintsugi::kernels
