#include <fmt/format.h>

#include "kintsugi/kernels/cpu/compare_test.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::images_test {
namespace {

using namespace test;
using tensor::DimWindow;
using tensor::Window;

constexpr std::string_view kNames[] = {"depth", "height", "width"};

// Sizes and windows of the last dims of kNames.
struct Case {
  int64_t batch, channels, filters;
  std::vector<std::pair<int64_t, Window>> dims;
  int64_t groups = 1;
};

struct Shapes {
  Attributes attributes;
  Shape x, w, y, pooled;
};

Shapes shapes_of(const Case& c) {
  std::vector<DimWindow> windows;
  std::vector<tensor::Dim> x = {{"batch", c.batch}}, w, y = {{"batch", c.batch}};
  for (size_t i = 0; i < c.dims.size(); ++i) {
    const std::string name(kNames[i + std::size(kNames) - c.dims.size()]);
    const auto& [size, window] = c.dims[i];
    windows.push_back({name, window});
    x.push_back({name, size});
    w.push_back({tensor::kernel_dim(name), window.kernel});
    y.push_back({name, window.outputs(size)});
  }
  std::vector<tensor::Dim> pooled = y;
  x.push_back({"channel", c.channels});
  pooled.push_back({"channel", c.channels});
  w.insert(w.end(), {{c.groups > 1 ? "group_channel" : "channel", c.channels / c.groups}, {"filter", c.filters}});
  y.push_back({"filter", c.filters});
  Shapes s = {{}, Shape(x), Shape(w), Shape(y), Shape(pooled)};
  if (c.groups > 1) s.attributes.set("groups", c.groups);
  tensor::set_windows(s.attributes, windows);
  return s;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {5, 3, 6, {{12, {.kernel = 5}}, {11, {.kernel = 5}}}},
      {3, 6, 16, {{9, {.kernel = 3, .low = 1, .high = 1}}, {8, {.kernel = 3, .low = 1, .high = 1}}}},
      {1, 8, 8, {{9, {.kernel = 3, .stride = 2, .low = 1, .high = 1}}, {8, {.kernel = 3, .stride = 2, .low = 1}}}},
      {2, 16, 5, {{8, {.kernel = 1, .stride = 2}}, {7, {.kernel = 1, .stride = 2}}}},
      {2, 4, 9, {{9, {.kernel = 2, .dilation = 3}}, {7, {.kernel = 4, .stride = 3}}}},
      {4, 5, 7, {{15, {.kernel = 3, .stride = 2, .low = 2}}}},
      {2, 3, 4, {{5, {.kernel = 3, .low = 1, .high = 1}}, {4, {.kernel = 2}}, {6, {.kernel = 3, .stride = 3}}}},
      {3, 8, 16, {{6, {.kernel = 3, .low = 1, .high = 1}}, {6, {.kernel = 3, .low = 1, .high = 1}}}, 4},
      {2, 6, 6, {{7, {.kernel = 3, .low = 1, .high = 1}}, {7, {.kernel = 3, .low = 1, .high = 1}}}, 6},
  };
  return list;
}

}  // namespace

TEST(CpuConvolution, AsTheReference) {
  for (const Case& c : cases()) {
    const Shapes s = shapes_of(c);
    SCOPED_TRACE(to_string(s.x) + " " + to_string(s.w) + " " + to_string(s.attributes));
    for (DType dtype : kFastTypes)
      for (int threads : {1, 2, 3}) {
        Tensor x = random_tensor(s.x, dtype, 1), w = random_tensor(s.w, dtype, 2), dy = random_tensor(s.y, dtype, 3);
        const auto trial = [&](const char* kind, uint32_t accumulate = 0) {
          return Trial{.kind = kind, .attributes = s.attributes, .accumulate = accumulate, .threads = threads};
        };
        compare(trial("convolution"), {&x, &w}, {Tensor(s.y, dtype)}, {1e-5, 1e-4});
        compare(trial("convolution_grad_input"), {&dy, &w}, {Tensor(s.x, dtype)}, {1e-5, 1e-4});
        compare(trial("convolution_grad_weight"), {&x, &dy}, {Tensor(s.w, DType::f32)}, {1e-5, 1e-4});
        compare(trial("convolution_grad_weight", 1), {&x, &dy}, {random_tensor(s.w, DType::f32, 4)}, {1e-5, 1e-4});
      }
  }
}

