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

// Blocks of several sizes, with one and two runs of 16 bytes per thread, and rows that do not fit.
TEST(OnDevice, NormsOfWideRows) {
  for (const DType dtype : kDeviceTypes)
    for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{9, 1600}, {3, 4096}, {2, 4616}, {2, 8200}})
      NormCase{rows, width, dtype}.check(dtype == DType::bf16 ? 7 : 0);
}

// Many rows, whose sums are combined from several chunks; some teams of a block have fewer rows than others, or none.
TEST(OnDevice, NormsOfManyRows) {
  for (const int64_t rows : {700, 19, 16}) NormCase{rows, 40, DType::bf16}.check(0);
}
// So many chunks that a thread has more of them than it loads at once.
TEST(OnDevice, NormsOfMoreChunks) {
  NormCase{3400, 776, DType::f32}.check(0);
}

// Fused sums of a norm's gradient have the bits of a separate sum in all variants: one chunk and many, rows held by
// teams, lanes and blocks, and others.
TEST(OnDevice, GradientsOfNormsAlsoSum) {
  const auto stream = device_under_test().stream();
  for (const DType dtype : kDeviceTypes)
    for (const auto& [rows, width] : std::initializer_list<std::pair<int64_t, int64_t>>{
             {1, 8}, {37, 130}, {19, 768}, {700, 40}, {100, 1024}, {9, 1600}, {17, 4096}, {3, 8200}})
      for (const uint32_t accumulate : {0u, 15u})
        for (const int warp : {32, 64})
          for (const int64_t shift : {0, 1}) {
            if (warp == 64 && device_under_test().kind() != "emulated") continue;
            device::emulate::set_warp(warp);
            const Shape shape({{"seq", rows}, {"embed", width}}), row({{"embed", width}});
            Tensor x = random_tensor(shape, dtype, 1, -2, 3), dy = random_tensor(shape, dtype, 2),
                   gamma = random_tensor(row, dtype, 3, 0.5, 1.5), dx = random_tensor(shape, dtype, 5),
                   dgamma = random_tensor(row, DType::f32, 6), dbeta = dgamma, sums = dgamma, alone = dgamma;
            Tensor plain_dx = dx, plain_dgamma = dgamma, plain_dbeta = dbeta;
            const Attributes attributes = {{"epsilon", 1e-5}};
            run_on_device({.kind = "layer_norm_grad", .attributes = attributes, .accumulate = accumulate},
                          {&x, &gamma, &dy}, {&dx, &dgamma, &dbeta, &sums}, shift);
            run_on_device({.kind = "layer_norm_grad", .attributes = attributes, .accumulate = accumulate & 7},
                          {&x, &gamma, &dy}, {&plain_dx, &plain_dgamma, &plain_dbeta}, shift);
            run_on_device({.kind = "sum", .accumulate = accumulate & 1}, {&dx}, {&alone}, shift);
            const std::string what = std::to_string(rows) + " x " + std::to_string(width);
            expect_close(sums, alone, 0, 0, what + " sums");
            expect_close(dx, plain_dx, 0, 0, what + " dx");
            expect_close(dgamma, plain_dgamma, 0, 0, what + " dgamma");
            expect_close(dbeta, plain_dbeta, 0, 0, what + " dbeta");
            if (rows > 1) continue;  // without beta, in another type
            Tensor narrow = random_tensor(row, dtype, 6), narrow_alone = narrow;
            dx = random_tensor(shape, dtype, 5);
            run_on_device({.kind = "layer_norm_grad", .attributes = attributes}, {&x, &gamma, &dy},
                          {&dx, &dgamma, nullptr, &narrow}, shift);
            run_on_device({.kind = "sum"}, {&dx}, {&narrow_alone}, shift);
            expect_close(narrow, narrow_alone, 0, 0, what + " without beta");
          }
  device::emulate::set_warp(32);
}

// The mean is far from zero, and the first elements, the shift of the sums, are far from the mean.
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

// Weights of another dtype than the rows.
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
