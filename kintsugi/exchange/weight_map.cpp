#include "kintsugi/exchange/weight_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/models/step.h"

namespace kintsugi::exchange {
namespace {

using models::WeightRow;
using tensor::Shape;
using Weights = std::map<std::string, Shape, std::less<>>;

// Whether the folder has a tensor for the load-balancing biases of experts.
bool has_router_bias(const models::HuggingFace& folder) {
  return std::ranges::any_of(folder.weights,
                             [](const WeightRow& row) { return row.ours.front().ends_with(models::kRouterBias); });
}

// `balanced`: with load-balancing biases.
Weights weights_of(const config::Model& model, bool balanced) {
  config::Settings settings;
  settings.model = model;
  const models::Graphs graphs = models::build_evaluation(settings, 1, 1);
  Weights weights;
  for (const graph::State& state : *graphs.states) {
    // Running statistics are tensors of folders too.
    const bool running = state.kind == graph::StateKind::statistic && state.saved && state.type.shape.rank() > 0 &&
                         (balanced || !state.name.ends_with(models::kRouterBias));
    if (state.kind == graph::StateKind::weight || running) weights.emplace(state.name, state.type.shape);
  }
  return weights;
}

// The prefix does not apply to the head.
bool is_head(std::string_view ours) {
  return ours.starts_with("head.");
}

// Replaces the first `*`.
std::string in_layer(std::string_view name, int64_t layer) {
  const size_t star = name.find('*');
  if (star == name.npos) return std::string(name);
  return std::string(name.substr(0, star)) + std::to_string(layer) + std::string(name.substr(star + 1));
}

Shape with_first(const Shape& shape, int64_t size) {
  std::vector<tensor::Dim> dims = shape.dims();
  dims.front().size = size;
  return Shape(dims);
}

// A row's `dims`, with commas between the tensor's dims.
struct RowDims {
  std::vector<std::vector<std::string>> dims;  // our dims, per dim of the tensor
  // Where weights are concatenated: before dims[split][at]. split is the number of dims if they are not.
  size_t split = 0, at = 0;
};

RowDims parse_dims(std::string_view text) {
  RowDims row;
  row.dims.emplace_back();
  bool side_by_side = false;
  for (const std::string& word : tensor::words(text)) {
    if (word == ",") {
      row.dims.emplace_back();
    } else if (word == "|") {
      side_by_side = true;
      row.split = row.dims.size() - 1;
      row.at = row.dims.back().size();
    } else {
      row.dims.back().push_back(word);
    }
  }
  if (!side_by_side) row.split = row.dims.size();
  return row;
}

// PyTorch's order of the dims of the weight with that external name, as a row's `dims`. Ours: spatial... inputs...
// outputs. A fully connected layer reads a value of several dims channels first.
std::string torch_dims(std::string_view name, const Shape& shape) {
  std::vector<std::string> spatial, others;
  bool kernel = false;
  for (size_t i = 0; i + 1 < shape.rank(); ++i) {
    const std::string& dim = shape[i].name;
    const bool of_kernel = dim.starts_with("kernel_");
    kernel |= of_kernel;
    (of_kernel || dim == "depth" || dim == "height" || dim == "width" ? spatial : others).push_back(dim);
  }
  const std::string& out = shape[shape.rank() - 1].name;
  if (shape.rank() == 1) return name.ends_with(".layer_scale") ? out + " , ," : out;  // of [channels 1 1]
  return fmt::format("{} , {}", out, fmt::join(others, " ")) +
         (spatial.empty() ? ""
          : kernel        ? " , "
                          : " ") +
         fmt::format("{}", fmt::join(spatial, kernel ? " , " : " "));
}

// Computes shape, first and stride of a tensor whose weights have name and shape.
class Placement {
 public:
  Placement(const WeightRow& row, MappedTensor& tensor) : dims_(parse_dims(row.dims)), tensor_(tensor) {
    for (const MappedWeight& w : tensor.weights)
      for (const tensor::Dim& dim : w.shape) sizes_[dim.name] = dim.size;
  }

  // Returns a description of the problem, or nothing.
  std::string fill() {
    const size_t rank = dims_.dims.size();
    tensor_.shape.assign(rank, 1);
    int64_t inner = 1;  // elements of the following dims, common to all weights
    for (size_t d = rank; d-- > dims_.split + 1;) tensor_.shape[d] = common(dims_.dims[d], inner);
    if (dims_.split < rank) {
      const std::vector<std::string>& words = dims_.dims[dims_.split];
      const auto border = words.begin() + static_cast<std::ptrdiff_t>(dims_.at);
      const int64_t width = side_by_side({border, words.end()}, inner);
      tensor_.shape[dims_.split] = width * common({words.begin(), border}, inner);
    }
    for (size_t d = std::min(dims_.split, rank); d-- > 0;) tensor_.shape[d] = common(dims_.dims[d], inner);
    for (MappedWeight& w : tensor_.weights)
      if (w.shape != w.whole) w.stride.front() = inner;
    for (const MappedWeight& w : tensor_.weights)
      if (std::ranges::count(w.stride, 0) > 0 && what_.empty())
        what_ = fmt::format("{} {} has more dims", w.name, to_string(w.shape));
    return what_;
  }

