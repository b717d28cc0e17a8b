#include "kintsugi/kernels/cpu/gemm_fp64.h"

#include "kintsugi/kernels/cpu/compare_test.h"

namespace kintsugi::kernels::test::gemm_fp64_test {
namespace {

TEST(GemmFp64, AsTheSumInOrder) {
  struct Sizes {
    int64_t m, n, k;
  };
  base::ThreadTeam team(3);
  with_each_target([&] {
    for (const Sizes z : {Sizes{1, 1, 1}, {7, 9, 0}, {6, 8, 300}, {97, 33, 257}, {5, 520, 70}, {200, 17, 513}})
      for (const bool a_turned : {false, true})
        for (const bool b_turned : {false, true})
          for (const bool accumulate : {false, true}) {
            SCOPED_TRACE(testing::Message()
                         << z.m << " x " << z.n << " x " << z.k << a_turned << b_turned << accumulate);
            const Tensor a = random_tensor({{"a", z.m * z.k}}, DType::f64, 1),
                         b = random_tensor({{"b", z.k * z.n}}, DType::f64, 2);
            const std::vector<double> av = a.values(), bv = b.values();
            const int64_t c_row = z.n + 3;
            const std::vector<double> before(static_cast<size_t>(z.m * c_row), 0.5);
            std::vector<double> c = before, together = before;
            cpu::WideProduct p = {.m = z.m,
                                  .n = z.n,
                                  .k = z.k,
                                  .a = av.data(),
                                  .a_row = a_turned ? 1 : z.k,
                                  .a_column = a_turned ? z.m : 1,
                                  .b = bv.data(),
                                  .b_row = b_turned ? 1 : z.n,
                                  .b_column = b_turned ? z.k : 1,
                                  .c = c.data(),
                                  .c_row = c_row,
                                  .accumulate = accumulate};
            multiply(p);
            p.c = together.data();
            multiply(p, team);
            EXPECT_EQ(c, together);
            for (int64_t i = 0; i < z.m; ++i)
              for (int64_t j = 0; j < c_row; ++j) {
                double want = j < z.n && !accumulate ? 0.0 : 0.5;
                for (int64_t l = 0; j < z.n && l < z.k; ++l)
                  want += p.a[i * p.a_row + l * p.a_column] * p.b[l * p.b_row + j * p.b_column];
                ASSERT_NEAR(c[static_cast<size_t>(i * c_row + j)], want, 1e-12) << i << " " << j;
              }
          }
  });
}

}  // namespace
}  // namespace kintsugi::kernels::test::gemm_fp64_test
