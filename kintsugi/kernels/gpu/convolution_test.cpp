#include "kintsugi/kernels/gpu/convolution.h"

#include <utility>

#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::test::device_convolution_test {
namespace {

using tensor::Segment;
using tensor::Window;

constexpr std::string_view kNames[] = {"depth", "height", "width"};

// A convolution over dims of these sizes.
struct Case {
  std::vector<std::pair<int64_t, Window>> dims;  // size and window
  int64_t channels = 2, filters = 3, groups = 1, batch = 2;
  std::vector<NamedIndex> indices = {};
};

struct Shapes {
  tensor::Attributes attributes;
  Shape x, w, y;
};

std::string name_of_dim(const Case& c, size_t i) {
  return std::string(kNames[i + std::size(kNames) - c.dims.size()]);
}

Shapes shapes_of(const Case& c) {
  std::vector<tensor::DimWindow> windows;
  std::vector<tensor::Dim> x = {{"batch", c.batch}}, w, y = {{"batch", c.batch}};
  for (size_t i = 0; i < c.dims.size(); ++i) {
    const auto& [size, window] = c.dims[i];
    const std::string name = name_of_dim(c, i);
    windows.push_back({name, window});
    x.push_back({name, size}), y.push_back({name, window.outputs(size)});
    w.push_back({tensor::kernel_dim(name), window.kernel});
  }
  x.push_back({"channel", c.channels});
  w.insert(w.end(), {{c.groups > 1 ? "group_channel" : "channel", c.channels / c.groups}, {"filter", c.filters}});
  y.push_back({"filter", c.filters});
  Shapes s = {{{"groups", c.groups}}, Shape(x), Shape(w), Shape(y)};
  tensor::set_windows(s.attributes, windows);
  return s;
}

constexpr DeviceTolerance kTolerance = {2e-4, 2e-4};  // sums of a few hundred products of up to 1

// All passes in these types; the gradient of weights also accumulates, in fp32.
void check(const Case& c, std::initializer_list<DType> types = {DType::f32, DType::bf16}) {
  const Shapes s = shapes_of(c);
  SCOPED_TRACE(to_string(s.x) + " " + to_string(s.w) + " " + to_string(s.attributes));
  for (const DType dtype : types) {
    Tensor x = random_tensor(s.x, dtype, 1), w = random_tensor(s.w, dtype, 2), dy = random_tensor(s.y, dtype, 3);
    compare_on_device({.kind = "convolution", .attributes = s.attributes, .indices = c.indices}, {&x, &w}, {dy},
                      kTolerance);
    compare_on_device({.kind = "convolution_grad_input", .attributes = s.attributes, .indices = c.indices}, {&dy, &w},
                      {x}, kTolerance);
    const Trial weight = {.kind = "convolution_grad_weight", .attributes = s.attributes, .indices = c.indices};
    compare_on_device(weight, {&x, &dy}, {w}, kTolerance);
    Trial adds = weight;
    adds.accumulate = 1;
    compare_on_device(adds, {&x, &dy}, {random_tensor(s.w, DType::f32, 4)}, kTolerance);
  }
}

}  // namespace

TEST(OnDevice, ConvolutionKernelsAndStrides) {
  for (int64_t kernel = 1; kernel <= 7; ++kernel)
    for (int64_t stride = 1; stride <= 3; ++stride)
      check({.dims = {{9, {.kernel = kernel, .stride = stride, .low = kernel / 2, .high = (kernel - 1) / 2}}},
             .channels = 3,
             .filters = 5},
            {kernel % 2 == 0   ? DType::f32
             : stride % 2 == 0 ? DType::f16
                               : DType::bf16});
}

