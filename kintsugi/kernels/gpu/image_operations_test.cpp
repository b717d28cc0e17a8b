// Pools, resampling, norms over batches and groups, and what else only networks of images contain.
#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::device_images_test {
namespace {

using namespace test;
using tensor::Window;

// Channels that can be read 16 bytes at a time, and that cannot.
const std::vector<int64_t> kChannels = {16, 5};

Shape image(int64_t height, int64_t width, int64_t channels) {
  return {{"batch", 2}, {"height", height}, {"width", width}, {"channel", channels}};
}

// A block whose first and last rows are outside of the whole.
std::vector<NamedIndex> rows_within(int64_t rows) {
  return {{"height", DimIndex({{-1, 1}, {0, rows - 3}, {-1, 2}}, rows - 3), true}};
}

void set_windows(Attributes& attributes, const Window& height, const Window& width) {
  tensor::set_windows(attributes, {{"height", height}, {"width", width}});
}

TEST(OnDevice, Pools) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t channels : kChannels)
      for (const auto& [height, width] : std::vector<std::pair<Window, Window>>{
               {{.kernel = 2, .stride = 2}, {.kernel = 2, .stride = 2}},
               {{.kernel = 3, .stride = 2, .low = 1, .high = 1}, {.kernel = 3, .stride = 1, .dilation = 2, .low = 1}},
               {{.kernel = 3}, {.kernel = 4, .stride = 3, .low = 2, .high = 2}}}) {
        const int64_t rows = 7, columns = 6;
        Tensor x = random_tensor(image(rows, columns, channels), dtype, 1);
        for (int64_t i = 0; i < x.elements(); i += 3) x.set(i, std::round(x.get(i)));  // equal ones
        const Shape y = image(height.outputs(rows), width.outputs(columns), channels);
        Tensor dy = random_tensor(y, dtype, 2);
        for (const bool split : {false, true}) {
          if (split && height.low + height.high > 0) continue;
          const std::vector<NamedIndex> indices = split ? rows_within(rows) : std::vector<NamedIndex>();
          for (const int64_t excludes : {0, 1}) {
            Attributes attributes = {{"exclude_padding", excludes}};
            set_windows(attributes, height, width);
            const auto trial = [&](const char* kind, uint32_t accumulate = 0) {
              return Trial{.kind = kind, .attributes = attributes, .indices = indices, .accumulate = accumulate};
            };
            compare_on_device(trial("average_pool"), {&x}, {Tensor(y, dtype)});
            compare_on_device(trial("average_pool_grad"), {&dy}, {Tensor(x.type())});
            if (excludes == 1) continue;
            compare_on_device(trial("max_pool"), {&x}, {Tensor(y, dtype)});
            compare_on_device(trial("max_pool_grad"), {&x, &dy}, {Tensor(x.type())});
            if (channels == kChannels[0]) compare_on_device(trial("max_pool_grad", 1), {&x, &dy}, {x});
          }
        }
      }
}

TEST(OnDevice, MaxPoolsOfNotANumberAndOfVolumes) {
  const Shape volume = {{"batch", 1}, {"depth", 4}, {"height", 5}, {"width", 4}, {"channel", 8}},
              pooled = {{"batch", 1}, {"depth", 2}, {"height", 2}, {"width", 2}, {"channel", 8}};
  Tensor x = random_tensor(volume, DType::f32, 1), dy = random_tensor(pooled, DType::f32, 2);
  for (const int64_t i : {3, 40, 41, 200}) x.set(i, std::numeric_limits<double>::quiet_NaN());
  Attributes attributes;
  tensor::set_windows(attributes, {{"depth", {.kernel = 2, .stride = 2}},
                                   {"height", {.kernel = 3, .stride = 2}},
                                   {"width", {.kernel = 2, .stride = 2}}});
  compare_on_device({.kind = "max_pool", .attributes = attributes}, {&x}, {Tensor(pooled, DType::f32)});
  compare_on_device({.kind = "max_pool_grad", .attributes = attributes}, {&x, &dy}, {Tensor(volume, DType::f32)});
  compare_on_device({.kind = "average_pool_grad", .attributes = attributes}, {&dy}, {Tensor(volume, DType::f32)});
}

