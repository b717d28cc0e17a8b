#include <algorithm>
#include <functional>

#include "kintsugi/kernels/adamw8.h"
#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/stochastic.h"

namespace kintsugi::kernels::test {
namespace {

// Operands of an update of a list of some size, and scalars of a step.
struct Step {
  Step(const Shape& shape, DType gradient, double is_finite)
      : w(random_tensor(shape, DType::f32, 1)),
        g(random_tensor(shape, gradient, 2, -3, 3)),
        m(random_tensor(shape, DType::f32, 3)),
        v(random_tensor(shape, DType::f32, 4, 0, 1)),
        factor(filled({}, DType::f64, 0.3)),
        finite(filled({}, DType::f64, is_finite)),
        updates(filled({}, DType::f64, 4)),
        w_squares(filled({}, DType::f64, 31)),
        u_squares(filled({}, DType::f64, 7)),
        weight(shape, DType::bf16) {}

  Tensor w, g, m, v, factor, finite, updates, w_squares, u_squares, weight;
};

void for_each_step(const std::function<void(Step&)>& f) {
  for (const DType gradient : {DType::f32, DType::bf16})
    for (const double finite : {1.0, 0.0})
      for (const int64_t size : {1, 777, 1028}) {
        Step s(Shape({{"flat", size}}), gradient, finite);
        f(s);
      }
}

Trial step_trial(std::string kind, Attributes attributes) {
  attributes.set("rate", 0.5);
  return {.kind = std::move(kind), .attributes = std::move(attributes), .numbers = {.learning_rate = 0.02}};
}

TEST(OnDevice, Lion) {
  for_each_step([](Step& s) {
    const Trial trial = step_trial("lion", {{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.1}});
    s.g.set(0, 0), s.m.set(0, 0);  // the sign of 0 is 0
    compare_on_device(trial, {&s.w, &s.g, &s.m, &s.factor, &s.finite}, {s.w, s.m, s.weight});
    compare_on_device(trial, {&s.w, &s.g, &s.m, &s.factor, &s.finite}, {s.w, s.m});
  });
}

TEST(OnDevice, Adadelta) {
  for_each_step([](Step& s) {
    const Trial trial = step_trial("adadelta", {{"rho", 0.9}, {"epsilon", 1e-6}, {"weight_decay", 0.1}});
    Tensor d = random_tensor(s.w.type().shape, DType::f32, 5, 0, 1);
    compare_on_device(trial, {&s.w, &s.g, &s.v, &d, &s.factor, &s.finite}, {s.w, s.v, d, s.weight});
  });
}

TEST(OnDevice, AdamDirection) {
  for_each_step([](Step& s) {
    const Trial trial =
        step_trial("adam_direction", {{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}});
    compare_on_device(trial, {&s.w, &s.g, &s.m, &s.v, &s.factor, &s.finite, &s.updates}, {s.m, s.v, s.w});
  });
}

// Without norms, LAMB's ratio with and without a norm of 0, and Adafactor's scale on both sides of each bound.
TEST(OnDevice, ApplyDirection) {
  for_each_step([](Step& s) {
    const std::vector<Tensor> outs = {s.w, s.weight};
    const Trial plain = step_trial("apply_direction", {{"weight_decay", 0.1}});
    compare_on_device(plain, {&s.w, &s.m, &s.finite}, outs);
    const Trial lamb = step_trial("apply_direction", {{"weight_decay", 0.1}, {"decay_in_direction", int64_t{1}}});
    for (const double norm : {31.0, 0.0}) {
      s.w_squares.fill(norm);
      compare_on_device(lamb, {&s.w, &s.m, &s.finite, &s.w_squares, &s.u_squares}, outs);
    }
    for (const double of_w : {1e-9, 500.0})
      for (const double of_u : {7.0, 1e5}) {
        s.w_squares.fill(of_w), s.u_squares.fill(of_u);
        const Trial adafactor =
            step_trial("apply_direction", {{"weight_decay", 0.1}, {"factor_clip", 1.0}, {"elements", s.w.elements()}});
        compare_on_device(adafactor, {&s.w, &s.m, &s.finite, &s.w_squares, &s.u_squares}, outs);
      }
  });
}

TEST(OnDevice, Lars) {
  for_each_step([](Step& s) {
    const Trial trial = step_trial("lars", {{"momentum", 0.9}, {"weight_decay", 0.1}, {"trust", 0.02}});
    const std::vector<Tensor> outs = {s.w, s.m, s.weight};
    compare_on_device(trial, {&s.w, &s.g, &s.m, &s.factor, &s.finite, &s.w_squares, &s.u_squares}, outs);
    compare_on_device(trial, {&s.w, &s.g, &s.m, &s.factor, &s.finite}, outs);
  });
}

TEST(OnDevice, MuonMomentum) {
  for_each_step([](Step& s) {
    compare_on_device(step_trial("muon_momentum", {{"momentum", 0.95}}), {&s.g, &s.m, &s.factor, &s.finite},
                      {s.m, s.w});
  });
}

TEST(OnDevice, MovingAverage) {
  for_each_step([](Step& s) {
    compare_on_device(step_trial("moving_average", {{"ema_decay", 0.99}}), {&s.m, &s.g, &s.finite}, {s.m});
  });
}

TEST(OnDevice, UnfactoredDirection) {
  for_each_step([](Step& s) {
    s.g.set(0, 0);
    compare_on_device(step_trial("unfactored_direction", {{"factor_decay", 0.8}}),
                      {&s.g, &s.v, &s.factor, &s.finite, &s.updates}, {s.v, s.w});
  });
}

// Matrices with rows in several chunks, batches, vectors of one row, and moments that a product would lose.
TEST(OnDevice, FactoredMoments) {
  struct Case {
    Shape shape, r, c;
    int64_t batch, rows;
  };
  for (const Case& c : {Case{{{"embed", 1100}, {"ffn", 37}}, {{"embed", 1100}}, {{"ffn", 37}}, 0, 1},
                        {{{"expert", 3}, {"a", 4}, {"b", 5}, {"c", 70}},
                         {{"expert", 3}, {"a", 4}, {"b", 5}},
                         {{"expert", 3}, {"c", 70}},
                         1,
                         2},
                        {{{"embed", 1}, {"ffn", 3}}, {{"embed", 1}}, {{"ffn", 3}}, 0, 1}})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const double size : {1.0, 1e-12}) {
        Tensor g = random_tensor(c.shape, dtype, 1, -size, size), r = random_tensor(c.r, DType::f32, 2, 0, size * size),
               of_columns = random_tensor(c.c, DType::f32, 3, 0, size * size);
        g.set(0, 0);
        Tensor factor = filled({}, DType::f64, 0.3), updates = filled({}, DType::f64, 6);
        int64_t matrices = 1;
        for (int64_t d = 0; d < c.batch; ++d) matrices *= c.shape[static_cast<size_t>(d)].size;
        const int64_t rows = c.r.elements() / matrices, columns = c.c.elements() / matrices;
        const Attributes attributes = {{"matrix_batch", c.batch},
                                       {"matrix_rows", c.rows},
                                       {"rows", rows},
                                       {"columns", columns},
                                       {"factor_decay", 0.8}};
        Tensor row_sums(c.r, DType::f32), column_sums(c.c, DType::f32);
        const DeviceTolerance close = {2e-5, 0};
        compare_on_device({.kind = "factored_sums", .attributes = attributes}, {&g, &factor}, {row_sums, column_sums},
                          close);
        run_on_device({.kind = "factored_sums", .attributes = attributes}, {&g, &factor}, {&row_sums, &column_sums});
        std::vector<double> sums(static_cast<size_t>(matrices), 0.0);
        for (int64_t i = 0; i < r.elements(); ++i) sums[static_cast<size_t>(i / rows)] += r.get(i);
        const std::vector<tensor::Dim> batch(c.shape.begin(), c.shape.begin() + c.batch);
        Tensor r_sum(Shape(batch), DType::f32, sums);
        for (const double is_finite : {1.0, 0.0}) {
          Tensor finite = filled({}, DType::f64, is_finite);
          compare_on_device({.kind = "factored_moments", .attributes = attributes},
                            {&r, &of_columns, &row_sums, &column_sums, &finite, &updates}, {r, of_columns}, close);
          compare_on_device({.kind = "factored_direction", .attributes = attributes},
                            {&g, &r, &of_columns, &r_sum, &factor, &finite}, {Tensor(c.shape, DType::f32)});
        }
      }
}

// Wide and tall matrices, batches, a single row, and zeros.
TEST(OnDevice, Orthogonalize) {
  struct Case {
    Shape shape;
    int64_t batch, rows;
  };
  for (const Case& c : {Case{{{"embed", 12}, {"ffn", 33}}, 0, 1},
                        {{{"embed", 40}, {"heads", 2}, {"head_dim", 9}}, 0, 1},
                        {{{"expert", 3}, {"embed", 17}, {"ffn", 8}}, 1, 1},
                        {{{"embed", 1}, {"ffn", 20}}, 0, 1},
                        {{{"embed", 130}, {"ffn", 129}}, 0, 1}})
    for (const std::string scale : {"rms", "shape"}) {
      Tensor u = random_tensor(c.shape, DType::f32, 1);
      const Attributes attributes = {{"matrix_batch", c.batch}, {"matrix_rows", c.rows}, {"muon_scale", scale}};
      compare_on_device({.kind = "orthogonalize", .attributes = attributes}, {&u}, {Tensor(c.shape, DType::f32)},
                        {1e-4, 1e-4});
      u.fill(0);
      compare_on_device({.kind = "orthogonalize", .attributes = attributes}, {&u}, {Tensor(c.shape, DType::f32)});
    }
}

// Four weights of a bucket with elements of none between them: whole, cut in its columns with padding, and one whose
// block begins before the operands.
std::vector<StatePlace> places_in_bucket(int64_t shift) {
  return {
      {.key = name_hash("c"), .first = 300 + shift, .index = {DimIndex({{2, 4}}, 9), DimIndex({{3, 4}, {-1, 1}}, 11)}},
      {.key = name_hash("a"), .first = -12, .index = {DimIndex(8), DimIndex(4)}},
      {.key = name_hash("b"), .first = 20 + shift, .index = {DimIndex({{1, 2}}, 6), DimIndex({{0, 40}}, 40)}},
      {.key = name_hash("e"), .first = 500 + shift, .index = {DimIndex({{5, 1000}}, 2000)}}};
}

// The share of elements that differ.
double apart(const Tensor& a, const Tensor& b) {
  double count = 0;
  for (int64_t i = 0; i < a.elements(); ++i) count += a.get(i) != b.get(i);
  return count / static_cast<double>(a.elements());
}

TEST(OnDevice, Adamw16HasTheRandomNumbersOfTheProcessor) {
  for (const DType gradient : {DType::f32, DType::bf16})
    for (const int64_t shift : {0, 3})
      for (const double finite : {1.0, 0.0})
        for (const int64_t size : {1, 1299}) {
          Step s(Shape({{"flat", size}}), gradient, finite);
          Trial trial =
              step_trial("adamw16", {{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}});
          trial.numbers.seed = 5, trial.numbers.step = 70;
          if (size > 1) trial.places = places_in_bucket(shift);
          Tensor m = s.m.as(DType::bf16), v = s.v.as(DType::bf16);
          const std::vector<Tensor*> ins = {&s.w, &s.g, &m, &v, &s.factor, &s.finite, &s.updates};
          compare_on_device(trial, ins, {s.w, m, v, s.weight});
          Tensor w = s.w, got_m = m, got_v = v, want_w = s.w, want_m = m, want_v = v;
          run_on_device(trial, ins, {&w, &got_m, &got_v});
          run_kernel(*reference_kernels(), trial, ins, {&want_w, &want_m, &want_v});
          EXPECT_LE(apart(got_m, want_m), 0.005);
          EXPECT_LE(apart(got_v, want_v), 0.005);
          if (size == 1 || finite == 0) continue;
          trial.numbers.step = 71;  // other numbers
          run_on_device(trial, ins, {&w, &got_m, &got_v});
          EXPECT_GE(apart(got_m, want_m), 0.2);
        }
}

// Codes are those of the reference, and so is each number of a code.
TEST(OnDevice, Adamw8HasTheCodesOfTheProcessor) {
  constexpr int64_t kBlock = tensor::kStateBlock;
  for (const DType gradient : {DType::f32, DType::bf16})
    for (const double finite : {1.0, 0.0})
      for (const int64_t size : {int64_t{1}, kBlock, 5 * kBlock + 77}) {
        Step s(Shape({{"flat", size}}), gradient, finite);
        const Shape blocks({{"block", (size + kBlock - 1) / kBlock}});
        const Trial trial =
            step_trial("adamw8", {{"beta1", 0.9}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"weight_decay", 0.1}});
        Tensor m(s.w.type().shape, DType::u8), v(s.w.type().shape, DType::u8);
        for (int64_t i = 0; i < size; ++i) {
          m.set(i, static_cast<double>(i % 256)), v.set(i, static_cast<double>((i * 7) % 256));
          if (i % 3 == 0) s.g.set(i, 0);
        }
        Tensor m_scale = random_tensor(blocks, DType::f32, 7, 0.1, 1),
               v_scale = random_tensor(blocks, DType::f32, 8, 0.1, 1);
        const std::vector<Tensor*> ins = {&s.w, &s.g, &m, &v, &m_scale, &v_scale, &s.factor, &s.finite, &s.updates};
        Tensor want_w = s.w, want_m = m, want_v = v, want_ms = m_scale, want_vs = v_scale, want(s.weight);
        run_kernel(*reference_kernels(), trial, ins, {&want_w, &want_m, &want_v, &want_ms, &want_vs, &want});
        for (const int warp : {32, 64})
          for (const int64_t shift : {0, 1}) {
            device::emulate::set_warp(warp);
            Tensor w = s.w, got_m = m, got_v = v, ms = m_scale, vs = v_scale, weight(s.weight);
            run_on_device(trial, ins, {&w, &got_m, &got_v, &ms, &vs, &weight}, shift);
            expect_close(w, want_w, 2e-5, 2e-5), expect_close(ms, want_ms, 2e-6, 0), expect_close(vs, want_vs, 2e-6, 0);
            expect_close(weight, want, 1.0 / 128, 0);
            EXPECT_LE(apart(got_m, want_m), 0.005);
            EXPECT_LE(apart(got_v, want_v), 0.005);
          }
        device::emulate::set_warp(32);
      }
}

