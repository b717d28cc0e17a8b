// model.safetensors.index.json:
//
//   index := { "weight_map": { tensor: file, ... }, ... }       a file is a name in the same folder
#include "kintsugi/checkpoint/tensor_files.h"

#include <nlohmann/json.hpp>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/json_text.h"

namespace kintsugi::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhere = "safetensors";
constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

}  // namespace

TensorFiles::TensorFiles(const fs::path& path) : path_(path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    take_all(path);
  else if (fs::exists(path / kIndex, error))
    take_indexed(path / kIndex);
  else if (fs::exists(path / kSingle, error))
    take_all(path / kSingle);
  else
    throw base::UserError(kWhere, "{} holds neither {} nor {}", in_quotes(path.string()), kSingle, kIndex);
}

void TensorFiles::take_all(const fs::path& file) {
  files_.push_back(std::make_unique<SafetensorsFile>(file));
  for (const auto& [name, entry] : files_.back()->header().tensors) tensors_.emplace(name, files_.back()->at(name));
}

void TensorFiles::take_indexed(const fs::path& index) {
  const std::string shown = in_quotes(index.string());
  const nlohmann::json json = parse_json(kWhere, shown, base::read_file(index));
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object())
    throw base::UserError(kWhere, "{} has no \"weight_map\" from tensors to files", shown);
  std::map<std::string, const SafetensorsFile*> open;
  for (const auto& [name, value] : map->items()) {
    const std::string file = value.is_string() ? value.get<std::string>() : "";
    if (file.empty() || file == "." || file == ".." || file.find('/') != file.npos)
      throw base::UserError(kWhere, "{}: tensor {} is not in a file of the same folder", shown, in_quotes(name));
    const auto [place, fresh] = open.try_emplace(file, nullptr);
    if (fresh) {
      files_.push_back(std::make_unique<SafetensorsFile>(index.parent_path() / file));
      place->second = files_.back().get();
    }
    // A tensor in an unsupported dtype is an error only when it is requested.
    if (!place->second->header().foreign.contains(name)) tensors_.emplace(name, place->second->at(name));
  }
}

const TensorView& TensorFiles::at(std::string_view name) const {
  if (const auto found = tensors_.find(name); found != tensors_.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [other, view] : tensors_) names.push_back(other);
  for (const auto& file : files_)
    if (file->header().foreign.find(name) != file->header().foreign.end()) file->at(name);
  throw base::UserError(kWhere, "{} has no tensor {}{}", in_quotes(path_.string()), in_quotes(name),
                        names.empty() ? "" : "; the nearest is " + in_quotes(base::nearest(name, names)));
}

}  // namespace kintsugi::checkpoint
