// The contents of a micro-batch, and the interface of their sources.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/base/error.h"

namespace kintsugi::data {

inline constexpr int32_t kIgnored = -1;  // the label of a position, or of a sample, that is not counted

inline constexpr float kNoTarget = std::numeric_limits<float>::quiet_NaN();  // that is not counted

// Memory of the caller, of some samples; what a model does not read is empty.
struct BatchView {
  std::span<int32_t> tokens = {};   // [samples sequence] -1: padding
  std::span<int32_t> labels = {};   // [samples sequence] what is to be predicted there, or kIgnored
  std::span<int32_t> starts = {};   // [samples sequence] where in its row the position's document begins
  std::span<int32_t> types = {};    // [samples sequence] the part of the sample that the position is in
  std::span<int32_t> classes = {};  // [samples] the class of each, or kIgnored
  std::span<float> weights = {};    // [samples] of the loss of its class
  std::span<float> features = {};   // [samples features]
  std::span<float> targets = {};    // [samples targets]
};

// Numbers of one sample.
struct RowSizes {
  int64_t tokens = 0, labels = 0, starts = 0, types = 0, classes = 0, weights = 0, features = 0, targets = 0;

  bool operator==(const RowSizes&) const = default;
};

// The parts of a batch, each under the name of the model's input.
template <typename T>
struct BatchPart {
  std::string_view name;
  std::span<T> BatchView::*view;
  int64_t RowSizes::*size;
  T padding;
};
inline constexpr std::array<BatchPart<int32_t>, 5> kIntegerParts = {{
    {"tokens", &BatchView::tokens, &RowSizes::tokens, -1},
    {"labels", &BatchView::labels, &RowSizes::labels, kIgnored},
    {"starts", &BatchView::starts, &RowSizes::starts, 0},
    {"types", &BatchView::types, &RowSizes::types, -1},
    {"classes", &BatchView::classes, &RowSizes::classes, kIgnored},
}};
inline constexpr std::array<BatchPart<float>, 3> kNumberParts = {{
    {"weights", &BatchView::weights, &RowSizes::weights, 0.0f},
    {"features", &BatchView::features, &RowSizes::features, 0.0f},
    {"targets", &BatchView::targets, &RowSizes::targets, kNoTarget},
}};
// Calls f(part) for each of them.
template <typename F>
void for_each_part(const F& f) {
  for (const auto& part : kIntegerParts) f(part);
  for (const auto& part : kNumberParts) f(part);
}

// Calls f(row number, view of that row) for each row; checks that the sizes agree. A part may be empty.
template <typename F>
void for_each_row(const BatchView& batch, const RowSizes& sizes, F&& f) {
  size_t rows = 0;
  for_each_part([&](const auto& part) {
    const size_t numbers = (batch.*part.view).size(), size = static_cast<size_t>(sizes.*part.size);
    if (numbers == 0) return;
    base::require(size > 0 && numbers % size == 0 && (rows == 0 || numbers / size == rows), "data",
                  "{} {} for {} rows of {}", numbers, part.name, rows, size);
    rows = numbers / size;
  });
  for (size_t row = 0; row < rows; ++row) {
    BatchView view;
    for_each_part([&](const auto& part) {
      const auto size = static_cast<size_t>(sizes.*part.size);
      if (!(batch.*part.view).empty()) view.*part.view = (batch.*part.view).subspan(row * size, size);
    });
    f(row, view);
  }
}

// Memory for some samples.
class BatchMemory {
 public:
  BatchMemory() = default;
  BatchMemory(int64_t rows, const RowSizes& sizes) { resize(rows, sizes); }

  std::vector<int32_t> tokens, labels, starts, types, classes;
  std::vector<float> weights, features, targets;

  void resize(int64_t rows, const RowSizes& sizes);
  BatchView view();
  // Of as many numbers.
  void copy(const BatchView& from);
};

// Writes what is to be learnt of a sample, a class or numbers, into those parts of its row; nothing that counts where
// the samples have `ended`.
void set_label(const BatchView& row, std::span<const float> label, bool ended);

// Samples by number. `fill` is const, may be called from several threads, and allocates nothing.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  // What it fills.
  virtual RowSizes row() const = 0;
  // Fills the rows with samples first, first + 1, ...; as many as there are rows. Parts that are empty are left out.
  // Throws UserError if the file holds an id that is not in the vocabulary (a damaged file).
  virtual void fill(uint64_t first, const BatchView& batch) const = 0;
};

// Samples that end: the data of an evaluation. Samples behind the last have nothing that counts.
class FiniteSource : public SampleSource {
 public:
  virtual uint64_t num_samples() const = 0;
};

}  // namespace kintsugi::data