TEST(OnDevice, AdaptivePools) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t channels : kChannels)
      for (const auto& [from, to] : std::vector<std::pair<std::array<int64_t, 2>, std::array<int64_t, 2>>>{
               {{7, 5}, {1, 1}}, {{3, 4}, {2, 6}}, {{5, 6}, {3, 2}}}) {
        const Shape small = {{"batch", 2}, {"to_height", to[0]}, {"to_width", to[1]}, {"channel", channels}};
        Tensor x = random_tensor(image(from[0], from[1], channels), dtype, 1), dy = random_tensor(small, dtype, 2);
        compare_on_device({.kind = "adaptive_pool"}, {&x}, {Tensor(small, dtype)});
        compare_on_device({.kind = "adaptive_pool_grad"}, {&dy}, {Tensor(x.type())});
      }
}

TEST(OnDevice, Upsampling) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t channels : kChannels)
      for (const bool linear : {false, true})
        for (const bool split : {false, true}) {
          Attributes attributes = {{"mode", linear ? "linear" : "nearest"},
                                   {"positions_height", int64_t{5}},
                                   {"positions_width", int64_t{4}}};
          // A block of rows 1 to 3 of 5, of which the windows of the longer value lack what other ranks have.
          const int64_t rows = 5, longer = 10;
          std::vector<NamedIndex> indices;
          Window height = {.kernel = 2, .stride = 2}, width = {.kernel = 3, .stride = 3};
          if (linear)
            height = {.kernel = 4, .stride = 2, .low = 1, .high = 1},
            width = {.kernel = 5, .stride = 3, .low = 1, .high = 1};
          if (split)
            indices = {{"height", DimIndex({{-1, 1}, {0, 3}, {-1, 1}}, 5)},
                       {"height", DimIndex({{-1, 2}, {0, 7}, {-1, 1}}, 10), true}};
          set_windows(attributes, height, width);
          Tensor x = random_tensor(image(rows, 4, channels), dtype, 1),
                 dy = random_tensor(image(longer, 12, channels), dtype, 2);
          compare_on_device({.kind = "upsample", .attributes = attributes, .indices = indices}, {&x},
                            {Tensor(dy.type())});
          compare_on_device({.kind = "upsample_grad", .attributes = attributes, .indices = indices}, {&dy},
                            {Tensor(x.type())});
        }
}

// Channels with means far from zero; the variance that follows from the statistics keeps its precision.
TEST(OnDevice, BatchStatistics) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t channels : {1, 5, 16, 72})
      for (const int64_t rows : {1, 7, 600}) {
        const Shape shape = {{"batch", rows}, {"channel", channels}};
        Tensor x = random_tensor(shape, dtype, 1);
        for (int64_t i = 0; i < x.elements(); ++i) x.set(i, 100 + 0.1 * static_cast<double>(i % channels) + x.get(i));
        const Tensor statistics({{"moment", 2}, {"channel", channels}}, DType::f64);
        compare_on_device({.kind = "batch_statistics"}, {&x}, {statistics}, {1e-9, 0});
        if (channels == 5)
          compare_on_device({.kind = "batch_statistics", .accumulate = 1}, {&x},
                            {filled(statistics.type().shape, DType::f64, 2)}, {1e-9, 0});
      }
}

struct BatchOf {
  Attributes attributes;
  Tensor x, dy, gamma, beta, statistics;

  BatchOf(const Shape& shape, DType dtype, DType weights, const Shape& sums, Attributes given)
      : attributes(std::move(given)),
        x(random_tensor(shape, dtype, 1, 1, 3)),
        dy(random_tensor(shape, dtype, 2)),
        gamma(random_tensor({shape[shape.rank() - 1]}, weights, 3)),
        beta(random_tensor({shape[shape.rank() - 1]}, weights, 4)),
        statistics(sums, DType::f64) {}
};

