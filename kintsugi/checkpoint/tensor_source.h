// A source of model weights: a checkpoint, or a folder of another program.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "kintsugi/checkpoint/box.h"

namespace kintsugi::checkpoint {

// A requested part of a tensor: without `box`, the whole tensor; without `flat`, the whole box.
struct Slice {
  std::string_view name;
  std::optional<Box> box;
  std::optional<Range> flat;  // elements of the box, row-major
};

// Thread-safe for reading.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  virtual const std::filesystem::path& folder() const = 0;
  // Type of the whole tensor; throws UserError, suggesting the nearest name, if there is none.
  virtual const tensor::Type& type(std::string_view name) const = 0;

  // Fills `out` with the elements of the slice as `dtype`, rounded to nearest even if the stored type is another
  // floating-point type. Verifies what is read. Throws UserError for damage, naming file and tensor, and for integers
  // requested as another type.
  virtual void read(const Slice& slice, tensor::DType dtype, std::span<std::byte> out) const = 0;

  // Performs part `share` of `shares` of the verification that read() would need to read extra bytes for; all parts
  // together cover everything. If `wanted` is not null, verifies only the tensors that it selects. Throws UserError for
  // the first damaged tensor.
  virtual void verify(int share, int shares, const std::function<bool(std::string_view)>& wanted) const = 0;
  // Marks these tensors as verified, since other ranks have verified them.
  virtual void trust(const std::function<bool(std::string_view)>& wanted) const = 0;
};

// Whether the item that begins at `at` of `all` (bytes, say) belongs to part `share` of `shares`.
inline bool in_share(int64_t at, int64_t all, int share, int shares) {
  const auto border = [&](int64_t n) { return all / shares * n + all % shares * n / shares; };
  return border(share) <= at && at < border(share + 1);
}

}  // namespace kintsugi::checkpoint
