// The kernels of a loss and an update.
#include "kintsugi/kernels/cpu/compare_test.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"

namespace kintsugi::kernels::test::update_test {
namespace {

Tensor scalar(double value) {
  return filled({}, DType::f64, value);
}

TEST(CpuCrossEntropy, AgreesWithTheReference) {
  const Shape shape({{"batch", 3}, {"seq", 9}});
  Tensor lse = random_tensor(shape, DType::f32, 1, 2, 5), target = random_tensor(shape, DType::f32, 2, -1, 1);
  Tensor labels = random_integers(shape, 3, -2, 10), dloss = scalar(0.25);
  Trial trial{.kind = "cross_entropy", .indices = {{"seq", DimIndex({{0, 7}, {-1, 2}}, 7)}}, .threads = 2};
  compare(trial, {&lse, &target, &labels}, {scalar(0), scalar(0)}, {1e-12, 0});
  trial.accumulate = 3;
  compare(trial, {&lse, &target, &labels}, {scalar(5), scalar(7)}, {1e-12, 0});
  trial.kind = "cross_entropy_grad", trial.accumulate = 0;
  compare(trial, {&labels, &dloss}, {Tensor(shape, DType::f32), Tensor(shape, DType::f32)}, {0, 0});
}

TEST(CpuUpdate, SampleScores) {
  const Shape shape({{"batch", 3}, {"seq", 9}}), samples({{"batch", 3}});
  Tensor lse = random_tensor(shape, DType::f32, 1, 2, 5), target = random_tensor(shape, DType::f32, 2, -1, 1),
         top = random_tensor(shape, DType::f32, 4, -1, 1), labels = random_integers(shape, 3, -2, 10);
  top.set(0, target.get(0)), labels.set(0, 4);
  const std::vector<Tensor> outs(3, Tensor(samples, DType::f64));
  for (const std::vector<NamedIndex>& indices : {std::vector<NamedIndex>{},
                                                 {{"seq", DimIndex({{0, 7}, {-1, 2}}, 7)}},
                                                 {{"batch", DimIndex({{-1, 1}, {0, 2}}, 2)}}})
    compare({.kind = "sample_scores", .indices = indices}, {&lse, &target, &labels, &top}, outs, {1e-12, 0});
}

TEST(CpuUpdate, NormAndScale) {
  with_each_target([] {
    for (const DType dtype : kFastTypes)
      for (const int64_t n : {1, 1023, 1024, 5003}) {
        Tensor g = random_tensor({{"flat", n}}, dtype, 1, -3, 3);
        compare({.kind = "sum_squares", .threads = 2}, {&g}, {Tensor({{"block", (n + 1023) / 1024}}, DType::f64)},
                {1e-12, 1e-12});
      }
  });
  // A bucket: the blocks of each shard, and block sums of any shape.
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor g = random_tensor({{"shard", 3}, {"flat", 5120}}, dtype, 1, -3, 3);
    Tensor blocks({{"shard", 3}, {"block", 5}}, DType::f64), more = random_tensor({{"block", 4}}, DType::f64, 2, 0, 9);
    compare({.kind = "sum_squares", .threads = 2}, {&g}, {blocks}, {1e-12, 1e-12});
    run_kernel(*cpu_kernels(), {.kind = "sum_squares"}, {&g}, {&blocks});
    Tensor count = scalar(12), loss_scale = scalar(1), norm = scalar(0), factor = scalar(0), finite = scalar(0);
    compare({.kind = "update_scale", .attributes = {{"clip", 1.0}}}, {&count, &loss_scale, &blocks, &more},
            {scalar(0), scalar(0), scalar(0)}, {1e-15, 0});
    run_kernel(*cpu_kernels(), {.kind = "update_scale", .attributes = {{"clip", 0.0}}}, {&count, &loss_scale, &blocks},
               {&norm, &factor, &finite});
    double squares = 0;
    for (const double x : g.values()) squares += x * x;
    EXPECT_NEAR(norm.get(0), std::sqrt(squares) / 12, 1e-10);
  }
  for (const double clip : {0.0, 1.0, 1e9})
    for (const double count : {0.0, 12.0}) {
      Tensor counted = scalar(count), loss_scale = scalar(1024);
      Tensor a = random_tensor({{"block", 9}}, DType::f64, 1, 0, 9),
             b = random_tensor({{"block", 4}}, DType::f64, 2, 0, 9);
      compare({.kind = "update_scale", .attributes = {{"clip", clip}}}, {&counted, &loss_scale, &a, &b},
              {scalar(0), scalar(0), scalar(0)}, {1e-15, 0});
    }
}

TEST(CpuUpdate, LossScale) {
  for (const double finite : {0.0, 1.0})
    for (const double scale : {1.0, 1024.0, 16777216.0})
      for (const double good : {0.0, 8.0, 9.0}) {
        Tensor f = scalar(finite), s = scalar(scale), g = scalar(good);
        compare({.kind = "loss_scale", .attributes = {{"growth_interval", int64_t{10}}}}, {&f, &s, &g},
                {scalar(0), scalar(0)}, {0, 0});
      }
}

TEST(CpuUpdate, Optimizers) {
  with_each_target([] {
    const Shape shape({{"flat", 5003}});
    Tensor w = random_tensor(shape, DType::f32, 1);
    Tensor m = random_tensor(shape, DType::f32, 3), v = random_tensor(shape, DType::f32, 4, 0, 1);
    for (const auto& [dtype, of_gradient] : {std::pair{DType::f32, DType::f32},
                                             {DType::bf16, DType::f32},
                                             {DType::f16, DType::f32},
                                             {DType::bf16, DType::bf16}})
      for (const double is_finite : {0.0, 1.0}) {
        Tensor g = random_tensor(shape, of_gradient, 2, -9, 9);
        Tensor factor = scalar(0.3), finite = scalar(is_finite), updates = scalar(3);
        const Trial adamw{.kind = "adamw",
                          .attributes = {{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}},
                          .numbers = {.learning_rate = 0.01},
                          .threads = 2};
        const Tensor state(shape, DType::f32);
        compare(adamw, {&w, &g, &m, &v, &factor, &finite, &updates}, {state, state, state, Tensor(shape, dtype)},
                {1e-6, 1e-6});
        compare(adamw, {&w, &g, &m, &v, &factor, &finite, &updates}, {state, state, state}, {1e-6, 1e-6});
        const Trial sgd{.kind = "sgd",
                        .attributes = {{"momentum", 0.9}, {"weight_decay", 0.1}},
                        .numbers = {.learning_rate = 0.01},
                        .threads = 2};
        compare(sgd, {&w, &g, &m, &factor, &finite}, {state, state, Tensor(shape, dtype)}, {1e-6, 1e-6});
        Trial adam = adamw, nesterov = sgd;
        adam.attributes.set("coupled_decay", int64_t{1});
        nesterov.attributes.set("nesterov", int64_t{1});
        compare(adam, {&w, &g, &m, &v, &factor, &finite, &updates}, {state, state, state}, {1e-6, 1e-6});
        compare(nesterov, {&w, &g, &m, &factor, &finite}, {state, state, Tensor(shape, dtype)}, {1e-6, 1e-6});
        // In place, as in a run.
        Tensor w2 = w, m2 = m, weight(shape, dtype), w3 = state, m3 = state, weight3(shape, dtype);
        run_kernel(*cpu_kernels(), sgd, {&w2, &g, &m2, &factor, &finite}, {&w2, &m2, &weight});
        run_kernel(*cpu_kernels(), sgd, {&w, &g, &m, &factor, &finite}, {&w3, &m3, &weight3});
        EXPECT_EQ(w2.values(), w3.values());
        EXPECT_EQ(m2.values(), m3.values());
        EXPECT_EQ(weight.values(), weight3.values());
      }
  });
}

TEST(CpuKernels, HaveEveryKind) {
  const auto cpu = cpu_kernels();
  for (const char* kind : {"fill",
                           "broadcast",
                           "add",
                           "scale",
                           "sum",
                           "cast",
                           "contract",
                           "embedding",
                           "embedding_grad",
                           "position",
                           "position_grad",
                           "layer_norm",
                           "layer_norm_grad",
                           "rms_norm",
                           "rms_norm_grad",
                           "gelu",
                           "gelu_grad",
                           "silu",
                           "silu_grad",
                           "relu",
                           "relu_grad",
                           "relu2",
                           "relu2_grad",
                           "tanh",
                           "tanh_grad",
                           "gated",
                           "gated_grad",
                           "rotary",
                           "attention",
                           "attention_grad",
                           "dropout",
                           "head",
                           "head_grad",
                           "head_with_grad",
                           "cross_entropy",
                           "cross_entropy_grad",
                           "sample_scores",
                           "class_loss",
                           "class_loss_grad",
                           "squared_error",
                           "squared_error_grad",
                           "first",
                           "first_grad",
                           "accumulate",
                           "sum_squares",
                           "update_scale",
                           "adamw",
                           "sgd",
                           "loss_scale",
                           "cache_write",
                           "take",
                           "cache_write_at",
                           "attention_at",
                           "rotary_at",
                           "position_at",
                           "take_rows",
                           "stack",
                           "unstack",
                           "halo_pack",
                           "halo_place",
                           "halo_add",
                           "mask",
                           "logsumexp",
                           "attention_join"}) {
    EXPECT_EQ(cpu->find(kind).kind, kind);
    EXPECT_NE(cpu->find(kind).run, nullptr);
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test::update_test