TEST(OnDevice, BatchNorms) {
  static const auto reference = reference_kernels();
  for (const DType dtype : kDeviceTypes)
    for (const int64_t channels : {5, 16, 40})
      for (const int64_t samples : {1, 9}) {
        const Shape shape = {{"batch", samples}, {"width", 30}, {"channel", channels}},
                    channel = {{"channel", channels}};
        BatchOf b(shape, dtype, channels == 5 ? dtype : DType::f32, {{"moment", 2}, {"channel", channels}},
                  {{"epsilon", 1e-5}, {"count", samples * 30}, {"momentum", 0.1}});
        run_kernel(*reference, {.kind = "batch_statistics"}, {&b.x}, {&b.statistics});
        Tensor mean = random_tensor(channel, DType::f32, 5, 1, 2),
               variance = random_tensor(channel, DType::f32, 6, 1, 2), added = random_tensor(shape, dtype, 7),
               dgamma = random_tensor(channel, DType::f32, 8, 0, 9),
               dbeta = random_tensor(channel, DType::f32, 9, 0, 9);
        const Tensor y(shape, dtype), of_channels(channel, DType::f32);
        const DeviceTolerance tolerance = {2e-5, 5e-5};
        Attributes relu = b.attributes;
        relu.set("epilogue", "relu");
        compare_on_device({.kind = "batch_norm", .attributes = b.attributes}, {&b.x, &b.gamma, &b.beta, &b.statistics},
                          {y}, tolerance);
        compare_on_device({.kind = "batch_norm", .attributes = relu},
                          {&b.x, &b.gamma, &b.beta, nullptr, &mean, &variance, &added}, {y}, tolerance);
        compare_on_device({.kind = "batch_norm_sums", .attributes = b.attributes}, {&b.x, &b.statistics, &b.dy},
                          {of_channels, of_channels}, {2e-5, 1e-4});
        compare_on_device({.kind = "batch_norm_sums", .attributes = b.attributes, .accumulate = 3},
                          {&b.x, &b.statistics, &b.dy}, {dgamma, dbeta}, {2e-5, 1e-4});
        compare_on_device({.kind = "batch_norm_grad", .attributes = b.attributes},
                          {&b.x, &b.gamma, &b.statistics, &dgamma, &dbeta, &b.dy}, {y}, tolerance);
        compare_on_device({.kind = "running_statistics", .attributes = b.attributes}, {&mean, &variance, &b.statistics},
                          {mean, variance}, {2e-7, 0});
      }
}

// Statistics of groups of samples; a group of many rows is summed in slices.
TEST(OnDevice, BatchNormsInGroups) {
  static const auto reference = reference_kernels();
  for (const DType dtype : kDeviceTypes)
    for (const int64_t channels : {5, 16})
      for (const auto& [samples, groups] : std::vector<std::pair<int64_t, int64_t>>{{4, 1}, {6, 3}, {4, 4}, {80, 2}}) {
        const Shape shape = {{"batch", samples}, {"width", 30}, {"channel", channels}},
                    channel = {{"channel", channels}}, of_groups = {{"batch_group", groups}, {"channel", channels}};
        BatchOf b(shape, dtype, channels == 5 ? dtype : DType::f32,
                  {{"batch_group", groups}, {"moment", 2}, {"channel", channels}},
                  {{"epsilon", 1e-5}, {"count", samples / groups * 30}, {"samples", samples / groups}});
        compare_on_device({.kind = "batch_statistics", .attributes = b.attributes}, {&b.x}, {b.statistics}, {1e-6, 0});
        run_kernel(*reference, {.kind = "batch_statistics", .attributes = b.attributes}, {&b.x}, {&b.statistics});
        Tensor added = random_tensor(shape, dtype, 7), dgamma = random_tensor(of_groups, DType::f32, 8, 0, 9),
               dbeta = random_tensor(of_groups, DType::f32, 9, 0, 9),
               mean = random_tensor(channel, DType::f32, 5, 1, 2),
               variance = random_tensor(channel, DType::f32, 6, 1, 2),
               moments({{"group_moment", 3}, {"channel", channels}}, DType::f64);
        const Tensor y(shape, dtype);
        const DeviceTolerance tolerance = {2e-5, 5e-5};
        Attributes relu = b.attributes;
        relu.set("epilogue", "relu");
        compare_on_device({.kind = "batch_norm", .attributes = relu},
                          {&b.x, &b.gamma, &b.beta, &b.statistics, nullptr, nullptr, &added}, {y}, tolerance);
        compare_on_device({.kind = "batch_norm_sums", .attributes = b.attributes}, {&b.x, &b.statistics, &b.dy},
                          {dgamma, dbeta}, {2e-5, 1e-4});
        compare_on_device({.kind = "batch_norm_sums", .attributes = b.attributes, .accumulate = 3},
                          {&b.x, &b.statistics, &b.dy}, {dgamma, dbeta}, {2e-5, 1e-4});
        compare_on_device({.kind = "batch_norm_grad", .attributes = b.attributes},
                          {&b.x, &b.gamma, &b.statistics, &dgamma, &dbeta, &b.dy}, {y}, tolerance);
        compare_on_device({.kind = "batch_moments", .attributes = b.attributes}, {&b.statistics}, {moments},
                          {1e-12, 0});
        run_kernel(*reference, {.kind = "batch_moments", .attributes = b.attributes}, {&b.statistics}, {&moments});
        if (groups == 3) {  // the last is padding
          for (int64_t i = 0; i < 2 * channels; ++i) b.statistics.set(4 * channels + i, 0);
          compare_on_device({.kind = "batch_moments",
                             .attributes = b.attributes,
                             .indices = {{"batch_group", DimIndex({{3, 2}, {-1, 1}}, 5)}}},
                            {&b.statistics}, {moments}, {1e-12, 0});
        }
        moments.set(2 * channels, 0);  // padding
        compare_on_device({.kind = "running_moments", .attributes = {{"momentum", 0.1}}}, {&mean, &variance, &moments},
                          {mean, variance}, {2e-7, 0});
      }
}