// The last two: groups of several channels, and more rows than are gathered at once.
TEST(CpuConvolution, OfFp64) {
  const Window padded = {.kernel = 3, .low = 1, .high = 1};
  std::vector<Case> list = cases();
  list.push_back({3, 8, 16, {{6, padded}, {6, {.kernel = 3, .stride = 2, .low = 1, .high = 1}}}, 2});
  list.push_back({2, 200, 4, {{17, padded}, {19, padded}}});
  for (const Case& c : list) {
    const Shapes s = shapes_of(c);
    SCOPED_TRACE(to_string(s.x) + " " + to_string(s.w) + " " + to_string(s.attributes));
    Tensor x = random_tensor(s.x, DType::f64, 1), w = random_tensor(s.w, DType::f64, 2),
           dy = random_tensor(s.y, DType::f64, 3);
    for (int threads : {1, 3})
      for (uint32_t accumulate : {0u, 1u}) {
        const auto trial = [&](const char* kind, bool may_add = true) {
          return Trial{
              .kind = kind, .attributes = s.attributes, .accumulate = may_add ? accumulate : 0, .threads = threads};
        };
        compare(trial("convolution", false), {&x, &w}, {Tensor(s.y, DType::f64)}, {1e-13, 1e-12});
        compare(trial("convolution_grad_input"), {&dy, &w}, {random_tensor(s.x, DType::f64, 4)}, {1e-13, 1e-12});
        compare(trial("convolution_grad_weight"), {&x, &dy}, {random_tensor(s.w, DType::f64, 4)}, {1e-13, 1e-12});
      }
  }
}

TEST(CpuConvolution, SameBitsAgain) {
  const Shapes s = shapes_of(cases()[1]);
  static const auto cpu = cpu_kernels();
  Tensor x = random_tensor(s.x, DType::f32, 1), dy = random_tensor(s.y, DType::f32, 3), first(s.w, DType::f32),
         second(s.w, DType::f32);
  const Trial trial = {.kind = "convolution_grad_weight", .attributes = s.attributes, .threads = 2};
  run_kernel(*cpu, trial, {&x, &dy}, {&first});
  run_kernel(*cpu, trial, {&x, &dy}, {&second});
  expect_close(first, second, 0, 0);
}

// Windows of 3 x 3 with many channels: Winograd's algorithm. The last case has several blocks of tiles per thread.
TEST(CpuWinograd, AsTheReference) {
  with_each_target([] {
    const std::vector<Case> list = {
        {3, 20, 17, {{7, {.kernel = 3, .low = 1, .high = 1}}, {6, {.kernel = 3, .low = 1, .high = 1}}}},
        {2, 16, 33, {{5, {.kernel = 3}}, {4, {.kernel = 3, .low = 2, .high = 1}}}},
        {1, 16, 16, {{1, {.kernel = 3, .low = 1, .high = 1}}, {3, {.kernel = 3}}}},
        {4, 16, 16, {{24, {.kernel = 3, .low = 1, .high = 1}}, {30, {.kernel = 3, .low = 1, .high = 1}}}},
    };
    for (const Case& c : list) {
      const Shapes s = shapes_of(c);
      SCOPED_TRACE(to_string(s.x) + " " + to_string(s.w) + " " + to_string(s.attributes));
      const bool large = s.x.elements() > 10000;
      for (DType dtype : kFastTypes)
        for (int threads : {1, 3}) {
          if (large && (dtype != DType::f32 || threads > 1)) continue;
          Tensor x = random_tensor(s.x, dtype, 1), w = random_tensor(s.w, dtype, 2), dy = random_tensor(s.y, dtype, 3);
          const auto trial = [&](const char* kind, uint32_t accumulate = 0) {
            return Trial{.kind = kind, .attributes = s.attributes, .accumulate = accumulate, .threads = threads};
          };
          compare(trial("convolution"), {&x, &w}, {Tensor(s.y, dtype)}, {1e-5, 1e-4});
          compare(trial("convolution_grad_input"), {&dy, &w}, {Tensor(s.x, dtype)}, {1e-5, 1e-4});
          compare(trial("convolution_grad_weight"), {&x, &dy}, {Tensor(s.w, DType::f32)}, {1e-5, 1e-3});
          compare(trial("convolution_grad_weight", 1), {&x, &dy}, {random_tensor(s.w, DType::f32, 4)}, {1e-5, 1e-3});
        }
    }
  });
}

