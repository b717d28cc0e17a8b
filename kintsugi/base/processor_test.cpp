#include "kintsugi/base/processor.h"

#include <gtest/gtest.h>

namespace kintsugi::base::processor_test {

TEST(Processor, X86) {
  const Processor p = parse_cpuinfo(
      "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Example CPU @ 2.70GHz\n"
      "flags\t\t: fpu sse4_2 avx f16c fma avx2 avx512f avx512_bf16 amx_bf16 avx512\nbugs\t\t:\n");
  EXPECT_EQ(p.name, "Example CPU @ 2.70GHz");
  EXPECT_EQ(p.units,
            (std::vector<std::string>{"sse4.2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512_bf16", "amx_bf16"}));
}

TEST(Processor, Arm) {
  const Processor p = parse_cpuinfo("processor\t: 0\nFeatures\t: fp asimd asimdhp sve bf16\n");
  EXPECT_EQ(p.name, "");
  EXPECT_EQ(p.units, (std::vector<std::string>{"neon", "neon_fp16", "neon_bf16", "sve"}));
}

TEST(Processor, NothingKnown) {
  EXPECT_TRUE(parse_cpuinfo("").units.empty());
  EXPECT_TRUE(parse_cpuinfo("flags").units.empty());
  EXPECT_TRUE(parse_cpuinfo("flags:").units.empty());
}

TEST(Processor, Quota) {
  EXPECT_EQ(parse_cpu_quota("max 100000\n"), 0);
  EXPECT_EQ(parse_cpu_quota("150000 100000\n"), 2);
  EXPECT_EQ(parse_cpu_quota("200000 100000\n"), 2);
  EXPECT_EQ(parse_cpu_quota("10000 100000\n"), 1);
  EXPECT_EQ(parse_cpu_quota("-1 100000"), 0);
  EXPECT_EQ(parse_cpu_quota(""), 0);
  EXPECT_GE(usable_cores(), 1);
}

}  // namespace kintsugi::base::processor_test
