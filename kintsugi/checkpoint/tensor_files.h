// The tensors of a model as Hugging Face stores them: one safetensors file, or several with an index.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/checkpoint/safetensors.h"

namespace kintsugi::checkpoint {

// Opens a *.safetensors file, or a folder with model.safetensors or else model.safetensors.index.json, and checks that
// every tensor in the index exists. Throws UserError otherwise, or if the tensors are in PyTorch's own format. The
// tensors are valid as long as this object.
class TensorFiles {
 public:
  explicit TensorFiles(const std::filesystem::path& path);

  const std::map<std::string, TensorInFile, std::less<>>& tensors() const { return tensors_; }
  // Name -> dtype of tensors whose dtype is not supported.
  const std::map<std::string, std::string, std::less<>>& foreign() const { return foreign_; }
  bool has(std::string_view name) const { return tensors_.find(name) != tensors_.end(); }
  const TensorInFile& at(std::string_view name) const;  // UserError, suggesting the nearest name, if there is none
  uint64_t checksum() const;                            // of the headers
  // One line per file that identifies it in the file system, without reading it.
  std::string places() const;
  // One line per file with the checksum of all its bytes, which are read.
  std::string contents() const;

 private:
  void take_all(const std::filesystem::path& file);
  void take_indexed(const std::filesystem::path& index);
  [[noreturn]] void refuse() const;  // for a folder without safetensors

  std::filesystem::path path_;
  std::vector<std::filesystem::path> paths_;  // of the files
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, TensorInFile, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> foreign_;
};

}  // namespace kintsugi::checkpoint
