// The layout of a value on the ranks of a mesh.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/mesh/mesh.h"
#include "kintsugi/tensor/combiner.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::mesh {

using tensor::Combiner;

// Split of a dim by the output positions of a window operation: the `outputs` positions are cut over the factors like
// any dim, and each rank holds the input positions that its windows reach, `extent` positions from o * stride - low for
// output o. Blocks have equal lengths and may overlap or leave gaps; positions outside the value are padding.
struct Halo {
  int64_t outputs = 0, stride = 1, extent = 1, low = 0;
  bool adds = false;  // overlapping blocks are summed to give the value; false: they hold copies

  bool operator==(const Halo&) const = default;
};

struct Split {
  std::string dim;
  std::vector<Factor> factors;  // in the order of cutting
  std::optional<Halo> halo = std::nullopt;

  bool operator==(const Split&) const = default;
};

struct Part {
  Factor factor = 0;
  Combiner combiner = Combiner::sum;

  bool operator==(const Part&) const = default;
};

// splits: dims that are split, sorted by name. partial: factors over which ranks hold partial results to combine. Over
// all other factors the value is replicated. Copies share their lists (copy on write).
class Layout {
 public:
  const std::vector<Split>& splits() const { return lists().splits; }
  const std::vector<Part>& partial() const { return lists().partial; }

  const std::vector<Factor>& of(std::string_view dim) const;  // the factors that split a dim
  std::string_view dim_of(Factor f) const;                    // "" if it splits no dim
  const Halo* halo(std::string_view dim) const;               // null: none
  bool has_halos() const;
  bool is_split(Factor f) const { return !dim_of(f).empty(); }
  const Part* part(Factor f) const;  // null: none
  bool sums(Factor f) const { return part(f) && part(f)->combiner == Combiner::sum; }
  std::vector<Factor> partial_factors() const;

  // Empty `factors`: the dim is not split.
  void set(std::string_view dim, std::vector<Factor> factors, std::optional<Halo> halo = std::nullopt);
  void add(std::string_view dim, Factor f);
  void set_part(Factor f, Combiner c);
  void remove_part(Factor f);

  bool operator==(const Layout& other) const { return lists_ == other.lists_ || lists() == other.lists(); }

 private:
  struct Lists {
    std::vector<Split> splits;
    std::vector<Part> partial;

    bool operator==(const Lists&) const = default;
  };
  const Lists& lists() const { return lists_ ? *lists_ : none(); }
  static const Lists& none();

  std::shared_ptr<const Lists> lists_;  // null: empty
};

// Shape of each rank's block, including padding.
tensor::Shape local_shape(const Mesh& mesh, const tensor::Shape& whole, const Layout& layout);
int64_t local_length(const Mesh& mesh, std::string_view dim, int64_t size, std::span<const Factor> factors,
                     const Halo* halo = nullptr);
// The global index of each local position of a dim on a rank.
tensor::DimIndex local_index(const Mesh& mesh, std::string_view dim, int64_t size, std::span<const Factor> factors,
                             int rank, const Halo* halo = nullptr);
bool is_padded(const Mesh& mesh, std::string_view dim, int64_t size, std::span<const Factor> factors);

// "batch/data, sum over tensor", "height/space with halo 3 stride 1", "whole"
std::string to_string(const Mesh& mesh, const Layout& layout);

}  // namespace kintsugi::mesh
