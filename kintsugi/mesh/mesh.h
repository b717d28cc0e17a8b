// A mesh of ranks: named axes, each decomposed into prime factors, so that part of an axis is a list of factors.
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
  std::vector<std::string> zigzag = {};  // dims split zigzag over it
  bool cuts_layers = false;              // pipeline axis: its ranks are stages, which hold different layers

  bool operator==(const Axis&) const = default;
};

// Index into Mesh::factors().
using Factor = int;

struct FactorInfo {
  std::string name;    // "data.0"; the axis name if it is the only factor
  int axis = 0;        // index into axes()
  int64_t size = 1;    // prime
  int64_t stride = 1;  // rank distance between neighbors along it
};

// Axes are outermost first: neighbors on the last axis are adjacent ranks. The number of ranks is the product of the
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

  // The factors of the named axes or factors ("data", "data.1"), major first. An axis of size 1 has none.
  std::vector<Factor> expand(std::span<const std::string> names) const;
  bool has(std::string_view name) const;  // axis or factor

  int64_t count(std::span<const Factor> factors) const;  // product of their sizes
  int64_t coordinate(int rank, Factor f) const;
  // The index of a rank among those that differ from it only along these factors, the first factor major.
  int64_t position(int rank, std::span<const Factor> factors) const;
  // Those ranks, in order of that index.
  std::vector<int> group(int rank, std::span<const Factor> factors) const;

  // The factors of the pipeline axis; all ranks of a stage have the same position along them.
  const std::vector<Factor>& stage_factors() const { return stage_factors_; }
  int stages() const { return static_cast<int>(count(stage_factors())); }
  int stage_of(int rank) const { return static_cast<int>(position(rank, stage_factors())); }

  tensor::Cut cut(std::string_view dim, Factor f) const;
  // "data", "data.1 tensor": abbreviates all factors of an axis, in order, to its name.
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
