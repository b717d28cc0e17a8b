#include "kintsugi/data/window.h"

#include <algorithm>
#include <array>

#include "kintsugi/base/error.h"

namespace kintsugi::data {
namespace {

constexpr uint64_t kEnds = 64;  // ends of documents that are read together

// Positions of the row from `at` on hold `count` tokens of the file from `first` on: their documents begin there.
void mark_documents(const TokenFile& file, uint64_t first, size_t at, size_t count, const BatchView& row) {
  uint64_t document = file.document_of(first);
  std::array<uint64_t, kEnds> buffer;
  std::span<uint64_t> ends;  // of the documents from `document` on
  size_t begin = at;         // a document that begins before the row begins with the row
  size_t position = at;
  while (position < at + count) {
    if (ends.empty()) {
      if (document >= file.num_documents()) {
        throw base::UserError("tokens", "\"{}\" has changed while it was in use; leave it alone, or prepare it again",
                              file.idx().path().string());
      }
      ends = std::span(buffer).first(std::min<uint64_t>(kEnds, file.num_documents() - document));
      file.document_begins(document + 1, ends);
    }
    const uint64_t left = ends.front() - first;
    const size_t end = at + static_cast<size_t>(std::min<uint64_t>(left, count));
    if (end > position) {
      std::fill(row.starts.begin() + static_cast<std::ptrdiff_t>(position),
                row.starts.begin() + static_cast<std::ptrdiff_t>(end), static_cast<int32_t>(begin));
    }
    if (left <= count && left > 0) row.labels[end - 1] = kIgnored;
    begin = position = end;
    ++document;
    ends = ends.subspan(1);
  }
}

}  // namespace

void check_ids(const TokenFile& file, uint64_t first, std::span<const int32_t> ids, int64_t vocab_size) {
  if (vocab_size == 0) return;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab_size) continue;
    throw base::UserError("data",
                          "\"{}.bin\" holds the id {} as token {}, and the vocabulary has {}: it is damaged, or made "
                          "with another tokenizer",
                          file.prefix().string(), ids[i], first + i, vocab_size);
  }
}

RowSizes row_of_tokens(int64_t sequence, bool reset_at_document) {
  return {.tokens = sequence, .labels = sequence, .starts = reset_at_document ? sequence : 0};
}

void fill_window(const TokenFile& file, uint64_t start, const WindowOptions& options, const BatchView& row) {
  const size_t size = row.tokens.size();
  const uint64_t total = file.num_tokens();
  size_t at = 0;
  uint64_t first = start;
  while (at < size && first < total) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(size - at, total - first));
    const std::span<int32_t> tokens = row.tokens.subspan(at, count);
    const std::span<int32_t> labels = row.labels.subspan(at, count);
    if (first + count < total) {
      labels.back() = file.read_with_next(first, tokens);
      check_ids(file, first + count, labels.last(1), options.vocab_size);
    } else {
      file.read(first, tokens);
      labels.back() = kIgnored;
    }
    check_ids(file, first, tokens, options.vocab_size);
    std::copy(tokens.begin() + 1, tokens.end(), labels.begin());
    if (!row.starts.empty()) {
      if (options.reset_at_document) {
        mark_documents(file, first, at, count, row);
      } else {
        std::fill_n(row.starts.begin() + static_cast<std::ptrdiff_t>(at), count, 0);
      }
    }
    at += count;
    first = options.wrap ? 0 : total;
  }
  std::fill(row.tokens.begin() + static_cast<std::ptrdiff_t>(at), row.tokens.end(), 0);
  std::fill(row.labels.begin() + static_cast<std::ptrdiff_t>(at), row.labels.end(), kIgnored);
  if (row.starts.empty()) return;
  // Padding is a document of its own.
  const auto begin = static_cast<int32_t>(options.reset_at_document ? at : 0);
  std::fill(row.starts.begin() + static_cast<std::ptrdiff_t>(at), row.starts.end(), begin);
}

}  // namespace kintsugi::data
