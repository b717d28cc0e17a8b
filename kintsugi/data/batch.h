// The contents of a micro-batch, and the interface of their sources.
#pragma once

#include <cstdint>
#include <span>

#include "kintsugi/base/error.h"

namespace kintsugi::data {

inline constexpr int32_t kIgnored = -1;  // the label of a position that is not counted

// Memory of the caller, `samples` rows of `sequence` each.
struct BatchView {
  std::span<int32_t> tokens;           // [samples sequence]
  std::span<int32_t> labels;           // [samples sequence] the token that follows, or kIgnored
  std::span<int32_t> document_starts;  // [samples sequence] where in its row the position's document begins; or empty
};

// Calls f(row number, view of that row) for each row; checks that the sizes agree.
template <typename F>
void for_each_row(const BatchView& batch, int64_t sequence, F&& f) {
  const auto size = static_cast<size_t>(sequence);
  const size_t starts = batch.document_starts.size();
  base::require(batch.tokens.size() % size == 0 && batch.labels.size() == batch.tokens.size() &&
                    (starts == 0 || starts == batch.tokens.size()),
                "data", "a batch of {} tokens, {} labels, {} starts for a sequence of {}", batch.tokens.size(),
                batch.labels.size(), starts, sequence);
  for (size_t row = 0; row < batch.tokens.size() / size; ++row) {
    f(row, BatchView{batch.tokens.subspan(row * size, size), batch.labels.subspan(row * size, size),
                     starts == 0 ? batch.document_starts : batch.document_starts.subspan(row * size, size)});
  }
}

// Samples by number. `fill` is const, may be called from several threads, and allocates nothing.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t sequence() const = 0;
  // Fills the rows with samples first, first + 1, ...; as many as there are rows. Throws UserError if the file holds
  // an id that is not in the vocabulary (a damaged file).
  virtual void fill(uint64_t first, const BatchView& batch) const = 0;
};

}  // namespace kintsugi::data
