#include "kintsugi/kernels/cpu/compare_test.h"

namespace kintsugi::kernels::test::attention_test {
namespace {

struct Case {
  const char* name;
  int64_t batch, seq, key_seq, kv_heads, group, head_dim;
  std::vector<tensor::Segment> query_segments = {}, key_segments = {};
  int64_t whole = 0;  // of key_seq
  bool starts = false;
};

const Case kCases[] = {
    {"odd", 2, 37, 37, 3, 1, 8},
    {"grouped", 1, 70, 70, 2, 3, 20},
    {"several tiles", 1, 150, 150, 1, 1, 64},
    {"starts", 2, 90, 90, 1, 2, 16, {}, {}, 0, true},
    {"decode", 2, 1, 200, 2, 2, 32, {{130, 1}}, {}, 200},
    {"zigzag with padding", 1, 80, 160, 2, 1, 16, {{0, 40}, {240, 30}, {-1, 10}}, {{0, 100}, {200, 50}, {-1, 10}}, 280},
};

// Outputs of attention are inputs of its gradient.
void check(const Case& c, DType dtype, int threads, bool causal, double dropout) {
  SCOPED_TRACE(std::string(c.name) + (causal ? " causal" : " full") + (dropout > 0 ? " dropout" : ""));
  const Shape q_shape(
      {{"batch", c.batch}, {"seq", c.seq}, {"kv_heads", c.kv_heads}, {"group", c.group}, {"head_dim", c.head_dim}});
  const Shape k_shape({{"batch", c.batch}, {"key_seq", c.key_seq}, {"kv_heads", c.kv_heads}, {"head_dim", c.head_dim}});
  const Shape lse_shape({{"batch", c.batch}, {"seq", c.seq}, {"kv_heads", c.kv_heads}, {"group", c.group}});
  Tensor q = random_tensor(q_shape, dtype, 1), k = random_tensor(k_shape, dtype, 2),
         v = random_tensor(k_shape, dtype, 3);
  Tensor starts = random_integers({{"batch", c.batch}, {"seq", c.seq}}, 4, 0, 30);
  Tensor d_o = random_tensor(q_shape, dtype, 5);
  Trial trial{
      .kind = "attention",
      .attributes = {{"causal", int64_t{causal}}, {"scale", 0.7}, {"dropout", dropout}, {"key", "layer0.attention"}},
      .numbers = {.seed = 7, .step = 3, .batch_offset = 2},
      .threads = threads};
  if (!c.query_segments.empty()) trial.indices.push_back({"seq", DimIndex(c.query_segments, c.whole)});
  if (!c.key_segments.empty()) trial.indices.push_back({"key_seq", DimIndex(c.key_segments, c.whole)});
  std::vector<Tensor*> ins = {&q, &k, &v, c.starts ? &starts : nullptr};
  const Tolerance tolerance{1e-5, 1e-5 + unit_of(dtype) * 0.1};
  compare(trial, ins, {Tensor(q_shape, dtype), Tensor(lse_shape, DType::f32)}, tolerance);

  Tensor o(q_shape, dtype), lse(lse_shape, DType::f32);
  run_kernel(*reference_kernels(), trial, ins, {&o, &lse});
  ins.insert(ins.end(), {&o, &lse, &d_o});
  trial.kind = "attention_grad";
  compare(trial, ins, {Tensor(q_shape, dtype), Tensor(k_shape, dtype), Tensor(k_shape, dtype)},
          {2e-5, 3e-5 + unit_of(dtype) * 0.1});
}

TEST(CpuAttention, AgreesWithTheReference) {
  with_each_target([] {
    for (const Case& c : kCases)
      for (const bool causal : {true, false})
        for (const double dropout : {0.0, 0.3}) check(c, DType::f32, 2, causal, dropout);
  });
}

TEST(CpuAttention, TakesEveryTypeAndNumberOfThreads) {
  for (const DType dtype : kFastTypes)
    for (const int threads : {1, 3}) check(kCases[1], dtype, threads, true, 0.1);
}

TEST(CpuAttention, BitsDoNotDependOnThreads) {
  const Shape shape({{"batch", 2}, {"seq", 130}, {"kv_heads", 2}, {"group", 1}, {"head_dim", 16}});
  const Shape k_shape({{"batch", 2}, {"key_seq", 130}, {"kv_heads", 2}, {"head_dim", 16}});
  Tensor q = random_tensor(shape, DType::f32, 1), k = random_tensor(k_shape, DType::f32, 2),
         v = random_tensor(k_shape, DType::f32, 3);
  const auto cpu = cpu_kernels();
  std::vector<std::vector<double>> all;
  for (const int threads : {1, 2, 5}) {
    Tensor o(shape, DType::f32), lse({{"batch", 2}, {"seq", 130}, {"kv_heads", 2}, {"group", 1}}, DType::f32);
    Tensor dq(shape, DType::f32), dk(k_shape, DType::f32), dv(k_shape, DType::f32);
    Trial trial{.kind = "attention", .attributes = {{"causal", int64_t{1}}, {"scale", 0.25}}, .threads = threads};
    run_kernel(*cpu, trial, {&q, &k, &v}, {&o, &lse});
    trial.kind = "attention_grad";
    run_kernel(*cpu, trial, {&q, &k, &v, nullptr, &o, &lse, &q}, {&dq, &dk, &dv});
    all.push_back(o.values());
    for (const Tensor* x : {&dq, &dk, &dv}) {
      const std::vector<double> more = x->values();
      all.back().insert(all.back().end(), more.begin(), more.end());
    }
  }
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0], all[2]);
}

}  // namespace
}  // namespace kintsugi::kernels::test::attention_test
