// Reads the weights of a model from a Hugging Face folder (config.json and safetensors), with our names and dims. Each
// rank reads only the parts that it needs, from any tensor and file.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kintsugi/checkpoint/tensor_files.h"
#include "kintsugi/checkpoint/tensor_source.h"
#include "kintsugi/exchange/config_json.h"
#include "kintsugi/exchange/read_strided.h"
#include "kintsugi/exchange/weight_map.h"

namespace kintsugi::exchange {

// Whether the folder contains what a FolderReader reads, and is not a checkpoint of ours.
bool is_hugging_face(const std::filesystem::path& folder);

// Throws UserError for a file of weights, which is no folder.
void require_no_weight_file(const std::filesystem::path& path);

// The content of config.json; throws UserError if it cannot be read.
std::string config_text(const std::filesystem::path& folder);
// What the folder says of the model: config.json, and for images preprocessor_config.json, if there is one.
FolderConfig read_folder_config(const std::filesystem::path& folder);

class FolderReader : public checkpoint::TensorSource {
 public:
  // Reads config.json and the headers of all files. Throws UserError, naming the tensor, if a weight of the model is
  // missing, has another shape or is not of a floating type, or if the folder contains a tensor that the model lacks;
  // of a network of images, the family that the tensors are those of, if there is one. `allow_not_finite`: accept
  // weights that are NaN or infinity.
  explicit FolderReader(std::filesystem::path folder, bool allow_not_finite = false);

  const std::filesystem::path& folder() const override { return folder_; }
  const FolderConfig& config() const { return config_; }
  uint64_t checksum() const { return checksum_; }  // of config.json and the headers
  const checkpoint::TensorFiles& files() const { return files_; }
  // What was ignored, and what was read under another name.
  std::vector<std::string> notes() const;
  // Throws UserError if the folder holds a network of images without its head, which can only initialize a training
  // with a new one.
  void require_head() const;
  // In the order of the tensors.
  const std::vector<std::string>& names() const { return weight_names_; }

  const tensor::Type& type(std::string_view name) const override;
  // `out` must be aligned to elements of `dtype`. Allocates up to 1 MiB. Throws UserError, naming the tensor, if an
  // element of the slice is NaN or infinity.
  void read(const checkpoint::Slice& slice, tensor::DType dtype, std::span<std::byte> out) const override;
  // Reads are checked as they happen.
  void verify(int, int, const std::function<bool(std::string_view)>&) const override {}
  void trust(const std::function<bool(std::string_view)>&) const override {}

 private:
  struct Part {
    const MappedWeight* place = nullptr;
    size_t tensor = 0;
  };
  struct Weight {
    tensor::Type type;
    std::vector<Part> parts;  // ordered by `begin`
  };

  void note_wrapped_names();
  void choose_objective();
  // How the folder's tensors differ from those of a model of images: not, in the number of outputs, by the absence of
  // the head, or otherwise.
  enum class Fit : uint8_t { whole, other_outputs, no_head, none };

  const models::HuggingFace& names_of(std::string_view family) const;
  void choose_stem();
  Fit fit(const std::vector<MappedTensor>& tensors, const models::HuggingFace& names) const;
  // The number of tensors that the folder has in their shapes.
  int64_t count_fitting(const std::vector<MappedTensor>& tensors, const models::HuggingFace& names) const;
  // That number relative to all tensors of the folder and the model.
  double share_of_fitting(const std::vector<MappedTensor>& tensors, const models::HuggingFace& names) const;
  void require_architecture();
  void require_running_statistics() const;
  [[noreturn]] void refuse_outputs() const;
  void find_tensors();
  void check_tied() const;
  bool has(const std::string& name) const;                 // of any dtype
  std::string stored_name(const std::string& name) const;  // with the prefix of the folder
  std::string name_in_folder(const std::string& name, const models::HuggingFace& theirs) const;
  // Whether a tensor is not a weight, according to the names.
  static bool is_computed(std::string_view name, const models::HuggingFace& theirs);
  std::vector<std::string_view> rest(const std::set<std::string_view>& found) const;
  void refuse_rest(const std::set<std::string_view>& found) const;
  const Weight& at(std::string_view name) const;
  void add_weight(const MappedWeight& place, size_t tensor, tensor::DType dtype);
  [[noreturn]] void refuse_not_finite(size_t tensor) const;
  std::vector<std::byte> take_staging() const;
  void put_staging(std::vector<std::byte> staging) const;

  std::filesystem::path folder_;
  FolderConfig config_;
  uint64_t checksum_ = 0;
  bool allow_not_finite_;
  checkpoint::TensorFiles files_;
  std::map<std::string, std::string, std::less<>> wrapped_;  // {plain name, name in the folder}, where they differ
  const models::HuggingFace* names_ = nullptr;               // of the tensors
  std::vector<MappedTensor> tensors_;
  std::vector<checkpoint::TensorInFile> stored_;  // [tensor]
  std::vector<std::string> weight_names_;
  std::string head_;  // the prefix of the weights of a head that the folder lacks
  std::map<std::string, Weight, std::less<>> weights_;
  mutable std::mutex mutex_;                             // of what follows
  mutable std::vector<std::vector<std::byte>> staging_;  // free buffers
};

}  // namespace kintsugi::exchange
