#include "kintsugi/comm/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kintsugi/comm/collective_cases.h"

namespace kintsugi::comm::reduce_test {
namespace {

using tensor::DType;

std::vector<float> reduce_floats(const std::vector<std::vector<float>>& ins, Reduction reduction) {
  std::vector<float> out(ins[0].size());
  std::vector<const std::byte*> from;
  for (const auto& in : ins) from.push_back(reinterpret_cast<const std::byte*>(in.data()));
  std::byte* to = reinterpret_cast<std::byte*>(out.data());
  reduce({from, 0, {&to, 1}, 0, out.size() * sizeof(float)}, DType::f32, reduction);
  return out;
}

}  // namespace

TEST(Reduce, ANanIsNeverLost) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto reduction : cases::kReductions) {
    for (const size_t count : {1, 21}) {
      for (int where = 0; where < 3; ++where) {
        std::vector<std::vector<float>> ins(3, std::vector<float>(count, 1.0f));
        ins[where][count - 1] = nan;
        const auto out = reduce_floats(ins, reduction);
        EXPECT_TRUE(std::isnan(out.back())) << name_of(reduction) << " " << count << " " << where;
        EXPECT_EQ(count > 1 ? out[0] : 1.0f, count > 1 && reduction == Reduction::sum ? 3.0f : 1.0f);
      }
    }
  }
}

TEST(Reduce, InTheOrderOfTerms) {
  EXPECT_EQ(reduce_floats({{1e8f}, {-1e8f}, {1.0f}}, Reduction::sum), std::vector{1.0f});
  EXPECT_EQ(reduce_floats({{1e8f}, {1.0f}, {-1e8f}}, Reduction::sum), std::vector{0.0f});
}

// 256 + 1 is not representable in bf16, but 256 + 1 + 1 is: rounded once, at the end.
TEST(Reduce, RoundsOnce) {
  std::vector<tensor::bf16> a = {tensor::bf16(256.0f)}, b = {tensor::bf16(1.0f)}, out(1);
  const auto bytes = [](auto& v) { return std::as_writable_bytes(std::span(v)).data(); };
  const std::vector<const std::byte*> ins = {bytes(a), bytes(b), bytes(b)};
  std::byte* to = bytes(out);
  reduce({ins, 0, {&to, 1}, 0, 2}, DType::bf16, Reduction::sum);
  EXPECT_EQ(static_cast<float>(out[0]), 258.0f);
}

// With and without bypassing the caches, at any alignment, writing nothing else.
TEST(Reduce, WritesWhatItShould) {
  constexpr size_t kCount = 5'003, kPad = 64;
  for (const auto dtype : cases::kDTypes) {
    const size_t size = tensor::size_of(dtype), bytes = kCount * size;
    const std::vector<cases::Bytes> ins = {cases::numbers(kCount, dtype, 1), cases::numbers(kCount, dtype, 2)};
    const std::vector<const std::byte*> from = {ins[0].data(), ins[1].data()};
    const cases::Bytes sum = cases::reduce_serially(ins, dtype, Reduction::sum);
    for (const bool stream : {false, true}) {
      for (const size_t shift : {size_t{0}, size, 3 * size}) {
        cases::Bytes a(bytes + 2 * kPad, std::byte{7}), b = a, want = a;
        std::copy(sum.begin(), sum.end(), want.begin() + kPad + shift);
        const std::vector<std::byte*> to = {a.data(), nullptr, b.data()};
        reduce({from, 0, to, kPad + shift, bytes, stream}, dtype, Reduction::sum);
        EXPECT_EQ(a, want) << tensor::name_of(dtype) << " " << stream << " " << shift;
        EXPECT_EQ(b, want);
        std::copy(ins[0].begin(), ins[0].end(), want.begin() + kPad + shift);
        copy(ins[0].data(), a.data() + kPad + shift, bytes, stream);
        EXPECT_EQ(a, want);
      }
    }
  }
}

}  // namespace kintsugi::comm::reduce_test
