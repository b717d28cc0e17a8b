// Assigns each sample to one of several sources.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kintsugi::samples {

// Assigns samples 0, 1, 2, ... to the sources evenly in proportion to their weights: after any number n of samples, a
// source has received n times its fraction, with an error below one per halving of the list (two sources: half a
// sample). A tree halves the list of sources by weight; each node gives its left child the multiples of a fixed
// fraction, rounded, so that walking down the tree finds the source of a sample and its index within the source without
// a table.
class Mixture {
 public:
  // Weights are positive and finite; they need not sum to one.
  explicit Mixture(std::span<const double> weights);

  struct Place {
    size_t source;
    uint64_t index;  // number of earlier samples from the same source
  };
  Place locate(uint64_t sample) const;

  size_t num_sources() const { return num_sources_; }

 private:
  struct Node {
    uint64_t left_fraction;  // in units of 2^-64
    int left;                // a node, or a source as -1 - source
    int right;
  };
  int build(std::span<const double> weights, size_t first);

  std::vector<Node> nodes_;
  int root_ = -1;
  size_t num_sources_;
};

}  // namespace kintsugi::samples
