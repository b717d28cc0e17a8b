#include "kintsugi/exchange/folder_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/convert.h"
#include "kintsugi/checkpoint/index.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/exchange/image_processor.h"
#include "kintsugi/exchange/not_finite.h"
#include "kintsugi/models/models.h"

namespace kintsugi::exchange {
namespace {

namespace fs = std::filesystem;
using checkpoint::TensorInFile;

std::string sizes_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), " "));
}

// Whether a name matches a pattern in which `*` stands for any text.
bool matches(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return name == pattern;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= name.size(); ++at)
    if (matches(name.substr(at), rest)) return true;
  return false;
}

// Compares two tensors in files, reading a part of both at a time.
bool same_elements(const TensorInFile& a, const TensorInFile& b) {
  if (a.dtype != b.dtype || !std::ranges::equal(a.shape, b.shape)) return false;
  if (a.file == b.file && a.begin == b.begin) return true;
  constexpr uint64_t kPart = 1 << 20;
  std::vector<std::byte> of_a(std::min(a.bytes, kPart)), of_b(of_a.size());
  for (uint64_t at = 0; at < a.bytes; at += of_a.size()) {
    const auto size = std::min<uint64_t>(of_a.size(), a.bytes - at);
    a.read_at(at, std::span(of_a).first(size));
    b.read_at(at, std::span(of_b).first(size));
    if (std::memcmp(of_a.data(), of_b.data(), size) != 0) return false;
  }
  return true;
}

// Removes what wrappers add to a name: DataParallel, torch.compile, FSDP, checkpointing, PEFT.
std::string without_wrappers(std::string_view name) {
  constexpr std::string_view kPeft = "base_model.model.";
  constexpr std::string_view kParts[] = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};
  std::string plain;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    at = end + 1;
    if (std::ranges::find(kParts, part) == std::end(kParts)) plain.append(plain.empty() ? "" : ".").append(part);
  }
  if (plain.starts_with(kPeft)) plain.erase(0, kPeft.size());
  return plain;
}

fs::path config_path(const fs::path& folder) {
  return folder / "config.json";
}

}  // namespace

bool is_hugging_face(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / checkpoint::kIndexFile, error)) return false;
  for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json"})
    if (fs::exists(folder / name, error)) return true;
  return false;
}

void require_no_weight_file(const fs::path& path) {
  std::error_code error;
  const std::string kind = path.extension().string();
  if (!fs::is_regular_file(path, error)) return;
  if (kind == ".safetensors")
    throw base::UserError("model",
                          "{} is a file; name its folder, with the weights as model.safetensors and a config.json",
                          base::in_quotes(path.string()));
  if (kind == ".pth" || kind == ".pt" || (kind == ".bin" && path.filename() == "pytorch_model.bin") || kind == ".ckpt")
    throw base::UserError("model",
                          "{} is a file in PyTorch's format, which is not read; write its tensors with "
                          "safetensors.torch.save_file as model.safetensors to a folder with a config.json",
                          base::in_quotes(path.string()));
}

std::string config_text(const fs::path& folder) {
  return base::read_file(config_path(folder), {16 << 20, "a config.json"});
}

FolderConfig read_folder_config(const fs::path& folder) {
  FolderConfig config = read_config(config_path(folder).string(), config_text(folder));
  const fs::path processor = folder / kImageProcessorFile;
  std::error_code error;
  if (models::reads_images(config.model) && fs::exists(processor, error)) {
    const std::string text = base::read_file(processor, {16 << 20, "a preprocessor_config.json"});
    read_image_processor(processor.string(), text, config.model);
    if (config.any_image_size) read_image_size(processor.string(), text, config.model);
  }
  return config;
}

