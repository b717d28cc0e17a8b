// model.safetensors.index.json:
//
//   index := { "weight_map": { tensor: file, ... }, ... }       a file is a name in the same folder
#include "kintsugi/checkpoint/tensor_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/read_only_file.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/where.h"

namespace kintsugi::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kSafetensors = ".safetensors";
constexpr std::string_view kWeightFiles[] = {kSafetensors, ".pth", ".pt", ".bin", ".ckpt"};
constexpr std::string_view kPyTorch[] = {"pytorch_model.bin", "pytorch_model.bin.index.json"};

}  // namespace

TensorFiles::TensorFiles(const fs::path& path) : path_(path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    take_all(path);
  else if (fs::exists(path / kSingle, error))  // takes precedence over an index, as in transformers
    take_all(path / kSingle);
  else if (fs::exists(path / kIndex, error))
    take_indexed(path / kIndex);
  else
    refuse();
}

void TensorFiles::refuse() const {
  std::error_code error;
  for (const std::string_view name : kPyTorch)
    if (fs::exists(path_ / name, error))
      throw base::UserError(kWhereSafetensors,
                            "{} holds {}, which is not read; write it as safetensors with transformers' "
                            "save_pretrained(safe_serialization=True)",
                            base::in_quotes(path_.string()), name);
  std::string weights;  // the first in alphabetical order
  for (fs::directory_iterator i(path_, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string(), kind = i->path().extension().string();
    if (std::ranges::find(kWeightFiles, kind) != std::end(kWeightFiles) && (weights.empty() || name < weights))
      weights = name;
  }
  if (weights.ends_with(kSafetensors))
    throw base::UserError(kWhereSafetensors, "{} holds {}; the weights must be in {}", base::in_quotes(path_.string()),
                          base::one_line(weights, 60), kSingle);
  if (!weights.empty())
    throw base::UserError(kWhereSafetensors,
                          "{} holds {}, which is not read; write its tensors with safetensors.torch.save_file to {}",
                          base::in_quotes(path_.string()), base::one_line(weights, 60), kSingle);
  throw base::UserError(kWhereSafetensors, "{} holds neither {} nor {}", base::in_quotes(path_.string()), kSingle,
                        kIndex);
}

void TensorFiles::take_all(const fs::path& file) {
  paths_.push_back(file);
  files_.push_back(std::make_unique<SafetensorsFile>(file));
  for (const auto& [name, entry] : files_.back()->header().tensors) tensors_.emplace(name, files_.back()->at(name));
  foreign_ = files_.back()->header().foreign;
}

void TensorFiles::take_indexed(const fs::path& index) {
  const auto json = base::Json::parse(kWhereSafetensors, index.string(), base::read_file(index));
  std::map<std::string, const SafetensorsFile*, std::less<>> open;
  for (const base::Json& value : json.at("weight_map").members()) {
    const std::string_view name = value.key();
    const std::string file(value.text());
    if (file.empty() || file == "." || file == ".." || file.find('/') != file.npos)
      value.refuse("the name of a file in the same folder");
    const auto [place, fresh] = open.try_emplace(file, nullptr);
    if (fresh) {
      std::error_code error;
      if (!fs::exists(index.parent_path() / file, error))
        value.fail("{} is in {}, which is not in the folder", base::in_quotes(name), base::in_quotes(file));
      paths_.push_back(index.parent_path() / file);
      files_.push_back(std::make_unique<SafetensorsFile>(paths_.back()));
      place->second = files_.back().get();
    }
    // A tensor of an unsupported dtype is an error only when it is requested.
    const auto& foreign = place->second->header().foreign;
    if (const auto found = foreign.find(name); found != foreign.end())
      foreign_.insert(*found);
    else
      tensors_.emplace(name, place->second->at(name));
  }
}

const TensorInFile& TensorFiles::at(std::string_view name) const {
  if (const auto found = tensors_.find(name); found != tensors_.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [other, view] : tensors_) names.push_back(other);
  for (const auto& file : files_)
    if (file->header().foreign.find(name) != file->header().foreign.end()) file->at(name);
  throw base::UserError(kWhereSafetensors, "{} has no tensor {}{}", base::in_quotes(path_.string()),
                        base::in_quotes(name),
                        names.empty() ? "" : "; the nearest is " + base::in_quotes(base::nearest(name, names)));
}

std::string TensorFiles::places() const {
  std::string lines;
  for (const fs::path& path : paths_) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0)
      throw base::UserError(kWhereSafetensors, "{}: {}", base::in_quotes(path.string()), std::strerror(errno));
    lines += fmt::format("{}: {} bytes, inode {}, of {}.{:09}\n", path.filename().string(), status.st_size,
                         status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }
  return lines;
}

std::string TensorFiles::contents() const {
  std::string lines;
  for (const fs::path& path : paths_)
    lines += fmt::format("{}: checksum {}\n", path.filename().string(),
                         checksum_text(base::checksum_of(base::ReadOnlyFile(path))));
  return lines;
}

uint64_t TensorFiles::checksum() const {
  Checksum sum;
  for (const auto& file : files_) sum.add(file->head());
  return sum.value();
}

}  // namespace kintsugi::checkpoint