TEST(OnDevice, ConvolutionOfPlanesAndVolumes) {
  check({.dims = {{6, {.kernel = 3, .low = 1, .high = 1}}, {5, {.kernel = 3, .low = 1, .high = 1}}}});
  check({.dims = {{7, {.kernel = 3, .stride = 2, .low = 1, .high = 1}}, {6, {.kernel = 2, .stride = 3}}}});
  check({.dims = {{7, {.kernel = 2, .dilation = 3}}, {6, {.kernel = 3, .dilation = 2, .low = 2, .high = 1}}}});
  check({.dims = {{9, {.kernel = 4, .stride = 2, .dilation = 2, .low = 3, .high = 2}},
                  {8, {.kernel = 3, .stride = 3, .dilation = 2, .low = 1}}}});
  check({.dims = {{4, {.kernel = 2, .stride = 2}},
                  {3, {.kernel = 3, .low = 1, .high = 1}},
                  {5, {.kernel = 4, .stride = 3, .low = 2, .high = 1}}}});
  check({.dims = {{5, {.kernel = 1, .stride = 2}}, {4, {.kernel = 1, .stride = 2}}}, .channels = 8, .filters = 8});
}

// Runs of 8 channels and of 8 filters, several blocks of rows, columns and terms, and several slices of positions.
TEST(OnDevice, ConvolutionOfSeveralBlocks) {
  const Window same = {.kernel = 3, .low = 1, .high = 1};
  check({.dims = {{7, same}, {6, same}}, .channels = 16, .filters = 72});
  check({.dims = {{5, {.kernel = 3, .stride = 2, .low = 1, .high = 1}}, {6, same}}, .channels = 72, .filters = 8},
        {DType::f16});
  check({.dims = {{6, same}}, .channels = 24, .filters = 10, .batch = 12}, {DType::bf16});
  check({.dims = {{6, same}}, .channels = 10, .filters = 24, .batch = 12}, {DType::f16});
  check({.dims = {{17, same}, {16, same}}, .channels = 3, .filters = 8, .batch = 1});
}

// Blocks of 128 x 128, which large convolutions of 16-bit types use.
TEST(OnDevice, ConvolutionOfLargeBlocks) {
  const int64_t usual = std::exchange(gpu_emulated::fewest_large_convolution_blocks, 1);
  check({.dims = {{9, {.kernel = 2}}, {9, {}}}, .channels = 72, .filters = 136}, {DType::bf16});
  check({.dims = {{9, {.kernel = 3, .stride = 2, .low = 1}}, {3, {}}}, .channels = 68, .filters = 69}, {DType::f16});
  gpu_emulated::fewest_large_convolution_blocks = usual;
}

TEST(OnDevice, ConvolutionOfSinglePositions) {
  check({.dims = {{5, {}}, {4, {}}}, .channels = 8, .filters = 16});
  check({.dims = {{5, {}}, {4, {}}}, .channels = 3, .filters = 5, .batch = 1});
}

TEST(OnDevice, ConvolutionOfGroups) {
  const Window same = {.kernel = 3, .low = 1, .high = 1};
  check({.dims = {{4, same}, {5, same}}, .channels = 4, .filters = 6, .groups = 2});
  check({.dims = {{5, {.kernel = 3, .stride = 2, .dilation = 2, .low = 2, .high = 1}}, {4, same}},
         .channels = 3,
         .filters = 3,
         .groups = 3});
  check({.dims = {{9, {.kernel = 7, .stride = 2, .low = 3, .high = 3}}, {5, same}},
         .channels = 16,
         .filters = 16,
         .groups = 16});
  check({.dims = {{3, same}, {4, {.kernel = 2, .stride = 2}}}, .channels = 32, .filters = 48, .groups = 2});
  check({.dims = {{5, same}}, .channels = 34, .filters = 36, .groups = 2}, {DType::bf16});
  check({.dims = {{19, same}, {18, same}}, .channels = 8, .filters = 8, .groups = 8});
}