FolderReader::FolderReader(fs::path folder, bool allow_not_finite)
    : folder_(std::move(folder)), allow_not_finite_(allow_not_finite), files_(folder_) {
  config_ = read_folder_config(folder_);
  const config::Model& m = config_.model;
  const std::string all =
      fmt::format("{}{} {} {} {} {}", checkpoint::checksum_text(files_.checksum()), config_text(folder_),
                  m.image_height, m.image_width, fmt::join(m.image_mean, " "), fmt::join(m.image_deviation, " "));
  checksum_ = checkpoint::checksum_of(all);
  const auto stored = static_cast<int64_t>(files_.tensors().size() + files_.foreign().size());
  if (config_.model.layers > stored)  // before building a graph of that size
    throw base::UserError("model", "{} holds {} tensors, config.json says {} layers", base::in_quotes(folder_.string()),
                          stored, config_.model.layers);
  note_wrapped_names();
  names_ = &names_of(config_.model.family);
  choose_objective();
  choose_stem();
  tensors_ = weight_map(models::family(config_.model.family), config_.model, *names_);
  require_architecture();
  find_tensors();
}

// A folder may contain more heads than its config.json mentions (the published BERT does): among those that predict
// tokens, selects the one whose tensors are all present with none left over.
void FolderReader::choose_objective() {
  const models::Family& family = models::family(config_.model.family);
  if (family.hugging_face.architectures.size() < 2 || !config::of_tokens(config::objective(config_.model))) return;
  for (const auto& other : family.hugging_face.architectures) {
    if (!config::of_tokens(other.objective)) continue;
    config::Model model = config_.model;
    model.objective = config::kObjectives[static_cast<size_t>(other.objective)];
    std::set<std::string_view> found;
    bool complete = true;
    std::vector<MappedTensor> tensors = weight_map(family, model);
    for (MappedTensor& tensor : tensors) {
      tensor.name = name_in_folder(tensor.name, *names_);
      complete = complete && (files_.has(tensor.name) || files_.foreign().contains(tensor.name));
      found.insert(tensor.name);
    }
    if (!complete || !rest(found).empty()) continue;
    config_.model = std::move(model);
    return;
  }
}

// Names of tensors saved from within torch's wrappers, or by PEFT.
void FolderReader::note_wrapped_names() {
  const auto note = [&](const std::string& name) {
    const std::string plain = without_wrappers(name);
    if (plain == name) return;
    const auto [place, is_new] = wrapped_.emplace(plain, name);
    if (!is_new || files_.has(plain) || files_.foreign().contains(plain))
      throw base::UserError("model", "{}: tensors {} and {} are both {}", base::in_quotes(folder_.string()),
                            base::in_quotes(name), base::in_quotes(is_new ? plain : place->second),
                            base::in_quotes(plain));
  };
  for (const auto& [name, tensor] : files_.tensors()) note(name);
  for (const auto& [name, dtype] : files_.foreign()) note(name);
}

std::vector<std::string> FolderReader::notes() const {
  std::vector<std::string> notes = config_.notes;
  if (!wrapped_.empty())
    notes.push_back(fmt::format("names of {} tensor{} are read without the prefix of a wrapper: {} for {}",
                                wrapped_.size(), wrapped_.size() == 1 ? "" : "s",
                                base::in_quotes(wrapped_.begin()->first), base::in_quotes(wrapped_.begin()->second)));
  return notes;
}

std::string FolderReader::stored_name(const std::string& name) const {
  const auto found = wrapped_.find(name);
  return found == wrapped_.end() ? name : found->second;
}

bool FolderReader::has(const std::string& name) const {
  const std::string stored = stored_name(name);
  return files_.has(stored) || files_.foreign().contains(stored);
}

// The folder's name: possibly without the prefix, or an older name.
std::string FolderReader::name_in_folder(const std::string& name, const models::HuggingFace& theirs) const {
  std::vector<std::string> names = {name};
  for (const auto& [now, before] : theirs.older)
    if (name.ends_with(now)) names.push_back(name.substr(0, name.size() - now.size()) + std::string(before));
  for (size_t i = names.size(); i-- > 0;)
    if (names[i].starts_with(theirs.prefix)) names.push_back(names[i].substr(theirs.prefix.size()));
  for (const std::string& candidate : names)
    if (has(candidate)) return stored_name(candidate);
  return name;
}

