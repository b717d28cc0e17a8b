// Element types. bf16 and f16 are storage types: arithmetic is done in f32.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace kintsugi::tensor {

enum class DType : uint8_t { f64, f32, bf16, f16, i64, i32, u16, u8, i8 };

int64_t size_of(DType dtype);             // in bytes
std::string_view name_of(DType dtype);    // "fp32", "bf16", "int32", ...
DType dtype_from(std::string_view name);  // inverse of name_of(); UserError for an unknown name
bool is_floating(DType dtype);

// Rounds to nearest even, as every conversion here does.
struct bf16 {
  uint16_t bits = 0;

  bf16() = default;
  explicit bf16(float x);
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// IEEE 754 binary16.
struct f16 {
  uint16_t bits = 0;

  f16() = default;
  explicit f16(float x);
  explicit operator float() const;
};

// Calls f with a value of the C++ type of a floating dtype: dispatch(dtype, [&]<typename T>(T) { ... }).
template <typename F>
decltype(auto) dispatch(DType dtype, F&& f);

[[noreturn]] void not_floating(DType dtype);

template <typename F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bf16{});
    case DType::f16:
      return f(f16{});
    default:
      not_floating(dtype);
  }
}

// The type in which elements of T are added and multiplied.
template <typename T>
struct arithmetic {
  using type = float;
};
template <>
struct arithmetic<double> {
  using type = double;
};
template <typename T>
using arithmetic_t = typename arithmetic<T>::type;

}  // namespace kintsugi::tensor
