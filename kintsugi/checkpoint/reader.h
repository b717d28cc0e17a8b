// Loading a checkpoint, in any layout: a rank requests the parts that it needs, and only the pieces that overlap them
// are read. Several threads may read through one reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "kintsugi/checkpoint/index.h"
#include "kintsugi/checkpoint/safetensors.h"
#include "kintsugi/checkpoint/tensor_source.h"

namespace kintsugi::checkpoint {

class CheckpointReader : public TensorSource {
 public:
  // Reads the index and checks it, its checksum, and that the files exist with the right sizes. UserError if not.
  explicit CheckpointReader(std::filesystem::path folder);

  const std::filesystem::path& folder() const override { return folder_; }
  int64_t step() const { return index_.step; }
  const std::string& state() const { return index_.state; }  // a JSON object
  const Index& index() const { return index_; }
  uint64_t checksum() const { return checksum_; }  // of the index, which has those of every other byte
  std::string config() const;                      // UserError if the file is damaged, as for the tokenizer
  std::string tokenizer() const;                   // empty: none

  bool has(std::string_view name) const { return index_.tensors.find(name) != index_.tensors.end(); }
  const StoredTensor& at(std::string_view name) const;  // UserError, with the nearest name, if there is none

  const tensor::Type& type(std::string_view name) const override { return at(name).type; }

  // Checks each piece once, when it is first read.
  void read(const Slice& slice, tensor::DType dtype, std::span<std::byte> out) const override;

  // Checks every byte of the checkpoint. UserError for the first that is damaged.
  void verify() const { verify(0, 1, nullptr); }
  void verify(int share, int shares, const std::function<bool(std::string_view)>& wanted) const override;
  // Opens every file, and keeps it: from then on the checkpoint can be read even if it is removed. UserError if one is
  // gone already, or damaged.
  void hold() const;
  void trust(const std::function<bool(std::string_view)>& wanted) const override;

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