void FolderReader::find_tensors() {
  std::set<std::string_view> found;
  for (MappedTensor& tensor : tensors_) {
    tensor.name = name_in_folder(tensor.name, *names_);
    const TensorInFile& stored = files_.at(tensor.name);
    const std::string shown = base::in_quotes(tensor.name);
    if (!is_floating(stored.dtype))
      throw base::UserError("model", "{}: tensor {} holds {}, which are no weights", base::in_quotes(folder_.string()),
                            shown, name_of(stored.dtype));
    if (!std::ranges::equal(stored.shape, tensor.shape))
      throw base::UserError(
          "model", "{}: tensor {} has the shape {}, config.json needs {}{}", base::in_quotes(folder_.string()), shown,
          sizes_text(stored.shape), sizes_text(tensor.shape),
          models::reads_images(config_.model)
              ? fmt::format("; {} of {} tensors fit", count_fitting(tensors_, *names_), tensors_.size())
              : "");
    found.insert(tensor.name);
    for (const MappedWeight& weight : tensor.weights) add_weight(weight, stored_.size(), stored.dtype);
    stored_.push_back(stored);
  }
  refuse_rest(found);
  check_tied();
}

void FolderReader::add_weight(const MappedWeight& place, size_t tensor, tensor::DType dtype) {
  Weight& weight = weights_[place.name];
  if (weight.parts.empty()) {
    weight_names_.push_back(place.name);
    weight.type = {place.whole, dtype};
  }
  if (weight.type.dtype != dtype)
    throw base::UserError("model",
                          "{}: tensor {} holds {}, but {} holds {}; the parts of one weight must have one type",
                          base::in_quotes(folder_.string()), base::in_quotes(tensors_[tensor].name), name_of(dtype),
                          base::in_quotes(tensors_[weight.parts.front().tensor].name), name_of(weight.type.dtype));
  weight.parts.push_back({&place, tensor});
}

// A folder may contain the head of a model that ties it to the embedding; if they differ, config.json does not describe
// the model.
void FolderReader::check_tied() const {
  for (const std::string& name : tied_names(models::family(config_.model.family), config_.model)) {
    if (!has(name)) continue;
    const Weight& table = at("embedding.table");
    const size_t tensor = table.parts.front().tensor;
    const TensorInFile& embedding = stored_[tensor];
    const std::string stored = stored_name(name);
    if (!files_.has(stored) || !same_elements(files_.at(stored), embedding))
      throw base::UserError("model",
                            "{}: tensor {} differs from {}, although config.json ties them; if the head has separate "
                            "weights, set \"tie_word_embeddings\" to false",
                            base::in_quotes(folder_.string()), base::in_quotes(name),
                            base::in_quotes(tensors_[tensor].name));
  }
}

bool FolderReader::is_computed(std::string_view name, const models::HuggingFace& theirs) {
  const std::string plain = without_wrappers(name);
  std::string_view bare = plain;
  if (bare.starts_with(theirs.prefix)) bare.remove_prefix(theirs.prefix.size());
  return std::ranges::any_of(theirs.computed, [&](std::string_view pattern) { return matches(bare, pattern); });
}

std::vector<std::string_view> FolderReader::rest(const std::set<std::string_view>& found) const {
  const models::Family& family = models::family(config_.model.family);
  const std::vector<std::string> tied = tied_names(family, config_.model);
  std::vector<std::string_view> rest;
  const auto look_at = [&](std::string_view name) {
    if (!found.contains(name) && std::ranges::count(tied, without_wrappers(name)) == 0 && !is_computed(name, *names_))
      rest.push_back(name);
  };
  for (const auto& [name, tensor] : files_.tensors()) look_at(name);
  for (const auto& [name, dtype] : files_.foreign()) look_at(name);
  return rest;
}

void FolderReader::refuse_rest(const std::set<std::string_view>& found) const {
  const std::vector<std::string_view> rest = this->rest(found);
  if (rest.empty()) return;
  throw base::UserError("model", "{}: tensor {}{} is not a weight of the model that config.json describes",
                        base::in_quotes(folder_.string()), base::in_quotes(rest.front()),
                        rest.size() == 1 ? "" : fmt::format(", like {} others,", rest.size() - 1));
}

