// Resampling along up to three dims, [samples spatial... channels], without allocation: which positions contribute to
// which, with which weight.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels {

// Upsampling (ops/upsample.cpp): `from` are positions of the shorter value, `to` those of the longer.
class UpsampleTaps {
 public:
  static constexpr size_t kMost = 3;

  UpsampleTaps(const KernelCall& call, const tensor::Shape& shorter, const tensor::Shape& longer)
      : linear_(call.attributes.text("mode") == "linear") {
    size_t i = kMost - (shorter.rank() - 2);
    for (const auto& [dim, w] : tensor::windows_of(call.attributes)) {
      axes_[i++] = {shorter.size(dim), longer.size(dim),       w, call.attributes.integer("positions_" + dim),
                    &call.index(dim),  &call.window_index(dim)};
      from *= shorter.size(dim), to *= longer.size(dim);
    }
  }

  int64_t from = 1, to = 1;  // positions per sample

  // Calls f(position of the shorter value, position of the longer value, weight).
  template <typename F>
  void for_each(const F& f) const {
    along(0, [&](int64_t i0, int64_t o0, double w0) {
      along(1, [&](int64_t i1, int64_t o1, double w1) {
        along(2, [&](int64_t i2, int64_t o2, double w2) {
          f((i0 * axes_[1].from + i1) * axes_[2].from + i2, (o0 * axes_[1].to + o1) * axes_[2].to + o2, w0 * w1 * w2);
        });
      });
    });
  }

 private:
  struct Axis {
    int64_t from = 1, to = 1;
    tensor::Window window = {};
    int64_t positions = 1;                                             // over the whole shorter value
    const tensor::DimIndex *index = nullptr, *window_index = nullptr;  // null: no window
  };

  // The contribution of position `i` of all to position `k` of its window. Linear weights decrease with the distance of
  // the centers; beyond the centers of the first and last positions they are constant.
  double weight(const Axis& a, int64_t i, int64_t k) const {
    if (!linear_) return 1.0;
    const auto f = static_cast<double>(a.window.stride), at = static_cast<double>(k);
    const double distance = a.window.stride % 2 == 0 ? (at + 0.5) / f - 1.0 : (at - f + 1.0) / f;
    if ((i == 0 && distance < 0.0) || (i == a.positions - 1 && distance > 0.0)) return 1.0;
    return distance < 0.0 ? 1.0 + distance : 1.0 - distance;
  }

  template <typename F>
  void along(size_t axis, const F& f) const {
    const Axis& a = axes_[axis];
    if (!a.index) return f(0, 0, 1.0);
    for (int64_t i = 0; i < a.from; ++i) {
      const int64_t global = (*a.index)[i];
      if (global < 0) continue;
      for (int64_t k = 0; k < a.window.kernel; ++k) {
        const int64_t o = i * a.window.stride - a.window.low + k;
        if (o >= 0 && o < a.to && (*a.window_index)[o] >= 0) f(i, o, weight(a, global, k));
      }
    }
  }

  std::array<Axis, kMost> axes_ = {};
  bool linear_ = false;
};

// Adaptive pooling (ops/adaptive_pool.cpp): `from` are positions of x, `to` those of y.
class AdaptiveTaps {
 public:
  static constexpr size_t kMost = 3;

  AdaptiveTaps(const tensor::Shape& x, const tensor::Shape& y) {
    size_t i = kMost - (x.rank() - 2);
    for (size_t d = 1; d + 1 < x.rank(); ++d) {
      axes_[i++] = {x[d].size, y[d].size};
      from *= x[d].size, to *= y[d].size;
    }
  }

  int64_t from = 1, to = 1;

  // Calls f(position of x, position of y, weight).
  template <typename F>
  void for_each(const F& f) const {
    along(0, [&](int64_t i0, int64_t o0, double w0) {
      along(1, [&](int64_t i1, int64_t o1, double w1) {
        along(2, [&](int64_t i2, int64_t o2, double w2) {
          f((i0 * axes_[1].from + i1) * axes_[2].from + i2, (o0 * axes_[1].to + o1) * axes_[2].to + o2, w0 * w1 * w2);
        });
      });
    });
  }

 private:
  struct Axis {
    int64_t from = 1, to = 1;
  };

  template <typename F>
  void along(size_t axis, const F& f) const {
    const Axis& a = axes_[axis];
    for (int64_t o = 0; o < a.to; ++o) {
      const int64_t begin = o * a.from / a.to, end = ((o + 1) * a.from + a.to - 1) / a.to;
      for (int64_t i = begin; i < end; ++i) f(i, o, 1.0 / static_cast<double>(end - begin));
    }
  }

  std::array<Axis, kMost> axes_ = {};
};

}  // namespace kintsugi::kernels
