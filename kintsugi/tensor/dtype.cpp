#include "kintsugi/tensor/dtype.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "kintsugi/base/error.h"

namespace kintsugi::tensor {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<Row, 9> kRows = {{{DType::f64, "fp64", 8},
                                       {DType::f32, "fp32", 4},
                                       {DType::bf16, "bf16", 2},
                                       {DType::f16, "fp16", 2},
                                       {DType::i64, "int64", 8},
                                       {DType::i32, "int32", 4},
                                       {DType::u16, "uint16", 2},
                                       {DType::u8, "uint8", 1},
                                       {DType::i8, "int8", 1}}};

const Row& row(DType dtype) {
  return kRows[static_cast<size_t>(dtype)];
}

}  // namespace

int64_t size_of(DType dtype) {
  return row(dtype).bytes;
}
std::string_view name_of(DType dtype) {
  return row(dtype).name;
}

DType dtype_from(std::string_view name) {
  for (const Row& r : kRows)
    if (r.name == name) return r.dtype;
  throw base::UserError(
      "dtype", "\"{}\" is not a data type; known types: fp64, fp32, bf16, fp16, int64, int32, uint16, uint8, int8",
      name);
}

bool is_floating(DType dtype) {
  return dtype <= DType::f16;
}

void not_floating(DType dtype) {
  throw base::InternalError("dtype", "{} is not floating", name_of(dtype));
}

bf16::bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) {
    bits = static_cast<uint16_t>((u >> 16) | 0x40u);  // NaN stays NaN
    return;
  }
  bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

f16::f16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  const float magnitude = std::fabs(x);
  if (std::isnan(x)) {
    bits = sign | 0x7e00u;
  } else if (magnitude >= 65520.0f) {
    bits = sign | 0x7c00u;
  } else if (magnitude < 0x1p-14f) {
    bits = sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f));  // subnormal: a multiple of 2^-24
  } else {
    const uint32_t m = u & 0x7fffffffu;
    bits = sign | static_cast<uint16_t>((m - 0x38000000u + 0xfffu + ((m >> 13) & 1u)) >> 13);
  }
}

f16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 31u, mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

}  // namespace kintsugi::tensor
