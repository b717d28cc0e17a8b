// Where the weights of a model are read from: a checkpoint, or a folder of another program.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "kintsugi/checkpoint/box.h"

namespace kintsugi::checkpoint {

// The requested part of a tensor: without `box`, all of it; without `flat`, all of the box.
struct Slice {
  std::string_view name;
  std::optional<Box> box;
  std::optional<Range> flat;  // elements of the box, row-major
};

// Several threads may read from one.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  virtual const std::filesystem::path& folder() const = 0;
  // Of the whole tensor; UserError, with the nearest name, if there is none.
  virtual const tensor::Type& type(std::string_view name) const = 0;

  // Fills `out` with the elements of the slice as `dtype`, rounded to nearest even if it is another floating type than
  // the stored one. What is read is checked. UserError for damage, naming file and tensor, and for integers
  // requested as another type.
  virtual void read(const Slice& slice, tensor::DType dtype, std::span<std::byte> out) const = 0;

  // Part `share` of `shares` of the checks for which `read` would read more than it is asked for; all parts together
  // are all of them. If `wanted` is not null, only what belongs to the tensors that it selects. UserError for the first
  // that is damaged.
  virtual void verify(int share, int shares, const std::function<bool(std::string_view)>& wanted) const = 0;
  // Marks those tensors as checked, since other ranks have checked them.
  virtual void trust(const std::function<bool(std::string_view)>& wanted) const = 0;
};

// Whether the share of work that begins at `at` of `all` (bytes, say) is number `share` of `shares`.
inline bool in_share(int64_t at, int64_t all, int share, int shares) {
  const auto border = [&](int64_t n) { return all / shares * n + all % shares * n / shares; };
  return border(share) <= at && at < border(share + 1);
}

}  // namespace kintsugi::checkpoint