// Rows 3 to 6, or 4 to 7, of 9, computed by another rank.
TEST(CpuWinograd, BitsOfAnyBlock) {
  static const auto cpu = cpu_kernels();
  const Window padded = {.kernel = 3, .low = 1, .high = 1};
  const Shapes s = shapes_of({2, 20, 18, {{9, padded}, {7, padded}}}),
               part = shapes_of({2, 20, 18, {{6, {.kernel = 3}}, {7, padded}}});
  Tensor x = random_tensor(s.x, DType::f32, 1), w = random_tensor(s.w, DType::f32, 2), y(s.y, DType::f32);
  run_kernel(*cpu, {.kind = "convolution", .attributes = s.attributes}, {&x, &w}, {&y});
  for (const int64_t first : {3, 4}) {
    Tensor block(part.x, DType::f32), found(part.y, DType::f32);
    const auto rows = [](Tensor& from, int64_t row, Tensor& to) {
      const int64_t image = from.elements() / 2, mine = to.elements() / 2, size = image / 9;
      for (int64_t i = 0; i < 2 * mine; ++i) to.set(i, from.get(i / mine * image + row * size + i % mine));
    };
    rows(x, first - 1, block);
    const std::vector<NamedIndex> indices = {{"height", tensor::DimIndex({{first, 4}}, 9)},
                                             {"height", tensor::DimIndex({{first - 1, 6}}, 9), true}};
    const Trial trial = {.kind = "convolution", .attributes = part.attributes, .indices = indices};
    run_kernel(*cpu, trial, {&block, &w}, {&found});
    Tensor want(part.y, DType::f32);
    rows(y, first, want);
    expect_close(found, want, 0, 0);
  }
}

namespace {

// Rows of the first spatial dim, of each sample.
template <typename F>
void for_rows(Tensor& t, const F& f) {
  const int64_t rows = t.type().shape[1].size, row = t.type().shape.stride(1);
  for (int64_t i = 0; i < t.elements(); ++i) f(i, i / row % rows);
}

// The output in two calls, of rows [begin, end) and of the others. The first finds NaN in the rows of x that its
// windows do not cover, and neither changes what the other computes.
// first: the index of the first row of y in the whole image.
void check_parts(const KernelSet& set, const Case& c, int64_t begin, int64_t end, DType dtype, int threads,
                 double tolerance, int64_t first = 0) {
  const Shapes s = shapes_of(c);
  const Window& w = c.dims[0].second;
  SCOPED_TRACE(fmt::format("{} {} {} {} rows {} to {}, {} threads", set.name(), to_string(s.x), to_string(s.attributes),
                           name_of(dtype), begin, end, threads));
  Tensor x = random_tensor(s.x, dtype, 1), weights = random_tensor(s.w, dtype, 2), whole(s.y, dtype), y(s.y, dtype);
  const std::string dim = tensor::windows_of(s.attributes)[0].dim;
  Trial trial = {.kind = "convolution", .attributes = s.attributes, .threads = threads};
  trial.indices = {{dim, tensor::DimIndex({{first, s.y[1].size}}, 99)},
                   {dim, tensor::DimIndex({{first, s.x[1].size}}, 99), true}};
  run_kernel(set, trial, {&x, &weights}, {&whole});
  Tensor inner_x = x;
  for_rows(inner_x, [&](int64_t i, int64_t row) {
    if (row < begin * w.stride - w.low || row >= (end - 1) * w.stride - w.low + w.extent()) inner_x.set(i, NAN);
  });
  tensor::OutputPart part = {.dim = dim, .begin = begin, .end = end};
  tensor::set_output_part(trial.attributes, part);
  run_kernel(set, trial, {&inner_x, &weights}, {&y});
  for_rows(y, [&](int64_t i, int64_t row) { EXPECT_EQ(std::isnan(y.get(i)), row < begin || row >= end); });
  part.outer = true;
  tensor::set_output_part(trial.attributes, part);
  const Tensor before = y;
  run_kernel(set, trial, {&x, &weights}, {&y});
  for_rows(y, [&](int64_t i, int64_t row) {
    if (row >= begin && row < end) {
      EXPECT_EQ(y.get(i), before.get(i));
    }
  });
  expect_close(y, whole, tolerance + (tolerance > 0 ? unit_of(dtype) : 0), tolerance);
}

}  // namespace

TEST(CpuConvolution, InParts) {
  static const auto cpu = cpu_kernels(), reference = reference_kernels();
  for (const Case& c : cases()) {
    const int64_t rows = shapes_of(c).y[1].size;
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{1, rows - 1}, {0, rows - 2}, {2, rows}}) {
      if (begin >= end) continue;
      for (DType dtype : kFastTypes)
        for (int threads : {1, 3}) check_parts(*cpu, c, begin, end, dtype, threads, 1e-5);
      for (int threads : {1, 3}) check_parts(*cpu, c, begin, end, DType::f64, threads, 0);
      check_parts(*reference, c, begin, end, DType::f64, 1, 0);
    }
  }
}

