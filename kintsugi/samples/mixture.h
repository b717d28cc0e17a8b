// Which of several sources a sample comes from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kintsugi::samples {

// Samples 0, 1, 2, ... are assigned to the sources in proportion to their weights, evenly: after any number n of
// samples a source has had n times its share, give or take less than one per halving of the list (two sources: half a
// sample). A tree halves the list of sources by weight; a node gives its left part the multiples of a fixed fraction,
// rounded, so that the source of a sample and its number within that source are found by walking down the tree,
// without a table.
class Mixture {
 public:
  // Weights are positive and finite; they need not add up to one.
  explicit Mixture(std::span<const double> weights);

  struct Place {
    size_t source;
    uint64_t index;  // how many earlier samples come from the same source
  };
  Place locate(uint64_t sample) const;

  size_t num_sources() const { return num_sources_; }

 private:
  struct Node {
    uint64_t left_fraction;  // of 2^64
    int left;                // a node, or a source as -1 - source
    int right;
  };
  int build(std::span<const double> weights, size_t first);

  std::vector<Node> nodes_;
  int root_ = -1;
  size_t num_sources_;
};

}  // namespace kintsugi::samples
