// For tests of `join_columns` and its last step.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kintsugi/kernels/gpu/device_kernels.h"
#include "kintsugi/lower/fuse/join_columns.h"
#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower::join_columns_test {

// The gradient of attention with its three matmuls, as `fuse` leaves them: 64 positions, twice as many query columns as
// key columns. With kManyTiles for `embed`, the matmuls of weight gradients stay separate.
constexpr int64_t kManyTiles = 66 * 128;

struct Layer : Maker {
  int64_t embed;
  Shape q_shape = {{"batch", 2}, {"seq", 32}, {"kv_heads", 2}, {"group", 2}, {"head_dim", 4}},
        k_shape = {{"batch", 2}, {"key_seq", 32}, {"kv_heads", 2}, {"head_dim", 4}};
  BufferId q = arena("q", q_shape), k = arena("k", k_shape), v = arena("v", k_shape), o = arena("o", q_shape),
           lse = arena("lse", {{"batch", 2}, {"seq", 32}, {"kv_heads", 2}, {"group", 2}}), d_o = arena("do", q_shape),
           dq = arena("dq", q_shape), dk = arena("dk", k_shape), dv = arena("dv", k_shape), dk_seq = in_seq("dk", dk),
           dv_seq = in_seq("dv", dv), wq = weight("wq", {{"kv_heads", 2}, {"group", 2}, {"head_dim", 4}}),
           wk = weight("wk", {{"kv_heads", 2}, {"head_dim", 4}}), wv = weight("wv", {{"kv_heads", 2}, {"head_dim", 4}}),
           x = arena("x", {{"batch", 2}, {"seq", 32}, {"embed", embed}}),
           dx = arena("dx", {{"batch", 2}, {"seq", 32}, {"embed", embed}});

  explicit Layer(int64_t of_embed = 16) : embed(of_embed) {
    p.on_device = true;
    body("backward");
    program::Instruction& grad = call("attention_grad", {q, k, v, o, lse, d_o}, {dq, dk, dv});
    grad.absent.ins = 0b111000;
  }
  BufferId in_seq(const std::string& name, BufferId of) {
    const BufferId b = view(name, of);
    p.buffer(b).type.shape = {{"batch", 2}, {"seq", 32}, {"kv_heads", 2}, {"head_dim", 4}};
    return b;
  }
  BufferId weight(const std::string& name, std::vector<tensor::Dim> dims) {
    dims.insert(dims.begin(), {"embed", embed});
    return state(name, Shape(dims));
  }
  // Adds the gradients of a weight and of a bias.
  void gradients(const std::string& name, BufferId of, BufferId w) {
    const BufferId dw = state(name + ".g", p.buffer(w).type.shape, program::StateKind::gradient);
    std::vector<tensor::Dim> dims(p.buffer(w).type.shape.begin() + 1, p.buffer(w).type.shape.end());
    const BufferId db = state(name + ".bias.g", Shape(dims), program::StateKind::gradient);
    call("contract", {x, of}, {dw}, 0, 1).attributes = {{"dims", tensor::names(p.buffer(w).type.shape)}};
    call("sum", {of}, {db}, 0, 1);
  }
  void term(BufferId of, BufferId w, bool adds) { call("contract", {of, w}, {dx}, 0, adds ? 1 : 0); }
  void all() {
    term(dv_seq, wv, false), gradients("wv", dv_seq, wv);
    term(dk_seq, wk, true), gradients("wk", dk_seq, wk);
    term(dq, wq, true), gradients("wq", dq, wq);
  }
  std::string joined() {
    join_columns(p, ops::operations(), *kernels::planned_device_kernels());
    return text(p);
  }
};

}  // namespace kintsugi::lower::join_columns_test