// The same bits.
TEST(CpuWinograd, InParts) {
  static const auto cpu = cpu_kernels();
  const Window padded = {.kernel = 3, .low = 1, .high = 1};
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{2, 10}, {1, 12}, {0, 11}, {3, 6}})
    for (DType dtype : kFastTypes)
      for (int threads : {1, 3})
        for (int64_t first : {0, 7})
          check_parts(*cpu, {3, 20, 17, {{12, padded}, {5, padded}}}, begin, end, dtype, threads, 0, first);
}

TEST(CpuPool, AsTheReference) {
  with_each_target([] {
    for (const Case& c : cases()) {
      const Shapes s = shapes_of(c);
      SCOPED_TRACE(to_string(s.x) + " " + to_string(s.attributes));
      for (DType dtype : kFastTypes)
        for (int64_t exclude : {0, 1}) {
          Tensor x = random_tensor(s.x, dtype, 1), dy = random_tensor(s.pooled, dtype, 3);
          Attributes attributes = s.attributes;
          attributes.set("exclude_padding", exclude);
          const auto trial = [&](const char* kind) {
            return Trial{.kind = kind, .attributes = attributes, .threads = 2};
          };
          compare(trial("max_pool"), {&x}, {Tensor(s.pooled, dtype)});
          compare(trial("max_pool_grad"), {&x, &dy}, {Tensor(s.x, dtype)});
          compare(trial("average_pool"), {&x}, {Tensor(s.pooled, dtype)});
          compare(trial("average_pool_grad"), {&dy}, {Tensor(s.x, dtype)});
        }
    }
  });
}

// Equal elements, a NaN, and absent positions.
TEST(CpuPool, EqualAndAbsentElements) {
  with_each_target([] {
    const Shape x_shape = {{"batch", 1}, {"height", 6}, {"channel", 3}},
                y_shape = {{"batch", 1}, {"height", 3}, {"channel", 3}};
    Attributes attributes = {{"exclude_padding", int64_t{1}}};
    tensor::set_windows(attributes, {{"height", {.kernel = 2, .stride = 2}}});
    Tensor x(x_shape, DType::f32, {0, 0, 0, -1, -2, -3, 2, 2, NAN, 2, 3, 1, 4, NAN, 5, 5, 1, 5}),
        dy = random_tensor(y_shape, DType::f32, 3);
    const std::vector<NamedIndex> indices = {{"height", tensor::DimIndex({{0, 3}}, 3)},
                                             {"height", tensor::DimIndex({{-1, 1}, {0, 5}}, 5), true}};
    compare({.kind = "max_pool", .attributes = attributes, .indices = indices}, {&x}, {Tensor(y_shape, DType::f32)});
    compare({.kind = "max_pool_grad", .attributes = attributes, .indices = indices}, {&x, &dy},
            {Tensor(x_shape, DType::f32)});
    compare({.kind = "average_pool_grad", .attributes = attributes, .indices = indices}, {&dy},
            {Tensor(x_shape, DType::f32)});
  });
}

TEST(CpuBatchNorm, AsTheReference) {
  with_each_target([] {
    for (int64_t channels : {1, 6, 19})
      for (DType dtype : kFastTypes)
        for (int threads : {1, 2}) {
          const Shape x_shape = {{"batch", 5}, {"height", 7}, {"width", 3}, {"channel", channels}},
                      channel = {{"channel", channels}}, moments = {{"moment", 2}, {"channel", channels}};
          Tensor x = random_tensor(x_shape, dtype, 1, 1, 3), dy = random_tensor(x_shape, dtype, 2),
                 gamma = random_tensor(channel, dtype, 3), beta = random_tensor(channel, dtype, 4),
                 statistics(moments, DType::f64), mean = random_tensor(channel, DType::f32, 5),
                 variance = random_tensor(channel, DType::f32, 6, 0.5, 1.5);
          const Attributes attributes = {{"epsilon", 1e-5}, {"count", int64_t{5 * 7 * 3}}};
          const auto trial = [&](const char* kind, uint32_t accumulate = 0) {
            return Trial{.kind = kind, .attributes = attributes, .accumulate = accumulate, .threads = threads};
          };
          compare(trial("batch_statistics"), {&x}, {statistics});
          run_kernel(*reference_kernels(), trial("batch_statistics"), {&x}, {&statistics});
          compare(trial("batch_norm"), {&x, &gamma, &beta, &statistics}, {Tensor(x_shape, dtype)}, {1e-4, 1e-4});
          compare(trial("batch_norm"), {&x, &gamma, &beta, nullptr, &mean, &variance}, {Tensor(x_shape, dtype)},
                  {1e-4, 1e-4});
          Tensor added = random_tensor(x_shape, dtype, 9);
          Attributes with_relu = attributes;
          with_relu.set("epilogue", "relu");
          for (const Attributes& of : {attributes, with_relu})
            for (Tensor* other : {static_cast<Tensor*>(nullptr), &added})
              compare({.kind = "batch_norm", .attributes = of, .threads = threads},
                      {&x, &gamma, &beta, &statistics, nullptr, nullptr, other}, {Tensor(x_shape, dtype)},
                      {1e-4, 1e-4});
          const std::vector<Tensor> sums = {random_tensor(channel, DType::f32, 7),
                                            random_tensor(channel, DType::f32, 8)};
          compare(trial("batch_norm_sums"), {&x, &statistics, &dy}, sums, {1e-4, 1e-4});
          compare(trial("batch_norm_sums", 3), {&x, &statistics, &dy}, sums, {1e-4, 1e-4});
          Tensor dgamma = sums[0], dbeta = sums[1];
          compare(trial("batch_norm_grad"), {&x, &gamma, &statistics, &dgamma, &dbeta, &dy}, {Tensor(x_shape, dtype)},
                  {1e-4, 1e-4});
        }
  });
}

