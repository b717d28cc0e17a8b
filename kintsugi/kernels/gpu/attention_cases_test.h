// The calls on which attention and its gradient are compared with the reference.
#pragma once

#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test::attention_cases {

using Segments = std::vector<tensor::Segment>;

struct Case {
  const char* name;
  int64_t batch, seq, key_seq, kv_heads, group, head_dim;
  Segments query_segments = {}, key_segments = {};
  int64_t whole = 0;
  bool starts = false, heads_first = false;  // heads_first: k and v are [batch kv_heads key_seq head_dim]
};

// Optional features of a call.
struct Extra {
  double dropout = 0;
  int64_t window = 0;
  double softcap = 0;
  bool key_starts = false, sinks = false, accumulate = false;
};

inline const Extra kExtras[] = {
    {.dropout = 0.3},
    {.window = 1},
    {.window = 33},
    {.softcap = 1.5},
    {.sinks = true},
    {.key_starts = true, .accumulate = true},
    {.dropout = 0.2, .window = 70, .softcap = 0.5, .key_starts = true, .sinks = true, .accumulate = true},
};

inline const Case kCases[] = {
    {"odd", 2, 37, 37, 1, 1, 3},
    {"several tiles", 1, 140, 140, 1, 1, 64},
    {"grouped, whole tiles", 1, 32, 128, 2, 4, 128},
    {"as libraries know it", 2, 200, 200, 3, 1, 64},
    {"and grouped", 2, 136, 136, 2, 3, 128},
    {"starts", 1, 90, 90, 1, 2, 24, {}, {}, 0, true, true},
    {"decode", 2, 1, 200, 1, 3, 80, {{130, 1}}, {}, 200},
    {"wide heads", 1, 66, 66, 1, 1, 136},
    {"widest", 1, 5, 9, 1, 2, 256},
    {"keys behind all queries", 1, 40, 70, 1, 1, 16, {{0, 40}}, {{64, 70}}, 200},
};
inline const Case kMixed = {"mixed", 1, 70, 140, 2, 2, 16, {}, {}, 0, true};
inline const Case kZigzag = {"zigzag with padding",           2,  80, 160, 1, 2, 16, {{0, 40}, {240, 30}, {-1, 10}},
                             {{0, 100}, {200, 50}, {-1, 10}}, 280};

// Random operands of a case, and the reference's results.
struct Operands {
  Operands(const Case& c, DType dtype, bool causal, const Extra& e)
      : q_shape({{"batch", c.batch},
                 {"seq", c.seq},
                 {"kv_heads", c.kv_heads},
                 {"group", c.group},
                 {"head_dim", c.head_dim}}),
        k_shape(
            c.heads_first
                ? Shape(
                      {{"batch", c.batch}, {"kv_heads", c.kv_heads}, {"key_seq", c.key_seq}, {"head_dim", c.head_dim}})
                : Shape({{"batch", c.batch},
                         {"key_seq", c.key_seq},
                         {"kv_heads", c.kv_heads},
                         {"head_dim", c.head_dim}})),
        lse_shape({{"batch", c.batch}, {"seq", c.seq}, {"kv_heads", c.kv_heads}, {"group", c.group}}),
        sinks_shape({{"kv_heads", c.kv_heads}, {"group", c.group}}),
        q(random_tensor(q_shape, dtype, 1)),
        k(random_tensor(k_shape, dtype, 2)),
        v(random_tensor(k_shape, dtype, 3)),
        d_o(random_tensor(q_shape, dtype, 5)),
        o(random_tensor(q_shape, dtype, 8)),
        lse(random_tensor(lse_shape, DType::f32, 9)),
        starts(random_integers({{"batch", c.batch}, {"seq", c.seq}}, 4, -1, 30)),
        key_starts({{"batch", c.batch}, {"key_seq", c.key_seq}}, DType::i32),
        sinks(random_tensor(sinks_shape, dtype == DType::f32 ? DType::f32 : DType::bf16, 6)) {
    // Documents of 40 positions.
    const DimIndex seq = c.query_segments.empty() ? DimIndex(c.seq) : DimIndex(c.query_segments, c.whole),
                   key_seq = c.key_segments.empty() ? DimIndex(c.key_seq) : DimIndex(c.key_segments, c.whole);
    for (int64_t i = 0; e.key_starts && i < starts.elements(); ++i)
      starts.set(i, static_cast<double>(std::max<int64_t>(seq[i % c.seq], 0) / 40 * 40));
    for (int64_t i = 0; i < key_starts.elements(); ++i)
      key_starts.set(i, static_cast<double>(std::max<int64_t>(key_seq[i % c.key_seq], 0) / 40 * 40));
    trial = {.kind = "attention",
             .attributes = {{"causal", int64_t{causal}},
                            {"scale", 0.7},
                            {"dropout", e.dropout},
                            {"key", "layer0.attention"}},
             .numbers = {.seed = 7, .step = 3, .batch_offset = 2}};
    if (!c.query_segments.empty()) trial.indices.push_back({"seq", DimIndex(c.query_segments, c.whole)});
    if (!c.key_segments.empty()) trial.indices.push_back({"key_seq", DimIndex(c.key_segments, c.whole)});
    if (e.window > 0) trial.attributes.set("window", e.window);
    if (e.softcap > 0) trial.attributes.set("softcap", e.softcap);
    ins = {&q,
           &k,
           &v,
           c.starts || e.key_starts ? &starts : nullptr,
           e.key_starts ? &key_starts : nullptr,
           e.sinks ? &sinks : nullptr};
    what = std::string(c.name) + (causal ? " causal " : " full ") + std::string(name_of(dtype)) +
           (e.dropout > 0 ? " dropout" : "") + (e.window > 0 ? " window " + std::to_string(e.window) : "") +
           (e.softcap > 0 ? " softcap" : "") + (e.key_starts ? " key_starts" : "") + (e.sinks ? " sinks" : "");
  }
  Operands(const Operands&) = delete;

