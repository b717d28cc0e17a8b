// Loading a checkpoint, in any layout: a rank requests the parts that it needs, and only the pieces that overlap them
// are read. Several threads may read through one reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "kintsugi/checkpoint/index.h"
#include "kintsugi/checkpoint/safetensors.h"

namespace kintsugi::checkpoint {

// The requested part of a tensor: without `box`, all of it; without `flat`, all of the box.
struct Slice {
  std::string_view name;
  std::optional<Box> box;
  std::optional<Range> flat;  // elements of the box, row-major
};

class CheckpointReader {
 public:
  // Reads the index and checks it, its checksum, and that the files exist with the right sizes. UserError if not.
  explicit CheckpointReader(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  int64_t step() const { return index_.step; }
  const std::string& state() const { return index_.state; }  // a JSON object
  const Index& index() const { return index_; }
  uint64_t checksum() const { return checksum_; }  // of the index, which has those of every other byte
  std::string config() const;                      // UserError if the file is damaged, as for the tokenizer
  std::string tokenizer() const;                   // empty: none

  bool has(std::string_view name) const { return index_.tensors.find(name) != index_.tensors.end(); }
  const StoredTensor& at(std::string_view name) const;  // UserError, with the nearest name, if there is none

  // Fills `out` with the elements of the slice as `dtype`, rounded to nearest even if it is another floating type than
  // the stored one. Checks each piece once, when it is first read. UserError for a damaged piece, naming file and
  // tensor, and for integers requested as another type.
  void read(const Slice& slice, tensor::DType dtype, std::span<std::byte> out) const;

  // Checks every byte of the checkpoint. UserError for the first that is damaged.
  void verify() const { verify(0, 1, nullptr); }
  // Part `share` of `shares` of that work; all parts together are all of it. If `wanted` is not null, only the pieces
  // of the tensors that it selects.
  void verify(int share, int shares, const std::function<bool(std::string_view)>& wanted) const;
  // Opens every file, and keeps it: from then on the checkpoint can be read even if it is removed. UserError if one is
  // gone already, or damaged.
  void hold() const;
  // Marks the pieces of those tensors as checked, since other ranks have checked them.
  void trust(const std::function<bool(std::string_view)>& wanted) const;

 private:
  std::string beside(std::string_view name) const;
  const SafetensorsFile& file(const std::string& name) const;
  // A piece in its file, checked.
  TensorInFile locate(const StoredTensor& tensor, const StoredPiece& piece) const;

  std::filesystem::path folder_;
  Index index_;
  uint64_t checksum_ = 0;
  mutable std::mutex mutex_;  // of what follows
  mutable std::map<std::string, SafetensorsFile, std::less<>> open_;
  mutable std::set<const StoredPiece*> checked_;
  mutable std::map<std::string, std::string, std::less<>> texts_;  // of the files that are held beside
};

}  // namespace kintsugi::checkpoint