// Groups within a block, and of a block whose groups other ranks have a part of.
TEST(OnDevice, GroupNorms) {
  static const auto reference = reference_kernels();
  for (const DType dtype : kDeviceTypes)
    for (const int64_t groups : {1, 4, 12}) {
      for (const bool split : {false, true}) {
        const int64_t channels = 12, here = split ? 8 : channels;
        const Shape shape = {{"batch", 3}, {"height", 5}, {"width", 3}, {"channel", here}},
                    channel = {{"channel", here}}, sums = {{"batch", 3}, {"moment", 2}, {"norm_group", groups}};
        std::vector<NamedIndex> indices;
        if (split) indices = {{"channel", DimIndex({{5, 7}, {-1, 1}}, channels)}};
        BatchOf b(shape, dtype, DType::f32, sums,
                  {{"epsilon", 1e-5}, {"groups", groups}, {"channels", channels}, {"count", 15 * channels / groups}});
        const auto trial = [&](const char* kind, uint32_t accumulate = 0) {
          return Trial{.kind = kind, .attributes = b.attributes, .indices = indices, .accumulate = accumulate};
        };
        run_kernel(*reference, trial("group_statistics"), {&b.x}, {&b.statistics});
        const Tensor y(shape, dtype), of_channels(channel, DType::f32), made(sums, DType::f64);
        Tensor of_groups = random_tensor(sums, DType::f64, 5);
        const DeviceTolerance tolerance = {2e-5, 5e-5};
        compare_on_device(trial("group_statistics"), {&b.x}, {made}, {1e-9, 0});
        if (split) continue;  // the variance of a part of a group may be negative
        compare_on_device(trial("group_norm"), {&b.x, &b.gamma, &b.beta, &b.statistics}, {y}, tolerance);
        compare_on_device(trial("group_norm_sums"), {&b.x, &b.gamma, &b.statistics, &b.dy},
                          {of_channels, of_channels, made}, {2e-5, 1e-4});
        compare_on_device(trial("group_norm_sums", 3), {&b.x, &b.gamma, &b.statistics, &b.dy}, {b.gamma, b.beta, made},
                          {2e-5, 1e-4});
        compare_on_device(trial("group_norm_grad"), {&b.x, &b.gamma, &b.statistics, &of_groups, &b.dy}, {y}, tolerance);
      }
    }
}

TEST(OnDevice, ScalesOfChannelsAndSamples) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t channels : kChannels) {
      const Shape shape = image(6, 5, channels);
      Tensor x = random_tensor(shape, dtype, 1), dy = random_tensor(shape, dtype, 2),
             gamma = random_tensor({{"channel", channels}}, DType::f32, 3);
      compare_on_device({.kind = "channel_scale"}, {&x, &gamma}, {Tensor(x.type())});
      compare_on_device({.kind = "channel_scale_sums"}, {&x, &dy}, {Tensor(gamma.type())}, {2e-5, 5e-5});
      compare_on_device({.kind = "channel_scale_sums", .accumulate = 1}, {&x, &dy}, {gamma}, {2e-5, 5e-5});
      const Shape samples = {{"batch", 9}, {"width", 3}, {"channel", channels}};
      Tensor all = random_tensor(samples, dtype, 4);
      for (const std::vector<NamedIndex>& indices :
           {std::vector<NamedIndex>(), {{"batch", DimIndex({{3, 8}, {-1, 1}}, 11)}}})
        compare_on_device({.kind = "drop_path",
                           .attributes = {{"p", 0.4}, {"key", "layer"}},
                           .indices = indices,
                           .numbers = {.seed = 7, .step = 3, .batch_offset = 20}},
                          {&all}, {Tensor(all.type())});
    }
}

