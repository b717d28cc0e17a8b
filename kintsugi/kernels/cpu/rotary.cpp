#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/rotary_turn.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#include "kintsugi/kernels/rotary_frequencies.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/rotary.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

template <typename T>
void turn_rows(const T* x, T* y, const RotaryTurn& t) {
  const int64_t rows = t.rows, half = t.half;
  const float *cosine = t.cosine, *sine = t.sine;
  const bool interleaved = t.interleaved;
  for (int64_t row = 0; row < rows; ++row, x += t.head_dim, y += t.head_dim) {
    int64_t i = 0;
    if (!interleaved) {
      for (; i + lanes() <= half; i += lanes()) {
        const V a = load(x + i), b = load(x + i + half), c = load(cosine + i), s = load(sine + i);
        store(hn::NegMulAdd(b, s, hn::Mul(a, c)), y + i);
        store(hn::MulAdd(a, s, hn::Mul(b, c)), y + i + half);
      }
    }
    for (; i < half; ++i) {
      const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
      const float a = static_cast<float>(x[first]), b = static_cast<float>(x[second]);
      y[first] = static_cast<T>(a * cosine[i] - b * sine[i]);
      y[second] = static_cast<T>(a * sine[i] + b * cosine[i]);
    }
    if (x != y) std::copy(x + 2 * half, x + t.head_dim, y + 2 * half);
  }
}

void turn_position(const KernelCall& call, int64_t begin, const RotaryTurn& turn) {
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    turn_rows(reinterpret_cast<const T*>(call.ins[0].data) + begin, reinterpret_cast<T*>(call.outs[0].data) + begin,
              turn);
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(turn_position);

int64_t rotary_workspace(const KernelShapes& shapes) {
  const tensor::Shape& x = shapes.ins[0]->shape;
  const int64_t half = rotary_dims(shapes.attributes, x.size("head_dim")) / 2;
  Scratch scratch;
  scratch.take<float>(x.size("seq") * half);
  scratch.take<float>(x.size("seq") * half);
  return scratch.bytes();
}

namespace {

// Rotates the heads of `tokens` rows of x, row i by the angles of entry i % entries of the table, at position
// at(entry).
template <typename At>
void turn_tokens(const KernelCall& call, int64_t entries, const At& at) {
  const tensor::Shape& x = call.ins[0].shape();
  const int64_t head_dim = x.size("head_dim");
  const RotaryFrequencies frequencies(call.attributes, head_dim);
  const int64_t half = frequencies.dims() / 2;
  const double magnitude = frequencies.magnitude();
  const int64_t at_position = x.stride(static_cast<size_t>(x.find("seq")));  // elements per position
  const double direction = call.attributes.integer("inverse") != 0 ? -1 : 1;
  const bool interleaved = call.attributes.integer("interleaved") != 0;
  Scratch scratch(call.workspace);
  float *cosine = scratch.take<float>(entries * half), *sine = scratch.take<float>(entries * half);
  call.team.for_shares(half, 1, [&](base::Range r, int) {
    for (int64_t i = r.begin; i < r.end; ++i) {
      const double frequency = frequencies[i];
      for (int64_t s = 0; s < entries; ++s) {
        const double angle = direction * static_cast<double>(at(s)) * frequency;
        cosine[s * half + i] = static_cast<float>(magnitude * std::cos(angle));
        sine[s * half + i] = static_cast<float>(magnitude * std::sin(angle));
      }
    }
  });
  const auto turn = HWY_DYNAMIC_DISPATCH(turn_position);
  call.team.for_shares(x.elements() / at_position, 1, [&](base::Range r, int) {
    for (int64_t i = r.begin; i < r.end; ++i) {
      const int64_t s = i % entries;
      turn(call, i * at_position,
           {at_position / head_dim, head_dim, half, interleaved, cosine + s * half, sine + s * half});
    }
  });
}

}  // namespace

// x: [batch seq ... head_dim]
void rotary(const KernelCall& call) {
  const tensor::DimIndex& index = call.index("seq");
  turn_tokens(call, call.ins[0].size("seq"), [&](int64_t s) { return index[s]; });
}

int64_t rotary_at_workspace(const KernelShapes& shapes) {
  const tensor::Shape& x = shapes.ins[0]->shape;
  const int64_t half = rotary_dims(shapes.attributes, x.size("head_dim")) / 2;
  Scratch scratch;
  scratch.take<float>(x.size("batch") * x.size("seq") * half);
  scratch.take<float>(x.size("batch") * x.size("seq") * half);
  return scratch.bytes();
}

// x: [batch seq ... head_dim], at: [batch]
void rotary_at(const KernelCall& call) {
  const int64_t seq = call.ins[0].size("seq");
  const auto at = call.ins[1].as<int32_t>();
  turn_tokens(call, call.ins[0].size("batch") * seq, [&](int64_t i) {
    const int64_t first = at[static_cast<size_t>(i / seq)];
    return first < 0 ? 0 : first + i % seq;
  });
}

}  // namespace kintsugi::kernels::cpu
#endif
