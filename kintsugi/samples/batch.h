// The contents of a batch, a list of typed, named parts of any rank, and the interface of sample sources.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::samples {

inline constexpr int32_t kIgnored = -1;  // label of an uncounted position or sample

inline constexpr float kNoTarget = std::numeric_limits<float>::quiet_NaN();  // an uncounted target

// What a batch contains per sample: an array of one type and shape.
struct Part {
  std::string name;  // of the model's input
  tensor::DType dtype = tensor::DType::f32;
  std::vector<int64_t> shape = {};  // of one sample, row-major; empty: a scalar
  double padding = 0;               // value at positions that exist only as padding of a split dim
  bool optional = false;            // the source fills it whether or not the model reads it

  int64_t elements() const;  // of one sample
  int64_t bytes() const { return elements() * tensor::size_of(dtype); }
};
using Parts = std::vector<Part>;

// Parts of models of tokens and numbers.
Part tokens_part(int64_t sequence);         // [sequence] -1: padding
Part labels_part(int64_t sequence);         // [sequence] the label of each position, or kIgnored
Part starts_part(int64_t sequence);         // [sequence] index in the row at which the position's document begins
Part types_part(int64_t sequence);          // [sequence] segment of the position
Part classes_part();                        // [] the class, or kIgnored
Part weights_part();                        // [] weight of the sample's class loss
Part token_weights_part(int64_t sequence);  // [sequence] weight of the log-probability of each label
Part sampled_part(int64_t sequence);        // [sequence] log-probability of each label when it was sampled
Part reference_part();                      // [] margin of the pair by the reference model; NaN: not a pair
Part features_part(int64_t features);       // [features]
Part targets_part(int64_t targets);         // [targets] kNoTarget: uncounted

// The parts of a sample's label: targets, or with 0 of them a class and its weight.
Parts labels_of(int64_t targets);

// "images uint8 [3 32 32]"
std::string to_string(const Part& part);

// Whether T is the C++ element type of the dtype.
template <typename T>
constexpr bool holds(tensor::DType dtype) {
  using tensor::DType;
  if constexpr (std::same_as<T, float>) return dtype == DType::f32;
  if constexpr (std::same_as<T, double>) return dtype == DType::f64;
  if constexpr (std::same_as<T, int32_t>) return dtype == DType::i32;
  if constexpr (std::same_as<T, int64_t>) return dtype == DType::i64;
  if constexpr (std::same_as<T, uint16_t>) return dtype == DType::u16;
  if constexpr (std::same_as<T, uint8_t>) return dtype == DType::u8;
  return false;
}

// One part of a batch in the caller's memory: row-major [samples shape...].
struct PartView {
  std::string_view name;
  tensor::DType dtype = tensor::DType::f32;
  int64_t elements = 1;  // of one sample
  double padding = 0;
  std::byte* data = nullptr;

  int64_t bytes() const { return elements * tensor::size_of(dtype); }  // of one sample
};

// A view of rows of a batch in the caller's memory. Copies refer to the same memory.
class BatchView {
 public:
  BatchView() = default;
  // Rows [first, first + rows) of the parts; their list must outlive the view.
  BatchView(std::span<const PartView> parts, int64_t rows, int64_t first = 0)
      : parts_(parts), rows_(rows), first_(first) {}

  int64_t rows() const { return rows_; }
  std::span<const PartView> parts() const { return parts_; }
  BatchView row(int64_t i) const { return {parts_, 1, first_ + i}; }
  std::span<std::byte> bytes(const PartView& part) const {
    return {part.data + first_ * part.bytes(), static_cast<size_t>(rows_ * part.bytes())};
  }
  // The elements of a part, of all rows; empty if the batch does not contain it. Throws InternalError for another type.
  template <typename T>
  std::span<T> get(std::string_view name) const {
    for (const PartView& part : parts_) {
      if (part.name != name) continue;
      base::require(holds<T>(part.dtype), "samples", "{} \"{}\" are read as another type", name_of(part.dtype), name);
      return {reinterpret_cast<T*>(bytes(part).data()), static_cast<size_t>(rows_ * part.elements)};
    }
    return {};
  }

 private:
  std::span<const PartView> parts_;
  int64_t rows_ = 0, first_ = 0;
};

// Throws InternalError unless a source of `parts` fills each part of the batch, with the same type and size.
void require_parts(const BatchView& batch, const Parts& parts);

// Calls f(row index, view of that row) for each row, after require_parts.
template <typename F>
void for_each_row(const BatchView& batch, const Parts& parts, F&& f) {
  require_parts(batch, parts);
  for (int64_t row = 0; row < batch.rows(); ++row) f(static_cast<uint64_t>(row), batch.row(row));
}

// Memory for some samples.
class BatchMemory {
 public:
  BatchMemory() = default;
  BatchMemory(int64_t rows, const Parts& parts) { resize(rows, parts); }
  BatchMemory(BatchMemory&&) = default;
  BatchMemory& operator=(BatchMemory&&) = default;

  void resize(int64_t rows, const Parts& parts);
  int64_t rows() const { return rows_; }
  BatchView view() { return {views_, rows_}; }
  template <typename T>
  std::span<T> get(std::string_view name) {
    return view().get<T>(name);
  }
  template <typename T>
  std::span<const T> get(std::string_view name) const {
    return BatchView(views_, rows_).get<T>(name);
  }
  // Copies a batch with the same parts and rows.
  void copy(const BatchView& from);

 private:
  int64_t rows_ = 0;
  Parts parts_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<PartView> views_;
};

// Writes a sample's label to its row: a class and the weight 1, or targets. Writes uncounted labels if the samples have
// `ended`.
void set_label(const BatchView& row, std::span<const float> label, bool ended);

// Samples by index. `fill` is const, thread-safe, and allocates nothing.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  // The parts it fills.
  virtual const Parts& parts() const = 0;
  // Fills the rows with samples first, first + 1, ..., and only the parts that the batch contains. Throws UserError if
  // the file contains an id outside the vocabulary (a corrupt file).
  virtual void fill(uint64_t first, const BatchView& batch) const = 0;
};

// Finitely many samples: the data of an evaluation. Samples past the last are uncounted.
class FiniteSource : public SampleSource {
 public:
  virtual uint64_t num_samples() const = 0;
};

}  // namespace kintsugi::samples