TEST(CpuBatchNorm, GroupsAsTheReference) {
  with_each_target([] {
    for (int64_t groups : {1, 3, 6})
      for (DType dtype : kFastTypes)
        for (int threads : {1, 2}) {
          const Shape x_shape = {{"batch", 6}, {"height", 7}, {"width", 3}, {"channel", 19}},
                      channel = {{"channel", 19}}, of_groups = {{"batch_group", groups}, {"channel", 19}};
          Tensor x = random_tensor(x_shape, dtype, 1, 1, 3), dy = random_tensor(x_shape, dtype, 2),
                 gamma = random_tensor(channel, dtype, 3), beta = random_tensor(channel, dtype, 4),
                 added = random_tensor(x_shape, dtype, 5),
                 statistics({{"batch_group", groups}, {"moment", 2}, {"channel", 19}}, DType::f64);
          Attributes attributes = {
              {"epsilon", 1e-5}, {"count", 6 / groups * 7 * 3}, {"samples", 6 / groups}, {"epilogue", "relu"}};
          const auto trial = [&](const char* kind, uint32_t accumulate = 0) {
            return Trial{.kind = kind, .attributes = attributes, .accumulate = accumulate, .threads = threads};
          };
          compare(trial("batch_statistics"), {&x}, {statistics});
          run_kernel(*reference_kernels(), trial("batch_statistics"), {&x}, {&statistics});
          compare(trial("batch_norm"), {&x, &gamma, &beta, &statistics, nullptr, nullptr, &added},
                  {Tensor(x_shape, dtype)}, {1e-4, 1e-4});
          Tensor dgamma = random_tensor(of_groups, DType::f32, 7), dbeta = random_tensor(of_groups, DType::f32, 8);
          compare(trial("batch_norm_sums"), {&x, &statistics, &dy}, {dgamma, dbeta}, {1e-4, 1e-4});
          compare(trial("batch_norm_sums", 3), {&x, &statistics, &dy}, {dgamma, dbeta}, {1e-4, 1e-4});
          compare(trial("batch_norm_grad"), {&x, &gamma, &statistics, &dgamma, &dbeta, &dy}, {Tensor(x_shape, dtype)},
                  {1e-4, 1e-4});
        }
  });
}

TEST(CpuPixels, AsTheReference) {
  const Shape x_shape = {{"batch", 3}, {"channel", 3}, {"height", 5}, {"width", 4}},
              y_shape = {{"batch", 3}, {"height", 5}, {"width", 4}, {"channel", 3}};
  const Attributes attributes = {{"mean", "0.4 0.5 0.6"}, {"deviation", "0.25"}, {"dtype", "fp32"}};
  Tensor bytes(x_shape, DType::u8), numbers = random_tensor(x_shape, DType::f32, 1);
  for (int64_t i = 0; i < bytes.elements(); ++i) bytes.set(i, static_cast<double>(i * 37 % 256));
  for (Tensor* x : {&bytes, &numbers})
    compare({.kind = "pixels", .attributes = attributes, .threads = 2}, {x}, {Tensor(y_shape, DType::f32)});
  Tensor y(y_shape, DType::f32);
  run_kernel(*reference_kernels(), {.kind = "pixels", .attributes = attributes}, {&bytes}, {&y});
  EXPECT_NEAR(y.get(1), (bytes.get(20) / 255 - 0.5) / 0.25, 1e-6);  // the second channel of the first pixel
}

}  // namespace kintsugi::kernels::images_test
