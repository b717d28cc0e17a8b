// Attention over pieces of keys, as in ring attention: any queries with any keys, combined.
#include "kintsugi/kernels/cpu/compare_test.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test::attention_pieces_test {
namespace {

using Segments = std::vector<tensor::Segment>;

struct Case {
  const char* name;
  int64_t whole;                 // positions of the sequence
  Segments queries;              // those of one rank
  std::vector<Segments> pieces;  // of the keys: each position once
  bool starts = false;
};

// 130 positions: 65 and 65; zigzag over two and three ranks; what does not divide is padded.
std::vector<Case> cases() {
  return {
      {"halves, all queries", 130, {{0, 130}}, {{{0, 65}}, {{65, 65}}}},
      {"the second half's turn", 130, {{65, 65}}, {{{65, 65}}, {{0, 65}}}},
      {"the first half sees nothing of the second", 130, {{0, 65}}, {{{0, 65}}, {{65, 65}}}, true},
      {"zigzag", 130, {{33, 64}}, {{{33, 64}}, {{0, 33}, {97, 33}}}},
      {"zigzag, padded",
       130,
       {{0, 22}, {110, 20}, {-1, 2}},
       {{{22, 22}, {88, 22}}, {{44, 44}}, {{0, 22}, {110, 20}, {-1, 2}}}},
      {"a piece of padding alone",
       9,
       {{6, 3}, {-1, 2}},
       {{{6, 3}, {-1, 2}}, {{-1, 5}}, {{3, 3}, {-1, 2}}, {{0, 3}, {-1, 2}}},
       true},
      {"single keys", 4, {{0, 4}}, {{{3, 1}}, {{0, 1}}, {{2, 1}}, {{1, 1}}}},
  };
}

struct Sizes {
  int64_t batch = 2, kv_heads = 2, group = 3, head_dim = 12;

