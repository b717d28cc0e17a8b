// The initial value of every state, for each element a function of (seed, name, index in the whole tensor).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/run/state_blocks.h"

namespace kintsugi::run {
namespace {

// Two normal numbers from four words (Box, Muller 1958).
std::array<double, 2> normal_pair(std::array<uint32_t, 2> key, uint64_t pair) {
  const std::array<uint32_t, 4> w = kernels::random_block(key, 0, pair);
  std::array<double, 2> x;
  for (size_t i = 0; i < 2; ++i) {
    const double u = (w[2 * i] + 0.5) * 0x1p-32, v = w[2 * i + 1] * 0x1p-32;
    x[i] = std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
  }
  return x;
}

template <typename T>
T rounded(double x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(x);
  } else {
    return T(static_cast<float>(x));
  }
}

}  // namespace

void Executor::initialize(uint64_t seed, bool drawn) {
  for (const program::StateInfo& s : program_.states) {
    if (s.in_bucket && s.first != 0) continue;
    if (program_.buffer(s.buffer).region == program::Region::arena) continue;  // each step makes it
    change_blocks(*this, s.buffer, [](std::span<std::byte> block) { std::memset(block.data(), 0, block.size()); });
  }
  for (const program::StateInfo& s : program_.states) {
    const bool constant = s.init.kind == tensor::Init::Kind::constant;
    if (constant ? s.init.value == 0.0 : !drawn) continue;
    // A master gets the same numbers as its weight.
    const auto key = kernels::random_key(seed, s.is_master() ? s.weight : s.name);
    tensor::dispatch(program_.buffer(s.buffer).type.dtype, [&]<typename T>(T) {
      change_runs(*this, s, [&](const program::Run& run, std::byte* data) {
        T* x = reinterpret_cast<T*>(data);
        team_.for_shares(run.count, 1024, [&](base::Range r, int) {
          if (constant) return static_cast<void>(std::fill(x + r.begin, x + r.end, rounded<T>(s.init.value)));
          std::array<double, 2> pair = {};
          for (int64_t i = r.begin; i < r.end; ++i) {
            const int64_t at = run.whole + i;
            if (i == r.begin || at % 2 == 0) pair = normal_pair(key, static_cast<uint64_t>(at) / 2);
            x[i] = rounded<T>(s.init.value * pair[at % 2]);
          }
        });
      });
    });
  }
}

}  // namespace kintsugi::run