const FolderReader::Weight& FolderReader::at(std::string_view name) const {
  if (const auto found = weights_.find(name); found != weights_.end()) return found->second;
  if (!head_.empty() && name.starts_with(head_)) require_head();
  const std::vector<std::string_view> names(weight_names_.begin(), weight_names_.end());
  throw base::UserError("model", "{} has no weight {}; the nearest is {}", base::in_quotes(folder_.string()),
                        base::in_quotes(name), base::in_quotes(base::nearest(name, names)));
}

const tensor::Type& FolderReader::type(std::string_view name) const {
  return at(name).type;
}

void FolderReader::refuse_not_finite(size_t tensor) const {
  const TensorInFile& stored = stored_[tensor];
  int64_t count = 0;
  stored.for_each_block([&](std::span<const std::byte> block) { count += count_not_finite(block, stored.dtype); });
  throw base::UserError("model",
                        "{}: {} of the {} elements of tensor {} are NaN or infinity; kintsugi import "
                        "--allow-not-finite takes them as they are",
                        base::in_quotes(folder_.string()), base::group_digits(count),
                        base::group_digits(tensors_[tensor].elements()), base::in_quotes(tensors_[tensor].name));
}

void FolderReader::read(const checkpoint::Slice& slice, tensor::DType dtype, std::span<std::byte> out) const {
  const Weight& weight = at(slice.name);
  if (!checkpoint::converts(weight.type.dtype, dtype))
    throw base::UserError("model", "{}: weight {} holds {}, which is not read as {}", base::in_quotes(folder_.string()),
                          base::in_quotes(slice.name), name_of(weight.type.dtype), name_of(dtype));
  const checkpoint::Box box = slice.box.value_or(checkpoint::whole_box(weight.type.shape));
  const checkpoint::Range flat = slice.flat.value_or(checkpoint::whole_range(box));
  base::require(fits(box, weight.type.shape) && fits(flat, box), "exchange", "{} to {} of box {} of {}", flat.begin,
                flat.end, to_string(box), slice.name);
  base::require(out.size() == static_cast<size_t>(flat.size() * size_of(dtype)), "exchange",
                "{} elements of {} {} are read into {} bytes", flat.size(), slice.name, name_of(dtype), out.size());
  const Grid ours = grid_of(box);
  Staging staging = {.memory = take_staging()};
  size_t reading = 0;  // tensor index
  if (!allow_not_finite_)
    staging.see = [&](std::span<const std::byte> elements) {
      if (count_not_finite(elements, weight.type.dtype) > 0) refuse_not_finite(reading);
    };
  for_each_box(ours, flat, [&](const checkpoint::Box& whole) {
    for (const Part& part : weight.parts) {
      const MappedWeight& place = *part.place;
      checkpoint::Box mine = whole;  // within `box`
      std::vector<int64_t> start = box.start;
      if (place.shape != place.whole) {
        const int64_t begin = std::max(box.start[0] + whole.start[0], place.begin),
                      end = std::min(box.start[0] + whole.start[0] + whole.size[0], place.begin + place.shape[0].size);
        if (begin >= end) continue;
        mine.start[0] = begin - box.start[0];
        mine.size[0] = end - begin;
        start[0] -= place.begin;
      }
      for (size_t d = 0; d < start.size(); ++d) start[d] += mine.start[d];
      std::vector<CopyDim> dims;
      for (size_t d = 0; d < mine.size.size(); ++d)
        dims.push_back({.size = mine.size[d], .from = place.stride[d], .to = ours.stride[d]});
      reading = part.tensor;
      read_strided(
          {.tensor = stored_[part.tensor], .first = Grid{place.first, mine.size, place.stride}.at(start), .dims = dims},
          dtype, out.data() + (ours.at(mine.start) - flat.begin) * size_of(dtype), staging);
    }
  });
  put_staging(std::move(staging.memory));
}

std::vector<std::byte> FolderReader::take_staging() const {
  const std::lock_guard lock(mutex_);
  if (staging_.empty()) return {};
  std::vector<std::byte> staging = std::move(staging_.back());
  staging_.pop_back();
  return staging;
}

void FolderReader::put_staging(std::vector<std::byte> staging) const {
  const std::lock_guard lock(mutex_);
  staging_.push_back(std::move(staging));
}

}  // namespace kintsugi::exchange
