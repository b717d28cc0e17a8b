#include "kintsugi/checkpoint/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "kintsugi/base/error.h"

namespace kintsugi::checkpoint {
namespace {

using tensor::DType;

// Elements. Blocks are aligned, disjoint and of constant size, so that the compiler vectorizes the loops.
constexpr int64_t kBlock = 512;
constexpr int64_t kStreamed = 64 << 10;  // bytes; larger targets are written with non-temporal stores

// Rounds to odd: toward zero, setting the last bit if inexact. Rounding the result again, to a type with at least two
// bits less, equals rounding x directly (Boldo and Melquiond 2008, "Emulation of FMA").
float to_float_odd(double x) {
  const auto f = static_cast<float>(x);
  if (std::isnan(x) || static_cast<double>(f) == x) return f;
  uint32_t bits = std::bit_cast<uint32_t>(f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(x)) --bits;  // also turns infinity into the largest finite number
  return std::bit_cast<float>(bits | 1u);
}

template <typename To, typename From>
To rounded(From x) {
  if constexpr (std::is_same_v<From, double> && !std::is_floating_point_v<To>)
    return To(to_float_odd(x));
  else if constexpr (std::is_same_v<From, double> || std::is_floating_point_v<From>)
    return To(x);
  else
    return To(static_cast<float>(x));  // exact: fp32 contains all bf16 and fp16 values
}

// Copies with non-temporal stores where available: the target exceeds the caches and is not read soon.
void stream(const std::byte* source, std::byte* target, size_t bytes) {
  size_t done = 0;
#ifdef __SSE2__
  if (reinterpret_cast<uintptr_t>(target) % sizeof(__m128i) == 0)
    for (; done + sizeof(__m128i) <= bytes; done += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + done),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + done)));
#endif
  std::memcpy(target + done, source + done, bytes - done);
}

void end_stream() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace

bool converts(DType from, DType to) {
  return from == to || (is_floating(from) && is_floating(to));
}

void convert(DType from, const std::byte* source, DType to, std::byte* target, int64_t count) {
  base::require(converts(from, to), "checkpoint", "{} does not convert to {}", name_of(from), name_of(to));
  if (from == to) {
    std::memcpy(target, source, static_cast<size_t>(count * size_of(from)));
    return;
  }
  const bool streams = count * size_of(to) >= kStreamed;
  tensor::dispatch(from, [&]<typename From>(From) {
    tensor::dispatch(to, [&]<typename To>(To) {
      From in[kBlock] = {};
      To out[kBlock];
      for (int64_t at = 0; at < count; at += kBlock) {
        const auto n = static_cast<size_t>(std::min(kBlock, count - at));
        std::memcpy(in, source + at * static_cast<int64_t>(sizeof(From)), n * sizeof(From));
        for (size_t i = 0; i < kBlock; ++i) out[i] = rounded<To>(in[i]);
        std::byte* const place = target + at * static_cast<int64_t>(sizeof(To));
        const auto* const made = reinterpret_cast<const std::byte*>(out);
        streams ? stream(made, place, n * sizeof(To)) : void(std::memcpy(place, made, n * sizeof(To)));
      }
    });
  });
  if (streams) end_stream();
}

}  // namespace kintsugi::checkpoint
