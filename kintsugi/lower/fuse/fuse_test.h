// For tests of fusion: the result for a CPU and for a device, as short text.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "kintsugi/kernels/gpu/device_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/lower/fuse/fuse.h"
#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower::fuse_test {

inline const Shape kX = {{"batch", 2}, {"embed", 4}}, kW = {{"embed", 4}, {"ffn", 3}}, kY = {{"batch", 2}, {"ffn", 3}},
                   kB = {{"ffn", 3}};

inline std::string fused(Maker& m) {
  fuse(m.p, ops::operations(), *kernels::reference_kernels());
  return text(m.p);
}
inline std::string fused_for_device(Maker& m) {
  fuse(m.p, ops::operations(), *kernels::planned_device_kernels());
  return text(m.p);
}

// The gradient g of w, from x and dy, to be accumulated into the state "w.g".
struct Gradient : Maker {
  BufferId x = arena("x", kX), dy = arena("dy", kY), g = arena("g", kW),
           state_g = state("w.g", kW, program::StateKind::gradient);

  Gradient() { body("backward"); }
  BufferId another() { return arena("h", kW); }
};

// A program that begins as M does, and the expected result.
template <typename M>
struct Case {
  const char* why;
  void (*make)(M&);
  const char* after = nullptr;
};

// The instructions of each, preceded by `head`.
template <typename M>
void expect_fused(std::span<const Case<M>> cases, std::string (*fused)(Maker&), const std::string& head) {
  for (const Case<M>& c : cases) {
    M m;
    c.make(m);
    EXPECT_EQ(fused(m), head + c.after) << c.why;
  }
}

}  // namespace kintsugi::lower::fuse_test
