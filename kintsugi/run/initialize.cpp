// The initial value of every state, for each element a function of (seed, name, index in the whole tensor).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/host/normal.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/program/state_runs.h"
#include "kintsugi/run/gpu/draw.h"
#include "kintsugi/run/state_blocks.h"

namespace kintsugi::gpu_emulated {

kintsugi::run::DeviceDraw device_draw;

}  // namespace kintsugi::gpu_emulated

namespace kintsugi::run {

DeviceDraw* draw_on(device::Device& device) {
  if (device.emulated()) return gpu_emulated::device_draw;
  auto* const found = reinterpret_cast<DeviceDraw*>(device.symbol(kDeviceDraw));
  base::require(found != nullptr, "run", "the module of {} has no kernel for initial values", device.kind());
  return found;
}

namespace {

template <typename T>
T rounded(double x) {
  if constexpr (std::is_same_v<T, int8_t>) {
    return static_cast<T>(std::clamp(std::nearbyint(x), -127.0, 127.0));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(x);
  } else {
    return T(static_cast<float>(x));
  }
}

// x[i] = scale times the normal number at first + i.
template <typename T>
void draw(std::array<uint32_t, 2> key, uint64_t first, double scale, std::span<T> x) {
  if constexpr (sizeof(T) > sizeof(float)) {
    std::array<double, 2> pair = {};
    for (size_t i = 0; i < x.size(); ++i) {
      const uint64_t at = first + i;
      if (i == 0 || at % 2 == 0) pair = kernels::normal_pair(key, at / 2);
      x[i] = rounded<T>(scale * pair[at % 2]);
    }
  } else {
    std::array<float, 1024> some;
    for (size_t at = 0; at < x.size(); at += some.size()) {
      const std::span<float> drawn = std::span(some).first(std::min(some.size(), x.size() - at));
      kernels::host::draw_normal(key, first + at, scale, drawn);
      std::ranges::transform(drawn, x.begin() + static_cast<std::ptrdiff_t>(at), [](float v) { return rounded<T>(v); });
    }
  }
}

}  // namespace

void Executor::initialize(uint64_t seed, bool drawn) {
  DeviceSide* const device = runner_->device();
  for (const program::StateInfo& s : program_.states) {
    if (s.in_bucket && s.first != 0) continue;
    const program::Buffer& buffer = program_.buffer(s.buffer);
    if (buffer.region == program::Region::arena) continue;  // each step produces it
    if (in_memory_of_device(s.buffer)) {
      device->stream().zero(state_view(s.buffer).data, buffer.bytes());
      continue;
    }
    change_blocks(*this, s.buffer, [](std::span<std::byte> block) { std::memset(block.data(), 0, block.size()); });
  }
  for (const program::StateInfo& s : program_.states) {
    const bool constant = s.init.kind == tensor::Init::Kind::constant;
    if (constant ? s.init.value == 0.0 : !drawn) continue;
    // A master and a moving average get the same numbers as their weight.
    const bool is_copy = s.is_master() || s.part == tensor::OptimizerPart::average;
    const auto key = kernels::random_key(seed, is_copy ? s.weight : s.name);
    const tensor::DType dtype = program_.buffer(s.buffer).type.dtype;
    if (in_memory_of_device(s.buffer)) {
      std::byte* const data = state_view(s.buffer).data;
      program::for_each_run(program_, s, rank(), [&](const program::Run& run) {
        draw_on(device->device())(device->stream(), {.to = data + run.at * tensor::size_of(dtype),
                                                     .dtype = dtype,
                                                     .count = run.count,
                                                     .whole = run.whole,
                                                     .constant = constant,
                                                     .scale = s.init.value,
                                                     .key = key});
      });
      continue;
    }
    const auto fill = [&]<typename T>(T) {
      change_runs(*this, s, [&](const program::Run& run, std::byte* data) {
        T* x = reinterpret_cast<T*>(data);
        team_.for_shares(run.count, 1024, [&](base::Range r, int) {
          if (constant) return static_cast<void>(std::fill(x + r.begin, x + r.end, rounded<T>(s.init.value)));
          draw(key, static_cast<uint64_t>(run.whole + r.begin), s.init.value,
               std::span(x + r.begin, static_cast<size_t>(r.size())));
        });
      });
    };
    dtype == tensor::DType::i8 ? fill(int8_t{}) : tensor::dispatch(dtype, fill);
  }
  if (device) device->synchronize();
}

}  // namespace kintsugi::run