// A gradient that makes each moment a multiple of the block's largest: every code and every middle, from both sides.
TEST(OnDevice, Adamw8TakesTheNearestCode) {
  for (const bool of_m : {true, false}) {
    const DynamicCodes& codes = of_m ? signed_codes() : unsigned_codes();
    constexpr int64_t kBlock = tensor::kStateBlock;
    std::vector<double> numbers;
    for (int code = 0; code < 256; ++code) numbers.push_back(codes.number(static_cast<uint8_t>(code)));
    std::ranges::sort(numbers);
    std::vector<double> wanted = numbers;
    for (size_t i = 0; i + 1 < numbers.size(); ++i)
      for (const double by : {0.4999, 0.5001}) wanted.push_back(numbers[i] + by * (numbers[i + 1] - numbers[i]));
    std::vector<double> g;
    for (const double x : wanted) {
      if (g.size() % kBlock == 0) g.push_back(1);
      g.push_back(of_m ? x : std::sqrt(x));
    }
    const Shape flat({{"flat", static_cast<int64_t>(g.size())}}),
        blocks({{"block", (flat[0].size + kBlock - 1) / kBlock}});
    Tensor w = filled(flat, DType::f32, 0), gradient(flat, DType::f32, g), m = filled(flat, DType::u8, 0), v = m,
           m_scale = filled(blocks, DType::f32, 0), v_scale = m_scale;
    Tensor factor = filled({}, DType::f64, 1), finite = filled({}, DType::f64, 1), updates = filled({}, DType::f64, 0);
    const Trial trial =
        step_trial("adamw8", {{"beta1", 0.0}, {"beta2", 0.0}, {"epsilon", 1e-8}, {"weight_decay", 0.0}});
    run_on_device(trial, {&w, &gradient, &m, &v, &m_scale, &v_scale, &factor, &finite, &updates},
                  {&w, &m, &v, &m_scale, &v_scale});
    const Tensor& got = of_m ? m : v;
    for (int64_t i = 0; i < got.elements(); ++i) {
      const double x = of_m ? gradient.get(i) : gradient.get(i) * gradient.get(i);
      EXPECT_EQ(got.get(i), codes.nearest(static_cast<float>(x))) << of_m << " " << x;
    }
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test
