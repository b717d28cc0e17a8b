#include "kintsugi/kernels/cpu/bf16_unit.h"
#include "kintsugi/kernels/cpu/compare_test.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::test::attention_test {
namespace {

struct Case {
  const char* name;
  int64_t batch, seq, key_seq, kv_heads, group, head_dim;
  std::vector<tensor::Segment> query_segments = {}, key_segments = {};
  int64_t whole = 0;  // of key_seq
  bool starts = false;
};

// Optional operands of a call.
struct Extra {
  int64_t window = 0;
  double softcap = 0;
  bool key_starts = false, sinks = false;
};

const Extra kExtras[] = {
    {.window = 1},        {.window = 33},  {.softcap = 1.5},
    {.key_starts = true}, {.sinks = true}, {.window = 70, .softcap = 0.5, .key_starts = true, .sinks = true},
};

const Case kCases[] = {
    {"odd", 2, 37, 37, 3, 1, 8},
    {"grouped", 1, 70, 70, 2, 3, 20},
    {"several tiles", 1, 150, 150, 1, 1, 64},
    {"starts", 2, 90, 90, 1, 2, 16, {}, {}, 0, true},
    {"blocks of keys", 1, 600, 600, 1, 1, 40},
    {"decode", 2, 1, 200, 2, 2, 32, {{130, 1}}, {}, 200},
    {"few in blocks", 2, 2, 900, 2, 3, 20, {{650, 2}}, {}, 900},
    {"zigzag with padding", 1, 80, 160, 2, 1, 16, {{0, 40}, {240, 30}, {-1, 10}}, {{0, 100}, {200, 50}, {-1, 10}}, 280},
};

// Outputs of attention are inputs of its gradient.
void check(const Case& c, DType dtype, int threads, bool causal, double dropout, const Extra& extra = {}) {
  SCOPED_TRACE(std::string(c.name) + (causal ? " causal" : " full") + (dropout > 0 ? " dropout" : "") +
               (extra.window > 0 ? " window " + std::to_string(extra.window) : "") +
               (extra.softcap > 0 ? " softcap" : "") + (extra.key_starts ? " key_starts" : "") +
               (extra.sinks ? " sinks" : ""));
  const Shape q_shape(
      {{"batch", c.batch}, {"seq", c.seq}, {"kv_heads", c.kv_heads}, {"group", c.group}, {"head_dim", c.head_dim}});
  const Shape k_shape({{"batch", c.batch}, {"key_seq", c.key_seq}, {"kv_heads", c.kv_heads}, {"head_dim", c.head_dim}});
  const Shape lse_shape({{"batch", c.batch}, {"seq", c.seq}, {"kv_heads", c.kv_heads}, {"group", c.group}});
  Tensor q = random_tensor(q_shape, dtype, 1), k = random_tensor(k_shape, dtype, 2),
         v = random_tensor(k_shape, dtype, 3);
  Tensor starts = random_integers({{"batch", c.batch}, {"seq", c.seq}}, 4, 0, 30);
  Tensor d_o = random_tensor(q_shape, dtype, 5);
  // Documents of 40 positions unless others are given.
  Tensor key_starts({{"batch", c.batch}, {"key_seq", c.key_seq}}, DType::i32);
  const DimIndex seq = c.query_segments.empty() ? DimIndex(c.seq) : DimIndex(c.query_segments, c.whole),
                 key_seq = c.key_segments.empty() ? DimIndex(c.key_seq) : DimIndex(c.key_segments, c.whole);
  const bool documents = extra.key_starts && !c.starts;
  for (int64_t i = 0; documents && i < starts.elements(); ++i)
    starts.set(i, static_cast<double>(std::max<int64_t>(seq[i % c.seq], 0) / 40 * 40));
  for (int64_t i = 0; i < key_starts.elements(); ++i)
    key_starts.set(i, documents ? static_cast<double>(std::max<int64_t>(key_seq[i % c.key_seq], 0) / 40 * 40)
                                : static_cast<double>(i * 7 % 30));
  const Shape sinks_shape({{"kv_heads", c.kv_heads}, {"group", c.group}});
  Tensor sinks = random_tensor(sinks_shape, dtype, 6);
  Trial trial{
      .kind = "attention",
      .attributes = {{"causal", int64_t{causal}}, {"scale", 0.7}, {"dropout", dropout}, {"key", "layer0.attention"}},
      .numbers = {.seed = 7, .step = 3, .batch_offset = 2},
      .threads = threads};
  if (!c.query_segments.empty()) trial.indices.push_back({"seq", DimIndex(c.query_segments, c.whole)});
  if (!c.key_segments.empty()) trial.indices.push_back({"key_seq", DimIndex(c.key_segments, c.whole)});
  if (extra.window > 0) trial.attributes.set("window", extra.window);
  if (extra.softcap > 0) trial.attributes.set("softcap", extra.softcap);
  std::vector<Tensor*> ins = {&q,
                              &k,
                              &v,
                              c.starts || extra.key_starts ? &starts : nullptr,
                              extra.key_starts ? &key_starts : nullptr,
                              extra.sinks ? &sinks : nullptr};
  // In bf16, probabilities and gradients of scores are rounded for the following matmuls.
  const double rounding = unit_of(dtype) * (dtype == DType::bf16 ? 0.3 : 0.1);
  const Tolerance tolerance{1e-5, 1e-5 + rounding};
  compare(trial, ins, {Tensor(q_shape, dtype), Tensor(lse_shape, DType::f32)}, tolerance);

  Tensor o(q_shape, dtype), lse(lse_shape, DType::f32);
  run_kernel(*reference_kernels(), trial, ins, {&o, &lse});
  ins.insert(ins.end(), {&o, &lse, &d_o});
  trial.kind = "attention_grad";
  std::vector<Tensor> outs = {Tensor(q_shape, dtype), Tensor(k_shape, dtype), Tensor(k_shape, dtype)};
  const Tolerance of_gradients{2e-5, 3e-5 + rounding * 2};
  if (extra.sinks) outs.emplace_back(sinks_shape, DType::f32);
  compare(trial, ins, outs, of_gradients);
  if (!extra.sinks) return;
  outs.back() = random_tensor(sinks_shape, DType::f32, 7);
  trial.accumulate = 8;
  compare(trial, ins, outs, of_gradients);
}

TEST(CpuAttention, AgreesWithTheReference) {
  with_each_target([] {
    for (const Case& c : kCases)
      for (const bool causal : {true, false})
        for (const double dropout : {0.0, 0.3}) check(c, DType::f32, 2, causal, dropout);
  });
}

TEST(CpuAttention, AgreesWhereLessIsVisible) {
  for (const Case& c : kCases)
    for (const bool causal : {true, false})
      for (const Extra& extra : kExtras) check(c, DType::f32, 2, causal, 0.0, extra);
  with_each_target([] {
    for (const Extra& extra : kExtras) check(kCases[2], DType::f32, 2, false, 0.3, extra);
  });
}

TEST(CpuAttention, TakesEveryTypeAndNumberOfThreads) {
  for (const DType dtype : kFastTypes)
    for (const int threads : {1, 3}) {
      check(kCases[1], dtype, threads, true, 0.1);
      check(kCases[1], dtype, threads, true, 0.1, std::end(kExtras)[-1]);
    }
  for (const Case& c : kCases) check(c, DType::bf16, 2, true, 0.0);
  with_each_target([] {
    for (const Extra& extra : kExtras) check(kCases[5], DType::bf16, 2, true, 0.2, extra);
  });
}

// Results on machines without a matrix unit, and with several.
TEST(CpuAttention, TakesEachUnitForBf16) {
  for (const cpu::Bf16Unit* unit : cpu::bf16_units()) {
    SCOPED_TRACE(unit->name);
    cpu::use_bf16_unit(unit);
    for (const Case& c : kCases)
      for (const bool causal : {true, false}) check(c, DType::bf16, 2, causal, 0.0);
  }
  cpu::use_bf16_unit(nullptr);
}

// Also one head, whose key blocks are shared by threads, and one among others.
void check_bits(DType dtype, int64_t seq) {
  const Shape shape({{"batch", 2}, {"seq", seq}, {"kv_heads", 2}, {"group", 1}, {"head_dim", 16}});
  const Shape k_shape({{"batch", 2}, {"key_seq", seq}, {"kv_heads", 2}, {"head_dim", 16}});
  Tensor q = random_tensor(shape, dtype, 1), k = random_tensor(k_shape, dtype, 2), v = random_tensor(k_shape, dtype, 3);
  const auto cpu = cpu_kernels();
  std::vector<std::vector<double>> all;
  for (const int threads : {1, 2, 5}) {
    Tensor o(shape, dtype), lse({{"batch", 2}, {"seq", seq}, {"kv_heads", 2}, {"group", 1}}, DType::f32);
    Tensor dq(shape, dtype), dk(k_shape, dtype), dv(k_shape, dtype);
    Trial trial{.kind = "attention", .attributes = {{"causal", int64_t{1}}, {"scale", 0.25}}, .threads = threads};
    run_kernel(*cpu, trial, {&q, &k, &v}, {&o, &lse});
    trial.kind = "attention_grad";
    run_kernel(*cpu, trial, {&q, &k, &v, nullptr, nullptr, nullptr, &o, &lse, &q}, {&dq, &dk, &dv});
    all.push_back(o.values());
    for (const Tensor* x : {&dq, &dk, &dv}) {
      const std::vector<double> more = x->values();
      all.back().insert(all.back().end(), more.begin(), more.end());
    }
  }
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0], all[2]);
}

TEST(CpuAttention, BitsDoNotDependOnThreads) {
  for (const DType dtype : kFastTypes)
    for (const int64_t seq : {130, 1100}) check_bits(dtype, seq);
}

}  // namespace
}  // namespace kintsugi::kernels::test::attention_test
