#include "kintsugi/kernels/gpu/compare_test.h"

namespace kintsugi::kernels::test {
namespace {

struct NormCase {
  int64_t rows, width;
  DType dtype;

  // Layer norm with and without beta, RMS norm with an offset of gamma, and their gradients.
  void check(uint32_t accumulate) const {
    const Shape shape({{"seq", rows}, {"embed", width}}), row({{"embed", width}});
    Tensor x = random_tensor(shape, dtype, 1, -2, 3), dy = random_tensor(shape, dtype, 2);
    Tensor gamma = random_tensor(row, dtype, 3, 0.5, 1.5), beta = random_tensor(row, dtype, 4);
    const Tensor y = random_tensor(shape, dtype, 5), sum = random_tensor(row, DType::f32, 6);
    const DeviceTolerance tolerance = {1e-4, dtype == DType::f32 ? 1e-4 : 2e-2};
    const Attributes offset = {{"epsilon", 1e-5}, {"gamma_offset", 1.0}}, plain = {{"epsilon", 1e-5}};
    compare_on_device({.kind = "layer_norm", .attributes = plain, .accumulate = accumulate & 1}, {&x, &gamma, &beta},
                      {y}, tolerance);
    if (accumulate == 0) compare_on_device({.kind = "layer_norm", .attributes = plain}, {&x, &gamma}, {y}, tolerance);
    compare_on_device({.kind = "rms_norm", .attributes = offset, .accumulate = accumulate & 1}, {&x, &gamma}, {y},
                      tolerance);
    compare_on_device({.kind = "layer_norm_grad", .attributes = plain, .accumulate = accumulate}, {&x, &gamma, &dy},
                      {y, sum, sum}, tolerance);
    compare_on_device({.kind = "rms_norm_grad", .attributes = offset, .accumulate = accumulate & 3}, {&x, &gamma, &dy},
                      {y, sum}, tolerance);
  }
};

TEST(OnDevice, Norms) {
  for (const DType dtype : kDeviceTypes)
    for (const auto& [rows, width] :
         {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {37, 130}, {18, 768}, {2, 768}, {3, 512}, {5, 1024}})
      for (const uint32_t accumulate : {0u, 7u}) NormCase{rows, width, dtype}.check(accumulate);
}

// Blocks of several sizes, with one and two runs of 16 bytes for a thread, and rows that do not fit.
TEST(OnDevice, NormsOfWideRows) {
  for (const DType dtype : kDeviceTypes)
    for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{9, 1600}, {3, 4096}, {2, 4616}, {2, 8200}})
      NormCase{rows, width, dtype}.check(dtype == DType::bf16 ? 7 : 0);
}

// Many rows, whose sums are joined from several chunks; of a block's teams some have fewer rows than others, or none.
TEST(OnDevice, NormsOfManyRows) {
  for (const int64_t rows : {700, 19, 16}) NormCase{rows, 40, DType::bf16}.check(0);
}
// So many chunks that a thread has more of them than it loads at a time.
TEST(OnDevice, NormsOfMoreChunks) {
  NormCase{3400, 776, DType::f32}.check(0);
}

// The mean is far from zero, and the first elements, which the sums are taken about, are far from the mean.
TEST(OnDevice, NormsOfRowsWithOutliers) {
  for (const int64_t width : {768, 1600, 8192}) {
    const Shape shape({{"seq", 3}, {"embed", width}}), row({{"embed", width}});
    Tensor x = random_tensor(shape, DType::f32, 1, 300, 301), dy = random_tensor(shape, DType::f32, 2),
           gamma = random_tensor(row, DType::f32, 3, 0.5, 1.5), beta = random_tensor(row, DType::f32, 4);
    for (int64_t i = 0; i < 3; ++i) reinterpret_cast<float*>(x.view().data)[i * width + i] = 250;
    const Tensor y = random_tensor(shape, DType::f32, 5), sum = random_tensor(row, DType::f32, 6);
    const Attributes plain = {{"epsilon", 1e-5}};
    compare_on_device({.kind = "layer_norm", .attributes = plain}, {&x, &gamma, &beta}, {y}, {1e-4, 1e-4});
    compare_on_device({.kind = "layer_norm_grad", .attributes = plain}, {&x, &gamma, &dy}, {y, sum, sum}, {1e-4, 1e-4});
  }
}

// Weights of another type than the rows.
TEST(OnDevice, NormsWithWeightsInFp32) {
  const Shape shape({{"seq", 5}, {"embed", 48}}), row({{"embed", 48}});
  Tensor x = random_tensor(shape, DType::bf16, 1, -2, 3), dy = random_tensor(shape, DType::bf16, 2),
         gamma = random_tensor(row, DType::f32, 3, 0.5, 1.5), beta = random_tensor(row, DType::f32, 4);
  const Tensor y = random_tensor(shape, DType::bf16, 5), sum = random_tensor(row, DType::f32, 6);
  const Attributes plain = {{"epsilon", 1e-5}};
  compare_on_device({.kind = "layer_norm", .attributes = plain}, {&x, &gamma, &beta}, {y}, {1e-4, 2e-2});
  compare_on_device({.kind = "layer_norm_grad", .attributes = plain}, {&x, &gamma, &dy}, {y, sum, sum}, {1e-4, 2e-2});
}

}  // namespace
}  // namespace kintsugi::kernels::test