// A block of a split value: rows outside of the whole are zero, whatever their memory contains. A library reads them.
TEST(OnDevice, ConvolutionOfBlocksWithHalos) {
  const auto library = std::exchange(gpu_emulated::convolution_by_library, nullptr);
  const auto block = [](std::vector<Segment> segments) {
    return std::vector<NamedIndex>{{"height", DimIndex(std::move(segments), 40), true}};
  };
  for (const std::vector<Segment>& segments : std::initializer_list<std::vector<Segment>>{
           {{-1, 1}, {0, 6}}, {{5, 4}, {9, 2}, {-1, 1}}, {{-1, 2}, {0, 3}, {-1, 2}}, {{-1, 7}}}) {
    const std::vector<NamedIndex> indices = block(segments);
    const Window plain = {.kernel = 3}, strided = {.kernel = 3, .stride = 2}, same = {.kernel = 3, .low = 1, .high = 1};
    check({.dims = {{7, plain}, {4, same}}, .channels = 8, .filters = 8, .indices = indices});
    check({.dims = {{7, strided}, {4, same}}, .indices = indices});
    check({.dims = {{7, {}}, {4, {}}}, .indices = indices});
    check({.dims = {{7, plain}, {4, same}}, .channels = 8, .filters = 8, .groups = 8, .indices = indices});
  }
  gpu_emulated::convolution_by_library = library;
}

// Two calls share the output; each leaves the positions of the other as they are.
TEST(OnDevice, ConvolutionOfParts) {
  const Window same = {.kernel = 3, .low = 1, .high = 1}, strided = {.kernel = 2, .stride = 2};
  for (const Case& c : {Case{.dims = {{9, same}, {12, strided}}, .channels = 8, .filters = 8},
                        Case{.dims = {{9, same}, {12, strided}}, .channels = 8, .filters = 8, .groups = 8},
                        Case{.dims = {{9, same}, {6, {}}, {6, {}}}}, Case{.dims = {{9, {}}, {6, {}}}}})
    for (const tensor::OutputPart& part : {tensor::OutputPart{.dim = name_of_dim(c, 0), .begin = 2, .end = 8},
                                           tensor::OutputPart{.dim = name_of_dim(c, 1), .begin = 0, .end = 5}})
      for (const bool outer : {false, true})
        for (const DType dtype : {DType::f32, DType::f16}) {
          Shapes s = shapes_of(c);
          tensor::OutputPart own = part;
          own.outer = outer;
          tensor::set_output_part(s.attributes, own);
          Tensor x = random_tensor(s.x, dtype, 1), w = random_tensor(s.w, dtype, 2);
          compare_on_device({.kind = "convolution", .attributes = s.attributes}, {&x, &w},
                            {random_tensor(s.y, dtype, 3)}, kTolerance);
        }
}

TEST(OnDevice, ConvolutionOfNothing) {
  const Window same = {.kernel = 3, .low = 1, .high = 1};
  check({.dims = {{4, same}, {5, same}}, .batch = 0});
  check({.dims = {{4, same}}, .channels = 4, .filters = 4, .groups = 4, .batch = 0});
  check({.dims = {{4, {}}}, .batch = 0});
}

// Mixed types, as of accumulated gradients.
TEST(OnDevice, ConvolutionOfMixedTypes) {
  const Shapes s = shapes_of({.dims = {{6, {.kernel = 3, .low = 1, .high = 1}}, {5, {.kernel = 2}}}});
  Tensor x = random_tensor(s.x, DType::bf16, 1), w = random_tensor(s.w, DType::f32, 2);
  compare_on_device({.kind = "convolution", .attributes = s.attributes}, {&x, &w}, {Tensor(s.y, DType::f16)},
                    kTolerance);
}

TEST(OnDevice, TransposedConvolution) {
  const Case c = {.dims = {{6, {.kernel = 2, .stride = 2}}, {7, {.kernel = 3, .stride = 2, .low = 1}}},
                  .channels = 8,
                  .filters = 16};
  const Shapes s = shapes_of(c);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor x = random_tensor(s.y, dtype, 1), w = random_tensor(s.w, dtype, 2);
    compare_on_device({.kind = "transposed_convolution", .attributes = s.attributes}, {&x, &w}, {Tensor(s.x, dtype)},
                      kTolerance);
  }
}

}  // namespace kintsugi::kernels::test::device_convolution_test
