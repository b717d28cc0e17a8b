// The windows of pooling, up to three, without allocation.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::kernels::cpu {

class PoolWindows {
 public:
  static constexpr size_t kMost = 3;

  PoolWindows(const KernelCall& call, const tensor::Shape& x, const tensor::Shape& y)
      : samples(x[0].size),
        channels(x[x.rank() - 1].size),
        exclude_padding_(call.attributes.integer_or("exclude_padding", 0) != 0) {
    size_t i = kMost - (x.rank() - 2);  // the last windows; those before have one position
    for (const auto& [dim, w] : tensor::windows_of(call.attributes)) {
      axes_[i] = {x.size(dim), y.size(dim), w, &call.window_index(dim)};
      inputs *= axes_[i].in, outputs *= axes_[i].out, window_ *= w.kernel;
      ++i;
    }
  }

  int64_t samples = 0, channels = 0, inputs = 1, outputs = 1;  // inputs, outputs: positions per sample

  // The first input position of a window along each axis, which may be absent.
  using Covered = std::array<int64_t, kMost>;

  // Calls f(output position, its window) for each position of y.
  template <typename F>
  void for_outputs(const F& f) const {
    int64_t o = 0;
    for (int64_t d = 0; d < axes_[0].out; ++d)
      for (int64_t h = 0; h < axes_[1].out; ++h)
        for (int64_t w = 0; w < axes_[2].out; ++w)
          f(o++, Covered{axes_[0].first(d), axes_[1].first(h), axes_[2].first(w)});
  }

  // Calls f(input position) for each present position of the window, in order.
  template <typename F>
  void for_positions(const Covered& covered, const F& f) const {
    for_axis(0, covered, [&](int64_t d) {
      for_axis(1, covered, [&](int64_t h) {
        for_axis(2, covered, [&](int64_t w) { f((d * axes_[1].in + h) * axes_[2].in + w); });
      });
    });
  }

  int64_t divisor(const Covered& covered) const {
    if (!exclude_padding_) return window_;
    int64_t count = 0;
    for_positions(covered, [&](int64_t) { ++count; });
    return std::max<int64_t>(count, 1);
  }

 private:
  struct Axis {
    int64_t in = 1, out = 1;
    tensor::Window window = {};
    const tensor::DimIndex* index = nullptr;  // null: all positions are present

    int64_t first(int64_t output) const { return output * window.stride - window.low; }
    bool present(int64_t i) const { return i >= 0 && i < in && (!index || (*index)[i] >= 0); }
  };

  template <typename F>
  void for_axis(size_t axis, const Covered& covered, const F& f) const {
    const Axis& a = axes_[axis];
    for (int64_t k = 0; k < a.window.kernel; ++k) {
      const int64_t i = covered[axis] + k * a.window.dilation;
      if (a.present(i)) f(i);
    }
  }

  std::array<Axis, kMost> axes_ = {};
  int64_t window_ = 1;
  bool exclude_padding_ = false;
};

}  // namespace kintsugi::kernels::cpu
