#include "kintsugi/samples/batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace kintsugi::samples {

using tensor::DType;

int64_t Part::elements() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

Part tokens_part(int64_t sequence) {
  return {.name = "tokens", .dtype = DType::i32, .shape = {sequence}, .padding = -1};
}

Part labels_part(int64_t sequence) {
  return {.name = "labels", .dtype = DType::i32, .shape = {sequence}, .padding = kIgnored};
}

Part starts_part(int64_t sequence) {
  return {.name = "starts", .dtype = DType::i32, .shape = {sequence}};
}

Part types_part(int64_t sequence) {
  return {.name = "types", .dtype = DType::i32, .shape = {sequence}, .padding = -1};
}

Part classes_part() {
  return {.name = "classes", .dtype = DType::i32, .shape = {}, .padding = kIgnored};
}

Part weights_part() {
  return {.name = "weights", .dtype = DType::f32};
}

Part token_weights_part(int64_t sequence) {
  return {.name = "token_weights", .shape = {sequence}};
}

Part sampled_part(int64_t sequence) {
  return {.name = "sampled", .shape = {sequence}};
}

Part reference_part() {
  return {.name = "reference", .dtype = tensor::DType::f64, .padding = std::numeric_limits<double>::quiet_NaN()};
}

Part features_part(int64_t features) {
  return {.name = "features", .dtype = DType::f32, .shape = {features}};
}

Part targets_part(int64_t targets) {
  return {.name = "targets", .dtype = DType::f32, .shape = {targets}, .padding = kNoTarget};
}

Parts labels_of(int64_t targets) {
  if (targets > 0) return {targets_part(targets)};
  return {classes_part(), weights_part()};
}

std::string to_string(const Part& part) {
  return fmt::format("{} {} [{}]", part.name, name_of(part.dtype), fmt::join(part.shape, " "));
}

void require_parts(const BatchView& batch, const Parts& parts) {
  for (const PartView& view : batch.parts()) {
    const auto part = std::ranges::find(parts, view.name, &Part::name);
    base::require(part != parts.end(), "samples", "nothing fills the part \"{}\" of a batch", view.name);
    base::require(part->dtype == view.dtype && part->elements() == view.elements, "samples",
                  "the part \"{}\" of a batch has {} elements of {} in a sample, and its source {} of {}", view.name,
                  view.elements, name_of(view.dtype), part->elements(), name_of(part->dtype));
  }
}

void BatchMemory::resize(int64_t rows, const Parts& parts) {
  rows_ = rows;
  parts_ = parts;
  memory_.resize(parts_.size());
  views_.clear();
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    memory_[i].resize(static_cast<size_t>(rows * part.bytes()));
    views_.push_back({part.name, part.dtype, part.elements(), part.padding, memory_[i].data()});
  }
}

void BatchMemory::copy(const BatchView& from) {
  base::require(from.rows() == rows_ && from.parts().size() == views_.size(), "samples",
                "{} rows of {} parts are copied to {} of {}", from.rows(), from.parts().size(), rows_, views_.size());
  for (size_t i = 0; i < views_.size(); ++i) {
    const PartView& part = from.parts()[i];
    base::require(part.name == views_[i].name && part.bytes() == views_[i].bytes(), "samples",
                  "the part \"{}\" is copied to \"{}\"", part.name, views_[i].name);
    std::ranges::copy(from.bytes(part), memory_[i].begin());
  }
}

void set_label(const BatchView& row, std::span<const float> label, bool ended) {
  const std::span<float> targets = row.get<float>("targets");
  if (ended)
    std::ranges::fill(targets, kNoTarget);
  else if (!targets.empty())
    std::ranges::copy(label, targets.begin());
  for (int32_t& c : row.get<int32_t>("classes")) c = ended ? kIgnored : static_cast<int32_t>(label[0]);
  std::ranges::fill(row.get<float>("weights"), 1.0f);
}

}  // namespace kintsugi::samples