  Shape q(int64_t seq) const {
    return {{"batch", batch}, {"seq", seq}, {"kv_heads", kv_heads}, {"group", group}, {"head_dim", head_dim}};
  }
  Shape k(int64_t keys) const {
    return {{"batch", batch}, {"key_seq", keys}, {"kv_heads", kv_heads}, {"head_dim", head_dim}};
  }
  Shape rows(int64_t seq) const { return {{"batch", batch}, {"seq", seq}, {"kv_heads", kv_heads}, {"group", group}}; }
};

// The keys of one piece, zero at padding; and back into the whole.
Tensor piece_of(const KernelSet& set, Tensor& whole, const DimIndex& index) {
  std::vector<tensor::Dim> dims = whole.type().shape.dims();
  dims[1].size = index.local();  // [batch key_seq ...]
  Tensor piece(Shape(dims), whole.type().dtype);
  run_kernel(set, {.kind = "stack", .attributes = {{"dim", "key_seq"}}, .indices = {{"key_seq", index}}}, {&whole},
             {&piece});
  return piece;
}
void put_piece(const KernelSet& set, Tensor& piece, const DimIndex& index, Tensor& whole) {
  run_kernel(set, {.kind = "unstack", .attributes = {{"dim", "key_seq"}}, .indices = {{"key_seq", index}}}, {&piece},
             {&whole});
}

// `more`: with a window, capped scores, documents and sinks.
void check(const Case& c, const KernelSet& set, DType dtype, bool causal, double dropout, double tolerance,
           bool more = false) {
  SCOPED_TRACE(std::string(more ? "more " : "") + std::string(c.name) + (causal ? " causal" : " full") +
               (dropout > 0 ? " dropout " : " ") + std::string(set.name()));
  const Sizes z;
  const DimIndex seq(c.queries, c.whole);
  const int64_t n = seq.local();
  Tensor q = random_tensor(z.q(n), dtype, 1, -2, 2), k = random_tensor(z.k(c.whole), dtype, 2, -2, 2),
         v = random_tensor(z.k(c.whole), dtype, 3), d_o = random_tensor(z.q(n), dtype, 4);
  Tensor starts = random_integers({{"batch", z.batch}, {"seq", n}}, 5, 0, c.whole / 2);
  Tensor key_starts({{"batch", z.batch}, {"key_seq", c.whole}}, DType::i32);
  for (int64_t i = 0; i < key_starts.elements(); ++i) key_starts.set(i, static_cast<double>(i % c.whole / 20 * 20));
  for (int64_t i = 0; more && i < starts.elements(); ++i)
    starts.set(i, static_cast<double>(std::max<int64_t>(seq[i % n], 0) / 20 * 20));
  const Shape sinks_shape = {{"kv_heads", z.kv_heads}, {"group", z.group}};
  Tensor sinks = random_tensor(sinks_shape, dtype, 6), dsinks(sinks_shape, dtype),
         dsinks_all = filled(sinks_shape, dtype, 0);
  Trial trial{.kind = "attention",
              .attributes = {{"causal", int64_t{causal}}, {"scale", 0.6}, {"dropout", dropout}, {"key", "a"}},
              .indices = {{"seq", seq}},
              .numbers = {.seed = 5, .step = 3, .batch_offset = 4},
              .threads = 2};
  if (more) trial.attributes.set("window", int64_t{15}), trial.attributes.set("softcap", 1.5);
  const auto operands = [&](Tensor& keys, Tensor& values, Tensor& starts_of_keys, const std::vector<Tensor*>& others) {
    std::vector<Tensor*> ins = {&q,
                                &keys,
                                &values,
                                c.starts || more ? &starts : nullptr,
                                more ? &starts_of_keys : nullptr,
                                more ? &sinks : nullptr};
    ins.insert(ins.end(), others.begin(), others.end());
    return ins;
  };
  const auto gradients = [&](std::vector<Tensor*> outs, Tensor& of_sinks) {
    if (more) outs.push_back(&of_sinks);
    return outs;
  };
  Tensor o(z.q(n), dtype), lse(z.rows(n), dtype);
  run_kernel(set, trial, operands(k, v, key_starts, {}), {&o, &lse});
  Trial grad = trial;
  grad.kind = "attention_grad";
  Tensor dq(z.q(n), dtype), dk(z.k(c.whole), dtype), dv(z.k(c.whole), dtype);
  run_kernel(set, grad, operands(k, v, key_starts, {&o, &lse, &d_o}), gradients({&dq, &dk, &dv}, dsinks));

  Tensor o_all(z.q(n), dtype), lse_all(z.rows(n), dtype), dq_all = filled(z.q(n), dtype, 0);
  Tensor dk_all(z.k(c.whole), dtype), dv_all(z.k(c.whole), dtype);
  for (size_t i = 0; i < c.pieces.size(); ++i) {
    const DimIndex index(c.pieces[i], c.whole);
    Tensor k_i = piece_of(set, k, index), v_i = piece_of(set, v, index), starts_i = piece_of(set, key_starts, index);
    Tensor o_i(z.q(n), dtype), lse_i(z.rows(n), dtype);
    Trial part = trial;
    part.indices.push_back({"key_seq", index});
    run_kernel(set, part, operands(k_i, v_i, starts_i, {}), {&o_i, &lse_i});
    if (i == 0) {
      o_all = o_i, lse_all = lse_i;
    } else {
      run_kernel(set, {.kind = "attention_join", .threads = 2}, {&o_all, &lse_all, &o_i, &lse_i}, {&o_all, &lse_all});
    }
    part.kind = "attention_grad";
    Tensor dq_i(z.q(n), dtype), dk_i(k_i.type()), dv_i(v_i.type()), dsinks_i(sinks_shape, dtype);
    run_kernel(set, part, operands(k_i, v_i, starts_i, {&o, &lse, &d_o}), gradients({&dq_i, &dk_i, &dv_i}, dsinks_i));
    for (int64_t e = 0; more && e < dsinks.elements(); ++e) dsinks_all.set(e, dsinks_all.get(e) + dsinks_i.get(e));
    for (int64_t e = 0; e < dq_all.elements(); ++e) dq_all.set(e, dq_all.get(e) + dq_i.get(e));
    put_piece(set, dk_i, index, dk_all);
    put_piece(set, dv_i, index, dv_all);
  }
  expect_close(o_all, o, tolerance, tolerance, "o");
  expect_close(lse_all, lse, tolerance, tolerance, "lse");
  expect_close(dq_all, dq, 3 * tolerance, 3 * tolerance, "dq");
  expect_close(dk_all, dk, 3 * tolerance, 3 * tolerance, "dk");
  expect_close(dv_all, dv, 3 * tolerance, 3 * tolerance, "dv");
  if (more) expect_close(dsinks_all, dsinks, 3 * tolerance, 3 * tolerance, "dsinks");
  for (int64_t row = 0; row < lse.elements(); ++row) {
    if (seq[row / (z.kv_heads * z.group) % n] >= 0) continue;
    EXPECT_EQ(lse.get(row), -INFINITY) << "padding sees something";
    for (int64_t e = row * z.head_dim; e < (row + 1) * z.head_dim; ++e) {
      EXPECT_EQ(o.get(e), 0);
      EXPECT_EQ(dq.get(e), 0);
    }
  }
}

TEST(AttentionPieces, JoinedAreTheWhole) {
  const auto reference = reference_kernels(), cpu = cpu_kernels();
  for (const Case& c : cases())
    for (const bool causal : {true, false})
      for (const double dropout : {0.0, 0.3}) {
        check(c, *reference, DType::f64, causal, dropout, 1e-12);
        check(c, *cpu, DType::f32, causal, dropout, 1e-5);
        check(c, *reference, DType::f64, causal, dropout, 1e-12, true);
        check(c, *cpu, DType::f32, causal, dropout, 1e-5, true);
      }
}

// Values that are never read may be anything: cost depends on visible pairs.
TEST(AttentionPieces, TilesThatNoneSeesAreNotRead) {
  const Sizes z{.batch = 1, .kv_heads = 1, .group = 1, .head_dim = 16};
  const int64_t n = 256;
  for (const bool zigzag : {false, true}) {
    // Four tiles of 64 keys: two visible to the queries, and two far after all of them, or padding.
    const DimIndex seq = zigzag ? DimIndex({{64, 64}, {256, 64}}, 1024) : DimIndex({{64, 128}}, 1024);
    const DimIndex keys =
        zigzag ? DimIndex({{0, 128}, {512, 64}, {-1, 64}}, 1024) : DimIndex({{0, 128}, {512, 128}}, 1024);
    Tensor q = random_tensor(z.q(128), DType::f32, 1), k = random_tensor(z.k(n), DType::f32, 2),
           v = random_tensor(z.k(n), DType::f32, 3);
    for (int64_t i = 128 * 16; i < v.elements(); ++i) v.set(i, NAN), k.set(i, NAN);
    Tensor o(z.q(128), DType::f32), lse(z.rows(128), DType::f32);
    Trial trial{.kind = "attention",
                .attributes = {{"causal", int64_t{1}}, {"scale", 0.25}},
                .indices = {{"seq", seq}, {"key_seq", keys}}};
    run_kernel(*cpu_kernels(), trial, {&q, &k, &v}, {&o, &lse});
    Tensor dq(z.q(128), DType::f32), dk(z.k(n), DType::f32), dv(z.k(n), DType::f32);
    trial.kind = "attention_grad";
    run_kernel(*cpu_kernels(), trial, {&q, &k, &v, nullptr, nullptr, nullptr, &o, &lse, &q}, {&dq, &dk, &dv});
    for (const Tensor* x : {&o, &lse, &dq, &dk, &dv})
      for (const double e : x->values()) ASSERT_TRUE(std::isfinite(e));
  }
}

// Four tiles of 64 keys, of which 64 queries see only the second.
TEST(AttentionPieces, TilesOutsideOfAWindowOrADocumentAreNotRead) {
  const Sizes z{.batch = 1, .kv_heads = 1, .group = 1, .head_dim = 16};
  const int64_t n = 256;
  Tensor q = random_tensor(z.q(64), DType::f32, 1), k = random_tensor(z.k(n), DType::f32, 2),
         v = random_tensor(z.k(n), DType::f32, 3);
  Tensor starts = filled({{"batch", 1}, {"seq", 64}}, DType::i32, 64);
  Tensor key_starts({{"batch", 1}, {"key_seq", n}}, DType::i32);
  for (int64_t i = 0; i < n; ++i) key_starts.set(i, static_cast<double>(i / 64 * 64));
  for (int64_t i = 0; i < v.elements(); ++i)
    if (i / (64 * 16) != 1) v.set(i, NAN), k.set(i, NAN);
  for (const bool documents : {false, true}) {
    // With a window of one position, queries see themselves.
    Tensor o(z.q(64), DType::f32), lse(z.rows(64), DType::f32);
    Trial trial{.kind = "attention",
                .attributes = {{"causal", int64_t{0}}, {"scale", 0.25}},
                .indices = {{"seq", DimIndex({{64, 64}}, n)}}};
    if (!documents) trial.attributes.set("window", int64_t{1});
    std::vector<Tensor*> ins = {&q, &k, &v};
    if (documents) ins.insert(ins.end(), {&starts, &key_starts});
    run_kernel(*cpu_kernels(), trial, ins, {&o, &lse});
    ins.resize(6, nullptr);
    ins.insert(ins.end(), {&o, &lse, &q});
    Tensor dq(z.q(64), DType::f32), dk(z.k(n), DType::f32), dv(z.k(n), DType::f32);
    trial.kind = "attention_grad";
    run_kernel(*cpu_kernels(), trial, ins, {&dq, &dk, &dv});
    for (const Tensor* x : {&o, &lse, &dq, &dk, &dv})
      for (const double e : x->values()) ASSERT_TRUE(std::isfinite(e));
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test::attention_pieces_test
