// For tests of kernels: values that own their memory, and calls of one kernel of a set by its kind.
//
//   Tensor x = random_tensor({{"batch", 2}, {"embed", 5}}, DType::f32, 1);
//   Tensor y(x.type());
//   run_kernel(*set, {.kind = "gelu", .attributes = {{"form", "tanh"}}}, {&x}, {&y});
//
// An output may be the same object as an input: the kernel then works in place. Operands and outputs are at their
// positions, null if absent, or omitted at the end.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/kernels/random.h"

namespace kintsugi::kernels::test {

using tensor::Attributes;
using tensor::DimIndex;
using tensor::DType;
using tensor::Shape;
using tensor::Type;
using tensor::View;

// Memory aligned to 64 bytes, followed by a guard.
class Memory {
 public:
  explicit Memory(int64_t bytes) : bytes_(bytes), lines_(static_cast<size_t>((bytes + 63) / 64 + 1)) {
    std::memset(lines_.data(), 0xFF, lines_.size() * sizeof(Line));
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(lines_.data()); }
  int64_t size() const { return bytes_; }
  bool guard_is_whole() const {
    for (size_t i = static_cast<size_t>(bytes_); i < lines_.size() * sizeof(Line); ++i) {
      if (data()[i] != std::byte{0xFF}) return false;
    }
    return true;
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  int64_t bytes_;
  std::vector<Line> lines_;
};

// A value with its memory. Initialized to NaN (integers: -1), to reveal elements that a kernel does not store.
class Tensor {
 public:
  explicit Tensor(Type type) : type_(std::move(type)), memory_(type_.bytes()) {}
  Tensor(Shape shape, DType dtype) : Tensor(Type{std::move(shape), dtype}) {}
  Tensor(Shape shape, DType dtype, const std::vector<double>& values) : Tensor(std::move(shape), dtype) {
    EXPECT_EQ(static_cast<int64_t>(values.size()), elements());
    for (size_t i = 0; i < values.size(); ++i) set(static_cast<int64_t>(i), values[i]);
  }

  const Type& type() const { return type_; }
  int64_t elements() const { return type_.shape.elements(); }
  View view() { return {memory_.data(), type_}; }
  bool guard_is_whole() const { return memory_.guard_is_whole(); }

  double get(int64_t i) const {
    double value = 0;
    switch (type_.dtype) {
      case DType::i32:
        return at<int32_t>(i);
      case DType::i64:
        return static_cast<double>(at<int64_t>(i));
      case DType::u16:
        return at<uint16_t>(i);
      case DType::u8:
        return at<uint8_t>(i);
      case DType::i8:
        return at<int8_t>(i);
      default:
        tensor::dispatch(type_.dtype, [&]<typename T>(T) {
          value = static_cast<double>(static_cast<tensor::arithmetic_t<T>>(at<T>(i)));
        });
    }
    return value;
  }
  void set(int64_t i, double value) {
    switch (type_.dtype) {
      case DType::i32:
        put(i, static_cast<int32_t>(value));
        break;
      case DType::i64:
        put(i, static_cast<int64_t>(value));
        break;
      case DType::u16:
        put(i, static_cast<uint16_t>(value));
        break;
      case DType::u8:
        put(i, static_cast<uint8_t>(value));
        break;
      case DType::i8:
        put(i, static_cast<int8_t>(value));
        break;
      default:
        tensor::dispatch(type_.dtype,
                         [&]<typename T>(T) { put(i, static_cast<T>(static_cast<tensor::arithmetic_t<T>>(value))); });
    }
  }
  void fill(double value) {
    for (int64_t i = 0; i < elements(); ++i) set(i, value);
  }
  std::vector<double> values() const {
    std::vector<double> list(static_cast<size_t>(elements()));
    for (int64_t i = 0; i < elements(); ++i) list[static_cast<size_t>(i)] = get(i);
    return list;
  }
  // The same values, rounded to another dtype.
  Tensor as(DType dtype) const { return Tensor(type_.shape, dtype, values()); }