TEST(OnDevice, LeakyRelus) {
  for (const DType dtype : kDeviceTypes)
    for (const int64_t size : {3, 64, 77}) {
      Tensor x = random_tensor({{"channel", size}}, dtype, 1), dy = random_tensor({{"channel", size}}, dtype, 2);
      const Attributes attributes = {{"slope", 0.3}};
      compare_on_device({.kind = "leaky_relu", .attributes = attributes}, {&x}, {Tensor(x.type())});
      compare_on_device({.kind = "leaky_relu_grad", .attributes = attributes}, {&x, &dy}, {Tensor(x.type())});
    }
}

TEST(OnDevice, Concatenation) {
  for (const DType dtype : kDeviceTypes)
    for (const auto& [a, b] : std::vector<std::pair<int64_t, int64_t>>{{8, 16}, {3, 4}}) {
      Tensor x = random_tensor({{"batch", 2}, {"width", 3}, {"of_a", a}}, dtype, 1),
             other = random_tensor({{"batch", 2}, {"width", 3}, {"of_b", b}}, dtype, 2),
             both = random_tensor({{"batch", 2}, {"width", 3}, {"channel", a + b}}, dtype, 3);
      compare_on_device({.kind = "concatenate", .attributes = {{"whole", "of_a of_b channel"}}}, {&x, &other},
                        {Tensor(both.type())});
      compare_on_device({.kind = "slice", .attributes = {{"whole", "channel of_b"}, {"first", a}}}, {&both},
                        {Tensor(other.type())});
    }
}

TEST(OnDevice, Pixels) {
  for (const DType dtype : kDeviceTypes)
    for (const DType from : {DType::u8, DType::f32})
      for (const bool split : {false, true}) {
        const Shape shape = {{"batch", 2}, {"channel", 3}, {"height", 5}, {"width", 7}},
                    y = {{"batch", 2}, {"height", 5}, {"width", 7}, {"channel", 3}};
        Tensor x(shape, from);
        for (int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i * 37 % 256));
        std::vector<NamedIndex> indices;
        if (split) indices = {{"channel", DimIndex({{1, 2}, {-1, 1}}, 3)}};
        for (const char* mean : {"0.5", "0.1 0.2 0.3"})
          compare_on_device(
              {.kind = "pixels", .attributes = {{"mean", mean}, {"deviation", "0.25"}}, .indices = indices}, {&x},
              {Tensor(y, dtype)});
      }
}

// More channels than one launch takes.
TEST(OnDevice, PixelsOfManyChannels) {
  Tensor x = random_tensor({{"batch", 2}, {"channel", 130}, {"width", 3}}, DType::f32, 1);
  std::string means;
  for (int i = 0; i < 130; ++i) means += std::to_string(i) + " ";
  compare_on_device({.kind = "pixels", .attributes = {{"mean", means}, {"deviation", "2"}}}, {&x},
                    {Tensor({{"batch", 2}, {"width", 3}, {"channel", 130}}, DType::f32)});
}

TEST(OnDevice, ClassesOfPixelsAndSmoothedLabels) {
  for (const DType dtype : kDeviceTypes)
    for (const bool pixels : {false, true})
      for (const double smoothing : {0.0, 0.1}) {
        Shape labels = {{"batch", 5}}, logits = {{"batch", 5}, {"class", 7}};
        std::vector<NamedIndex> indices;
        if (pixels) {
          labels = {{"batch", 2}, {"height", 4}, {"width", 3}};
          logits = {{"batch", 2}, {"height", 4}, {"width", 3}, {"class", 7}};
          indices = {{"height", DimIndex({{4, 3}, {-1, 1}}, 7)}};
        }
        Tensor z = random_tensor(logits, dtype, 1, -3, 3), of = random_integers(labels, 2, -1, 7),
               weights = random_tensor({labels[0]}, DType::f32, 3, 0.5, 2), dloss = filled({}, DType::f64, 0.7);
        for (int64_t i = 0; i < z.elements(); i += 2) z.set(i, std::round(z.get(i)));  // equal ones
        const Attributes attributes = {{"smoothing", smoothing}};
        const Tensor scalar({}, DType::f64);
        const auto trial = [&](const char* kind) {
          return Trial{.kind = kind, .attributes = attributes, .indices = indices};
        };
        compare_on_device(trial("class_loss"), {&z, &of, &weights}, {scalar, scalar});
        compare_on_device(trial("class_loss_grad"), {&z, &of, &weights, &dloss}, {Tensor(z.type())});
        z.set(7, std::numeric_limits<double>::quiet_NaN());
        compare_on_device(trial("class_hits"), {&z, &of}, {scalar, scalar}, {0, 0});
      }
}

}  // namespace
}  // namespace kintsugi::kernels::device_images_test
