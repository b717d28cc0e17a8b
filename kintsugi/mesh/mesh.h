// A mesh of ranks: named axes, each stored as its prime factors, so that "a part of an axis" is a list of factors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/tensor/split.h"

namespace kintsugi::mesh {

struct Axis {
  std::string name;
  int64_t size = 1;
  std::vector<std::string> zigzag = {};  // dims that are split zigzag over it
  bool cuts_layers = false;              // its ranks are stages of a pipeline: they hold different layers of the model

  bool operator==(const Axis&) const = default;
};

// The position of a factor in Mesh::factors().
using Factor = int;

struct FactorInfo {
  std::string name;    // "data.0"; the axis' name if it is the only factor
  int axis = 0;        // position in axes()
  int64_t size = 1;    // a prime
  int64_t stride = 1;  // ranks between neighbours along it
};

// Axes outermost first: neighbours on the last axis are neighbouring ranks. The number of ranks is the product of
// sizes.
class Mesh {
 public:
  Mesh() : Mesh(std::vector<Axis>{}) {}
  Mesh(std::vector<Axis> axes);

  const std::vector<Axis>& axes() const { return axes_; }
  const std::vector<FactorInfo>& factors() const { return factors_; }
  const FactorInfo& factor(Factor f) const { return factors_[static_cast<size_t>(f)]; }
  int64_t ranks() const;
  int64_t size(std::string_view axis) const;  // 1 if there is no such axis

  // The factors of the named axes or factors ("data", "data.1"), major first. None for an axis of size 1.
  std::vector<Factor> expand(std::span<const std::string> names) const;
  bool has(std::string_view name) const;  // as an axis or a factor

  int64_t count(std::span<const Factor> factors) const;  // the product of their sizes
  int64_t coordinate(int rank, Factor f) const;
  // The place of a rank among those that differ from it along these factors only, the first factor major.
  int64_t position(int rank, std::span<const Factor> factors) const;
  // Those ranks, in the order of their places.
  std::vector<int> group(int rank, std::span<const Factor> factors) const;

  // The factors of the axis that cuts layers: all ranks of a pipeline stage have the same place along them.
  const std::vector<Factor>& stage_factors() const { return stage_factors_; }
  int stages() const { return static_cast<int>(count(stage_factors())); }
  int stage_of(int rank) const { return static_cast<int>(position(rank, stage_factors())); }

  tensor::Cut cut(std::string_view dim, Factor f) const;
  // "data", "data.1 tensor": an axis by its name if all its factors are there in order.
  std::string name_of(std::span<const Factor> factors) const;

  bool operator==(const Mesh& other) const { return axes_ == other.axes_; }

 private:
  std::vector<Axis> axes_;
  std::vector<FactorInfo> factors_;
  std::vector<Factor> stage_factors_;
};

// "data=2 tensor=4", "one rank"
std::string to_string(const Mesh& mesh);

}  // namespace kintsugi::mesh
