// Which network of images the tensors of a folder are those of.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/exchange/folder_reader.h"
#include "kintsugi/exchange/image_names.h"
#include "kintsugi/models/models.h"

namespace kintsugi::exchange {
namespace {

// Whether a tensor's first dim, our last, is the outputs of a model of images.
bool of_head(const MappedTensor& tensor) {
  const tensor::Shape& shape = tensor.weights.front().whole;
  const std::string_view last = shape.rank() == 0 ? "" : std::string_view(shape[shape.rank() - 1].name);
  return last == "class" || last == "target";
}

// Networks of other families for the same images: those whose sizes config.json does not hold.
std::vector<config::Model> other_networks(const config::Model& of) {
  std::vector<config::Model> list;
  for (const models::Family& family : models::families()) {
    if (!family.config.reads_images || family.config.layers == 0 || family.config.name == of.family) continue;
    config::Model model = models::defaults_of(family.config.name);
    model.image_channels = of.image_channels;
    model.image_height = of.image_height;
    model.image_width = of.image_width;
    model.image_depth = of.image_depth;
    model.outputs = of.outputs;
    model.layers = family.config.layers;
    const bool has_stem = family.config.name.starts_with("resnet");
    for (const std::string_view stem : config::kStems) {
      if (stem != model.stem && !has_stem) continue;
      list.push_back(model);
      list.back().stem = stem;
    }
  }
  return list;
}

}  // namespace

// The names of weights that the folder has.
const models::HuggingFace& FolderReader::names_of(std::string_view family) const {
  for (const ImageNames& names : image_names()) {
    const std::string_view prefix = names.folder.prefix;
    if (family.starts_with(names.family) &&
        (has(std::string(names.first)) ||
         (names.first.starts_with(prefix) && !prefix.empty() && has(std::string(names.first.substr(prefix.size()))))))
      return names.folder;
  }
  return models::family(family).hugging_face;
}

// Published ResNets have a 7x7 stem whatever the size of the images.
void FolderReader::choose_stem() {
  if (!models::reads_images(config_.model) || config::stem(config_.model) != config::Stem::automatic) return;
  constexpr std::string_view kFirst = "conv1.weight";
  for (const std::string_view stem : config::kStems) {
    config::Model model = config_.model;
    model.stem = stem;
    const std::vector<MappedTensor> tensors = weight_map(models::family(model.family), model, *names_);
    const auto first =
        std::ranges::find_if(tensors, [&](const MappedTensor& t) { return t.weights.front().name == kFirst; });
    if (first == tensors.end()) return;
    const auto found = files_.tensors().find(name_in_folder(first->name, *names_));
    if (found == files_.tensors().end()) return;
    if (!std::ranges::equal(found->second.shape, first->shape)) continue;
    config_.model = std::move(model);
    return;
  }
}

// Compares the folder's tensors with those of a model of images.
FolderReader::Fit FolderReader::fit(const std::vector<MappedTensor>& tensors, const models::HuggingFace& names) const {
  std::set<std::string> known;
  Fit fit = Fit::whole;
  for (const MappedTensor& tensor : tensors) {
    const std::string name = name_in_folder(tensor.name, names);
    const auto found = files_.tensors().find(name);
    known.insert(name);
    const bool head = of_head(tensor);
    if (found == files_.tensors().end()) {
      if (!head || fit == Fit::other_outputs) return Fit::none;
      fit = Fit::no_head;
    } else if (!std::ranges::equal(found->second.shape, tensor.shape)) {
      const std::span<const int64_t> stored = found->second.shape, wanted = tensor.shape;
      if (!head || stored.empty() || fit == Fit::no_head || !std::ranges::equal(stored.subspan(1), wanted.subspan(1)))
        return Fit::none;
      fit = Fit::other_outputs;
    }
  }
  const bool more = std::ranges::any_of(files_.tensors(), [&](const auto& tensor) {
    return !known.contains(tensor.first) && !is_computed(tensor.first, names);
  });
  return more ? Fit::none : fit;
}

int64_t FolderReader::count_fitting(const std::vector<MappedTensor>& tensors, const models::HuggingFace& names) const {
  return std::ranges::count_if(tensors, [&](const MappedTensor& tensor) {
    const auto found = files_.tensors().find(name_in_folder(tensor.name, names));
    return found != files_.tensors().end() && std::ranges::equal(found->second.shape, tensor.shape);
  });
}

double FolderReader::share_of_fitting(const std::vector<MappedTensor>& tensors,
                                      const models::HuggingFace& names) const {
  const int64_t fitting = count_fitting(tensors, names);
  return static_cast<double>(fitting) /
         static_cast<double>(tensors.size() + files_.tensors().size() - static_cast<size_t>(fitting));
}

// Networks of images differ by little more than their names and sizes: if the tensors are those of another family, says
// of which.
void FolderReader::require_architecture() {
  if (!models::reads_images(config_.model)) return;
  const Fit own = fit(tensors_, *names_);
  if (own == Fit::whole) return;
  if (own == Fit::no_head) {
    for (const MappedTensor& tensor : tensors_)
      if (of_head(tensor)) head_ = tensor.weights.front().name;
    head_ = head_.substr(0, head_.rfind('.'));
    std::erase_if(tensors_, of_head);
    return;
  }
  if (own == Fit::other_outputs) refuse_outputs();
  const std::string folder = base::in_quotes(folder_.string());
  const auto refuse = [&](const std::string& what) {
    throw base::UserError("model", "{}: config.json describes {}, and the tensors are those of {}", folder,
                          config_.model.family, what);
  };
  double most = share_of_fitting(tensors_, *names_);
  std::string nearest;
  for (const config::Model& other : other_networks(config_.model)) {
    const models::HuggingFace& names = names_of(other.family);
    std::vector<MappedTensor> tensors;
    try {
      tensors = weight_map(models::family(other.family), other, names);
    } catch (const base::UserError&) {  // no such size of this family
      continue;
    }
    if (fit(tensors, names) != Fit::none)
      refuse(other.family +
             (config_.named_by.empty() ? "" : fmt::format(": its \"{}\" is \"{}\"", config_.named_by, other.family)));
    const double share = share_of_fitting(tensors, names);
    if (share <= most) continue;
    most = share;
    nearest = fmt::format("{}, with {} of {} tensors", other.family, count_fitting(tensors, names), tensors.size());
  }
  require_running_statistics();
  if (!nearest.empty()) refuse("no network known here; the nearest is " + nearest);
}

void FolderReader::require_running_statistics() const {
  for (const MappedTensor& tensor : tensors_) {
    const size_t part = tensor.name.rfind('.') + 1;
    if (!std::string_view(tensor.name).substr(part).starts_with("running_")) continue;
    const std::string weight = tensor.name.substr(0, part) + "weight";
    if (has(name_in_folder(tensor.name, *names_)) || !has(name_in_folder(weight, *names_))) continue;
    throw base::UserError("model",
                          "{} has no tensor {}, the running statistics of a batch norm; save model.state_dict(), "
                          "which has them, rather than parameters",
                          base::in_quotes(folder_.string()), base::in_quotes(tensor.name));
  }
}

void FolderReader::refuse_outputs() const {
  const MappedTensor* head = nullptr;  // the weight, unless only the bias differs
  for (const MappedTensor& tensor : tensors_)
    if (of_head(tensor) && (!head || tensor.shape.size() > 1) &&
        files_.at(name_in_folder(tensor.name, *names_)).shape.front() != tensor.shape.front())
      head = &tensor;
  base::require(head != nullptr, "exchange", "{}: no head has another number of outputs", folder_.string());
  const std::string name = name_in_folder(head->name, *names_), &ours = head->weights.front().name;
  throw base::UserError("model",
                        "{}: tensor {} is a head with {} outputs, config.json says {}; correct config.json. A run "
                        "with another number of outputs begins a new head with train.init_new = [\"{}\"]",
                        base::in_quotes(folder_.string()), base::in_quotes(name), files_.at(name).shape.front(),
                        head->shape.front(), ours.substr(0, ours.rfind('.')));
}

void FolderReader::require_head() const {
  if (!head_.empty())
    throw base::UserError("model", "{} has no head: train one with train.init_from = {} and train.init_new = [\"{}\"]",
                          base::in_quotes(folder_.string()), base::in_quotes(folder_.string()), head_);
}

}  // namespace kintsugi::exchange
