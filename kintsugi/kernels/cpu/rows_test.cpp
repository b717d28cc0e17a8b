// Kernels that move or reduce rows: embedding, position, norms, sums, rotary, the cache.
#include "kintsugi/kernels/cpu/compare_test.h"

namespace kintsugi::kernels::test::rows_test {
namespace {

TEST(CpuEmbedding, AgreesWithTheReference) {
  for (const DType dtype : kFastTypes) {
    for (const int threads : {1, 3}) {
      const Shape tokens_shape({{"batch", 3}, {"seq", 29}}), y_shape({{"batch", 3}, {"seq", 29}, {"embed", 37}});
      const Shape table_shape({{"vocab", 20}, {"embed", 37}});
      Tensor tokens = random_integers(tokens_shape, 1, -3, 45), table = random_tensor(table_shape, dtype, 2);
      Tensor dy = random_tensor(y_shape, dtype, 3);
      Trial trial{.kind = "embedding", .indices = {{"vocab", DimIndex({{20, 15}, {-1, 5}}, 35)}}, .threads = threads};
      compare(trial, {&tokens, &table}, {Tensor(y_shape, dtype)}, {0, 0});
      trial.kind = "embedding_grad";
      compare(trial, {&tokens, &dy}, {Tensor(table_shape, DType::f32)});
      trial.accumulate = 1;
      compare(trial, {&tokens, &dy}, {random_tensor(table_shape, DType::f32, 4)});
    }
  }
}

TEST(CpuPosition, AgreesWithTheReference) {
  for (const DType dtype : kFastTypes) {
    Tensor table = random_tensor({{"position", 16}, {"embed", 37}}, dtype, 1);
    Tensor dy = random_tensor({{"seq", 9}, {"embed", 37}}, dtype, 2);
    Trial trial{.kind = "position", .indices = {{"seq", DimIndex({{2, 4}, {12, 3}, {-1, 2}}, 16)}}, .threads = 2};
    compare(trial, {&table}, {Tensor({{"seq", 9}, {"embed", 37}}, dtype)}, {0, 0});
    trial.kind = "position_grad";
    compare(trial, {&dy}, {Tensor({{"position", 16}, {"embed", 37}}, DType::f32)});
    trial.accumulate = 1;
    compare(trial, {&dy}, {random_tensor({{"position", 16}, {"embed", 37}}, DType::f32, 3)});
  }
}

TEST(CpuNorms, AgreeWithTheReference) {
  with_each_target([] {
    for (const DType dtype : kFastTypes) {
      for (const int64_t embed : {1, 13, 64, 413}) {
        for (const int threads : {1, 3}) {
          const Shape shape({{"batch", 5}, {"seq", 19}, {"embed", embed}}), row({{"embed", embed}});
          Tensor x = random_tensor(shape, dtype, 1, -2, 3), dy = random_tensor(shape, dtype, 2);
          Tensor gamma = random_tensor(row, dtype, 3, 0.5, 1.5), beta = random_tensor(row, dtype, 4);
          const Tolerance tolerance{1e-5, 2e-5 + unit_of(dtype) * 0.05};
          for (const char* kind : {"layer_norm", "rms_norm"}) {
            const bool centered = std::string_view(kind) == "layer_norm";
            Trial trial{.kind = kind, .attributes = {{"epsilon", 1e-5}}, .threads = threads};
            compare(trial, {&x, &gamma}, {Tensor(shape, dtype)}, tolerance);
            if (centered) compare(trial, {&x, &gamma, &beta}, {Tensor(shape, dtype)}, tolerance);
            if (embed == 1) continue;  // the gradient is a difference of equals
            trial.kind += "_grad";
            compare(trial, {&x, &gamma, &dy}, {Tensor(shape, dtype), Tensor(row, DType::f32)}, tolerance);
            trial.accumulate = 6;
            const Tensor before = random_tensor(row, DType::f32, 5);
            std::vector<Tensor> outs = {Tensor(shape, dtype), before};
            if (centered) outs.push_back(before);
            compare(trial, {&x, &gamma, &dy}, outs, tolerance);
          }
        }
      }
    }
  });
}

// Over one of several dims, and over several at once, with and without an offset of gamma.
TEST(CpuNorms, TakeTheDimsOfGamma) {
  const Shape shape({{"batch", 2}, {"seq", 7}, {"kv_heads", 3}, {"group", 2}, {"head_dim", 13}});
  with_each_target([&] {
    for (const Shape& dims : {Shape({{"head_dim", 13}}), Shape({{"kv_heads", 3}, {"group", 2}, {"head_dim", 13}})})
      for (const DType dtype : kFastTypes)
        for (const double offset : {0.0, 1.0}) {
          Tensor x = random_tensor(shape, dtype, 1, -2, 3), dy = random_tensor(shape, dtype, 2);
          Tensor gamma = random_tensor(dims, dtype, 3, 0.5, 1.5);
          Trial trial{.kind = "rms_norm", .attributes = {{"epsilon", 1e-5}}, .threads = 3};
          if (offset != 0) trial.attributes.set("gamma_offset", offset);
          const Tolerance tolerance{1e-5, 4e-5 + unit_of(dtype) * 0.1};
          compare(trial, {&x, &gamma}, {Tensor(shape, dtype)}, tolerance);
          trial.kind = "rms_norm_grad";
          compare(trial, {&x, &gamma, &dy}, {Tensor(shape, dtype), Tensor(dims, DType::f32)}, tolerance);
        }
  });
}

TEST(CpuSum, OverLeadingDimsAndOthers) {
  with_each_target([] {
    for (const DType dtype : kFastTypes) {
      Tensor x = random_tensor({{"batch", 7}, {"seq", 90}, {"embed", 37}}, dtype, 1);
      for (const Shape& shape : {Shape({{"embed", 37}}), Shape({{"seq", 90}, {"embed", 37}}), Shape(),
                                 Shape({{"batch", 7}, {"embed", 37}}), Shape({{"seq", 90}})}) {
        for (const uint32_t accumulate : {0u, 1u})
          for (const DType out : {DType::f32, dtype})
            compare({.kind = "sum", .accumulate = accumulate, .threads = 3}, {&x}, {random_tensor(shape, out, 2)},
                    {1e-5, 3e-5});
      }
    }
  });
}

TEST(CpuRotary, AgreesWithTheReference) {
  with_each_target([] {
    for (const DType dtype : kFastTypes) {
      const Shape shape({{"batch", 2}, {"seq", 9}, {"kv_heads", 2}, {"group", 3}, {"head_dim", 44}});
      Tensor x = random_tensor(shape, dtype, 1);
      for (const int64_t inverse : {0, 1})
        for (const int64_t interleaved : {0, 1}) {
          const Trial trial{.kind = "rotary",
                            .attributes = {{"theta", 10000.0}, {"inverse", inverse}, {"interleaved", interleaved}},
                            .indices = {{"seq", DimIndex({{7, 5}, {1000, 4}}, 2000)}},
                            .threads = 2};
          compare(trial, {&x}, {Tensor(shape, dtype)}, {1e-6, 1e-6});
          compare_in_place(trial, {&x}, 0, {1e-6, 1e-6});
        }
    }
  });
}

TEST(CpuRotary, SomeDimsAndScaledFrequencies) {
  const Attributes scalings[] = {
      {},
      {{"dims", int64_t{44}}, {"scaling", "linear"}, {"factor", 4.0}},
      {{"dims", int64_t{44}}, {"magnitude", 1.2}},
      {{"scaling", "yarn"}, {"factor", 4.0}, {"original", int64_t{512}}, {"beta_fast", 32.0}, {"beta_slow", 1.0}},
      {{"dims", int64_t{4}}, {"scaling", "list"}, {"factors", "1.5 20"}},
  };
  with_each_target([&] {
    for (const DType dtype : kFastTypes) {
      const Shape shape({{"batch", 2}, {"seq", 9}, {"kv_heads", 2}, {"head_dim", 50}});
      Tensor x = random_tensor(shape, dtype, 1);
      for (const Attributes& scaling : scalings)
        for (const int64_t interleaved : {0, 1}) {
          Trial trial{.kind = "rotary",
                      .attributes = {{"theta", 10000.0}, {"inverse", int64_t{0}}, {"interleaved", interleaved}},
                      .indices = {{"seq", DimIndex({{7, 5}, {1000, 4}}, 2000)}},
                      .threads = 2};
          for (const auto& [name, value] : scaling.list()) trial.attributes.set(name, value);
          compare(trial, {&x}, {Tensor(shape, dtype)}, {1e-6, 1e-6});
          compare_in_place(trial, {&x}, 0, {1e-6, 1e-6});
        }
    }
  });
}

TEST(CpuCache, WritesAndTakes) {
  for (const DType dtype : kFastTypes) {
    Tensor cache = random_tensor({{"batch", 2}, {"key_seq", 12}, {"kv_heads", 2}, {"head_dim", 5}}, dtype, 1);
    Tensor x = random_tensor({{"batch", 2}, {"seq", 4}, {"kv_heads", 2}, {"head_dim", 5}}, dtype, 2);
    const Trial trial{.kind = "cache_write", .indices = {{"seq", DimIndex({{10, 3}, {-1, 1}}, 100)}}};
    compare(trial, {&cache, &x}, {Tensor(cache.type())}, {0, 0});
    compare_in_place(trial, {&cache, &x}, 0, {0, 0});
    Tensor h = random_tensor({{"batch", 3}, {"seq", 5}, {"embed", 7}}, dtype, 3);
    compare({.kind = "take", .numbers = {.last = 3}}, {&h}, {Tensor({{"batch", 3}, {"embed", 7}}, dtype)}, {0, 0});
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test::rows_test
