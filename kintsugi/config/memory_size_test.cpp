#include "kintsugi/config/memory_size.h"

#include <gtest/gtest.h>

namespace kintsugi::config::memory_size_test {
namespace {

TEST(MemorySize, NumbersWithUnits) {
  EXPECT_EQ(memory_size("16 GiB"), int64_t{16} << 30);
  EXPECT_EQ(memory_size("900 MB"), 900'000'000);
  EXPECT_EQ(memory_size("512 MiB"), int64_t{512} << 20);
  EXPECT_EQ(memory_size("512MiB"), int64_t{512} << 20);
  EXPECT_EQ(memory_size("1.5 TiB"), int64_t{3} << 39);
  EXPECT_EQ(memory_size("80 GB"), 80'000'000'000);
  EXPECT_EQ(memory_size("2 TB"), 2'000'000'000'000);
  EXPECT_EQ(memory_size("12 kB"), 12'000);
  EXPECT_EQ(memory_size("3 KiB"), 3072);
  EXPECT_EQ(memory_size("123456789 B"), 123'456'789);
  EXPECT_EQ(memory_size("0.0000001 GB"), 100);
}

TEST(MemorySize, NothingElse) {
  for (const char* text : {"",        "16",      "GiB",    "16 G",     "16 gib",  "16 GiB ",        " 16 GiB",
                           "16  GiB", "-1 GiB",  "+1 GiB", "0 B",      "0.5 B",   "1e3 MB",         "inf GB",
                           "nan GB",  "0x10 GB", "1,5 GB", "16 GiB/s", "9e99 TB", "99999999999 TB", "16\tGiB"})
    EXPECT_EQ(memory_size(text), std::nullopt) << '"' << text << '"';
}

}  // namespace
}  // namespace kintsugi::config::memory_size_test
