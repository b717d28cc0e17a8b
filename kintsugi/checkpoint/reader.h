// Loads a checkpoint in any layout: a rank requests the parts that it needs, and only pieces that overlap them are
// read. Thread-safe.
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
  // Reads the index and verifies it, its checksum, and that all files exist with the right sizes. Throws UserError
  // otherwise.
  explicit CheckpointReader(std::filesystem::path folder);

  const std::filesystem::path& folder() const override { return folder_; }
  int64_t step() const { return index_.step; }
  const std::string& state() const { return index_.state; }  // a JSON object
  const Index& index() const { return index_; }
  uint64_t checksum() const { return checksum_; }  // of the index, which contains the checksums of all other bytes
  std::string config() const;                      // UserError if the file is damaged; same for tokenizer()
  std::string tokenizer() const;                   // empty if there is none

  bool has(std::string_view name) const { return index_.tensors.find(name) != index_.tensors.end(); }
  const StoredTensor& at(std::string_view name) const;  // UserError, suggesting the nearest name, if there is none

  const tensor::Type& type(std::string_view name) const override { return at(name).type; }

  // Verifies each piece once, when it is first read.
  void read(const Slice& slice, tensor::DType dtype, std::span<std::byte> out) const override;

  // Verifies every byte of the checkpoint. Throws UserError for the first damaged piece.
  void verify() const { verify(0, 1, nullptr); }
  void verify(int share, int shares, const std::function<bool(std::string_view)>& wanted) const override;
  // Opens every file and keeps it open, so that the checkpoint can still be read after it is removed. Throws UserError
  // if a file is already gone or damaged.
  void hold() const;
  void trust(const std::function<bool(std::string_view)>& wanted) const override;

 private:
  std::string beside(std::string_view name) const;
  const SafetensorsFile& file(const std::string& name) const;
  // A verified piece in its file.
  TensorInFile locate(const StoredTensor& tensor, const StoredPiece& piece) const;

  std::filesystem::path folder_;
  Index index_;
  uint64_t checksum_ = 0;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::map<std::string, SafetensorsFile, std::less<>> open_;
  mutable std::set<const StoredPiece*> checked_;
  mutable std::map<std::string, std::string, std::less<>> texts_;  // files other than tensors, once held
};

}  // namespace kintsugi::checkpoint