 private:
  template <typename T>
  T at(int64_t i) const {
    T value;
    std::memcpy(&value, memory_.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void put(int64_t i, T value) {
    std::memcpy(memory_.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
  }

  Type type_;
  Memory memory_;
};

// Uniform in [low, high), the same for the same seed in every dtype (up to rounding).
inline Tensor random_tensor(Shape shape, DType dtype, uint64_t seed, double low = -1, double high = 1) {
  Tensor x(std::move(shape), dtype);
  const auto key = random_key(seed, "test");
  for (int64_t i = 0; i < x.elements(); ++i) {
    x.set(i, low + (high - low) * (random_word(key, 0, static_cast<uint64_t>(i)) / 4294967296.0));
  }
  return x;
}

// int32 in [low, high).
inline Tensor random_integers(Shape shape, uint64_t seed, int64_t low, int64_t high) {
  Tensor x(std::move(shape), DType::i32);
  const auto key = random_key(seed, "test");
  for (int64_t i = 0; i < x.elements(); ++i) {
    x.set(i, static_cast<double>(low + random_word(key, 0, static_cast<uint64_t>(i)) % (high - low)));
  }
  return x;
}

// A scalar or state filled with `value`.
inline Tensor filled(Shape shape, DType dtype, double value) {
  Tensor x(std::move(shape), dtype);
  x.fill(value);
  return x;
}

// What to call, and how. Dims that `indices` does not name are whole.
struct Trial {
  std::string kind = {};
  Attributes attributes = {};
  std::vector<NamedIndex> indices = {};
  uint32_t accumulate = 0;
  Numbers numbers = {};
  int threads = 1;
  std::vector<StatePlace> places = {};
};

// Runs the kernel, with a workspace of exactly the requested size; fails if it writes past the end of an operand.
inline void run_kernel(const KernelSet& set, const Trial& trial, const std::vector<Tensor*>& ins,
                       const std::vector<Tensor*>& outs) {
  const Kernel& kernel = set.find(trial.kind);
  std::vector<View> in_views, out_views;
  std::vector<const Type*> in_types, out_types;
  std::vector<NamedIndex> indices = trial.indices;
  const auto add = [&](Tensor* x, std::vector<View>& views, std::vector<const Type*>& types) {
    views.push_back(x ? x->view() : View());
    types.push_back(x ? &x->type() : nullptr);
    for (const tensor::Dim& dim : views.back().shape()) {
      bool known = false;
      for (const NamedIndex& named : indices) {
        if (named.dim != dim.name || named.windowed) continue;
        known = true;
        if (trial.attributes.has("kernel_" + dim.name)) continue;       // two sizes of one dim
        if (dim.name == "columns") continue;                            // a wider operand has more
        if (dim.name == "block") continue;                              // each list of blocks has its own length
        if (trial.attributes.text_or("dim", "") == dim.name) continue;  // one index per part
        EXPECT_EQ(named.index.local(), dim.size) << trial.kind << ": index of " << dim.name;
      }
      if (!known) indices.push_back({dim.name, DimIndex(dim.size)});
    }
  };
  const auto add_all = [&](const std::vector<Tensor*>& list, const tensor::OperandList& names, std::vector<View>& views,
                           std::vector<const Type*>& types) {
    uint32_t absent = names.absent_behind(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      add(list[i], views, types);
      if (!list[i]) absent |= 1u << i;
    }
    while (views.size() < names.size() && names[views.size()].optional) add(nullptr, views, types);
    ASSERT_TRUE(names.allows(views.size() - static_cast<size_t>(std::popcount(absent)), absent))
        << trial.kind << " takes " << to_string(names);
  };
  add_all(ins, kernel.ins, in_views, in_types);
  add_all(outs, kernel.outs, out_views, out_types);
  if (testing::Test::HasFatalFailure()) return;

  const KernelShapes shapes{in_types, out_types, trial.attributes, trial.threads};
  Memory workspace(kernel.workspace ? kernel.workspace(shapes) : 0);
  base::ThreadTeam team(trial.threads);
  kernel.run({.ins = in_views,
              .outs = out_views,
              .attributes = trial.attributes,
              .indices = indices,
              .accumulate = trial.accumulate,
              .workspace = {workspace.data(), static_cast<size_t>(workspace.size())},
              .numbers = trial.numbers,
              .team = team,
              .places = trial.places});
  EXPECT_TRUE(workspace.guard_is_whole()) << trial.kind << " wrote behind its workspace";
  for (size_t i = 0; i < ins.size(); ++i)
    EXPECT_TRUE(!ins[i] || ins[i]->guard_is_whole()) << trial.kind << " input " << i;
  for (size_t i = 0; i < outs.size(); ++i)
    EXPECT_TRUE(!outs[i] || outs[i]->guard_is_whole()) << trial.kind << " output " << i;
}

// Checks that every element of `got` is within absolute + relative * |wanted| of `want`; reports the worst one that is
// not. Infinities and NaN must be at the same positions.
inline void expect_close(const Tensor& got, const Tensor& want, double relative, double absolute,
                         const std::string& what = "") {
  ASSERT_EQ(got.elements(), want.elements()) << what;
  int64_t worst = -1, bad = 0;
  double excess = 0;
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double g = got.get(i), w = want.get(i);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    double over = std::abs(g - w) - absolute - relative * std::abs(w);
    if (std::isfinite(g) && std::isfinite(w) && over <= 0) continue;
    if (!std::isfinite(over)) over = std::numeric_limits<double>::infinity();
    ++bad;
    if (worst < 0 || over > excess) worst = i, excess = over;
  }
  EXPECT_EQ(bad, 0) << what << " " << to_string(got.type().shape) << ": element " << worst << " is "
                    << got.get(std::max<int64_t>(worst, 0)) << ", wanted " << want.get(std::max<int64_t>(worst, 0));
}

inline void expect_close(const Tensor& got, const std::vector<double>& want, double relative, double absolute,
                         const std::string& what = "") {
  expect_close(got, Tensor(got.type().shape, DType::f64, want), relative, absolute, what);
}

}  // namespace kintsugi::kernels::test