 private:
  void place(MappedWeight& w, const std::string& dim, int64_t stride) {
    const int at = w.shape.find(dim);
    if (at >= 0)
      w.stride[static_cast<size_t>(at)] = stride;
    else if (sizes_.at(dim) > 1 && what_.empty())
      what_ = w.name + " has no dim " + dim;
  }

  // Dims common to all weights. Returns their number of elements.
  int64_t common(const std::vector<std::string>& words, int64_t& inner) {
    const int64_t before = inner;
    for (auto word = words.rbegin(); word != words.rend(); ++word) {
      if (!sizes_.contains(*word)) {
        if (what_.empty()) what_ = "no weight has the dim " + *word;
        continue;
      }
      for (MappedWeight& w : tensor_.weights) place(w, *word, inner);
      inner *= sizes_.at(*word);
    }
    return inner / before;
  }

  // Dims of each weight in turn.
  int64_t side_by_side(const std::vector<std::string>& words, int64_t& inner) {
    int64_t width = 0;
    for (MappedWeight& w : tensor_.weights) {
      w.first = width * inner;
      int64_t own = 1;
      for (auto word = words.rbegin(); word != words.rend(); ++word) {
        if (!w.shape.has(*word)) continue;
        place(w, *word, inner * own);
        own *= w.shape.size(*word);
      }
      width += own;
    }
    inner *= width;
    return width;
  }

  RowDims dims_;
  MappedTensor& tensor_;
  std::map<std::string, int64_t, std::less<>> sizes_;
  std::string what_;
};

}  // namespace

int64_t MappedTensor::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<MappedTensor> weight_map(const models::Family& family, const config::Model& model) {
  if (family.hugging_face.model_types.empty())
    throw base::UserError("model", "models of the family {} have no Hugging Face folders", family.config.name);
  return weight_map(family, model, family.hugging_face);
}

std::vector<MappedTensor> weight_map(const models::Family& family, const config::Model& model,
                                     const models::HuggingFace& folder) {
  Weights left = weights_of(model, has_router_bias(folder));
  const auto refuse = [&](const std::string& what) {
    throw base::UserError("model", "a Hugging Face folder of {} has no place for this model: {}", family.config.name,
                          what);
  };
  std::vector<MappedTensor> tensors;
  if (folder.their_name) {
    for (const auto& [name, shape] : left) {
      MappedTensor& tensor = tensors.emplace_back();
      tensor.name = folder.their_name(name);
      const std::string dims = torch_dims(tensor.name, shape);
      const WeightRow row = {.theirs = {}, .dims = dims, .ours = {name}};
      tensor.weights.push_back(
          {.name = name, .whole = shape, .shape = shape, .stride = std::vector<int64_t>(shape.rank(), 0)});
      if (const std::string what = Placement(row, tensor).fill(); !what.empty())
        refuse(fmt::format("in {}, {}", tensor.name, what));
    }
    return tensors;
  }
  for (const WeightRow& row : folder.weights) {
    const int64_t layers = row.ours.front().find('*') == std::string_view::npos ? 1 : model.layers;
    for (int64_t layer = 0; layer < layers; ++layer) {
      MappedTensor tensor;
      tensor.name = (is_head(row.ours.front()) ? "" : std::string(folder.prefix)) + in_layer(row.theirs, layer);
      int64_t parts = 1;
      for (const std::string_view ours : row.ours)
        if (const auto found = left.find(in_layer(ours, layer)); found != left.end()) {
          const Shape& whole = found->second;
          if (!row.each.empty()) {
            if (whole[0].name != row.each) continue;  // of a layer without
            parts = whole[0].size;
          }
          tensor.weights.push_back({.name = found->first,
                                    .whole = whole,
                                    .shape = row.each.empty() ? whole : with_first(whole, 1),
                                    .stride = std::vector<int64_t>(whole.rank(), 0)});
          left.erase(found);
        }
      if (tensor.weights.empty()) continue;
      if (tensor.weights.size() != row.ours.size()) refuse(fmt::format("{} has weights that it lacks", tensor.name));
      if (const std::string what = Placement(row, tensor).fill(); !what.empty())
        refuse(fmt::format("in {}, {}", tensor.name, what));
      for (int64_t i = 0; i < parts; ++i) {
        MappedTensor part = tensor;
        if (!row.each.empty()) part.name = in_layer(tensor.name, i);
        for (MappedWeight& w : part.weights) w.begin = i;
        tensors.push_back(std::move(part));
      }
    }
  }
  if (!left.empty()) refuse("of " + left.begin()->first);
  return tensors;
}

std::vector<std::string> tied_names(const models::Family& family, const config::Model& model) {
  std::vector<std::string> names;
  for (const WeightRow& row : family.hugging_face.weights)
    if (model.tied && row.ours.front() == "head.table") names.emplace_back(row.theirs);
  return names;
}

}  // namespace kintsugi::exchange