  Shape q_shape, k_shape, lse_shape, sinks_shape;
  Tensor q, k, v, d_o, o, lse, starts, key_starts, sinks;
  Trial trial;
  std::vector<Tensor*> ins;
  std::string what;
};

// Tensor cores take probabilities in 16 bits.
inline DeviceTolerance tolerance_of(DType dtype, double times) {
  return {2e-5, 3e-5 + device_unit_of(dtype) * times};
}

inline void check_forward(const Case& c, DType dtype, bool causal, const Extra& e) {
  Operands x(c, dtype, causal, e);
  SCOPED_TRACE(x.what);
  if (e.accumulate) x.trial.accumulate = 1;
  compare_on_device(x.trial, x.ins, {x.o, x.lse}, tolerance_of(dtype, 0.3));
}

// Adds the inputs of the gradient: the reference's outputs, and an output gradient.
inline void take_gradient(Operands& x) {
  run_kernel(*reference_kernels(), x.trial, x.ins, {&x.o, &x.lse});
  x.ins.insert(x.ins.end(), {&x.o, &x.lse, &x.d_o});
  x.trial.kind = "attention_grad";
}

inline void check_gradient(const Case& c, DType dtype, bool causal, const Extra& e) {
  Operands x(c, dtype, causal, e);
  SCOPED_TRACE(x.what);
  take_gradient(x);
  std::vector<Tensor> outs = {random_tensor(x.q_shape, dtype, 10), random_tensor(x.k_shape, dtype, 11),
                              random_tensor(x.k_shape, dtype, 12)};
  if (e.sinks) outs.push_back(random_tensor(x.sinks_shape, DType::f32, 13));
  if (e.accumulate) x.trial.accumulate = e.sinks ? 15 : 7;
  compare_on_device(x.trial, x.ins, outs, tolerance_of(dtype, 2));
}

// dq, dk and dv as adjacent columns.
inline void check_gradient_in_columns(const Case& c, DType dtype, bool causal, const Extra& e) {
  Operands x(c, dtype, causal, e);
  take_gradient(x);
  const int64_t columns = (c.group + 2) * c.kv_heads * c.head_dim;
  const Tensor all = random_tensor({{"batch", c.batch}, {"seq", c.seq}, {"columns", columns}}, dtype, 10),
               dsinks = e.sinks ? random_tensor(x.sinks_shape, DType::f32, 13) : absent();
  SCOPED_TRACE(x.what + " side by side");
  compare_on_device(x.trial, x.ins, {absent(), absent(), absent(), dsinks, all}, tolerance_of(dtype, 2));
}

}  // namespace kintsugi::kernels::test::attention_cases
