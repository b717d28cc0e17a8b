#include "kintsugi/samples/window.h"

#include <algorithm>
#include <array>

#include "kintsugi/base/error.h"

namespace kintsugi::samples {
namespace {

constexpr uint64_t kEnds = 64;  // document ends to read together

// Positions of the row from `at` contain `count` tokens of the file from `first`: marks their documents' beginnings,
// the first at `begin`.
void mark_documents(const data::TokenFile& file, uint64_t first, size_t at, size_t count, size_t begin,
                    std::span<int32_t> starts, std::span<int32_t> labels) {
  uint64_t document = file.document_of(first);
  std::array<uint64_t, kEnds> buffer;
  std::span<uint64_t> ends;  // of the documents from `document` on
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
      std::fill(starts.begin() + static_cast<std::ptrdiff_t>(position),
                starts.begin() + static_cast<std::ptrdiff_t>(end), static_cast<int32_t>(begin));
    }
    if (left <= count && left > 0) labels[end - 1] = kIgnored;
    begin = position = end;
    ++document;
    ends = ends.subspan(1);
  }
}

}  // namespace

void check_ids(const data::TokenFile& file, uint64_t first, std::span<const int32_t> ids, int64_t vocab_size) {
  if (vocab_size == 0) return;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab_size) continue;
    throw base::UserError("data",
                          "\"{}.bin\" holds the id {} as token {}, and the vocabulary has {}: it is damaged, or made "
                          "with another tokenizer",
                          file.prefix().string(), ids[i], first + i, vocab_size);
  }
}

Parts parts_of_windows(int64_t sequence, bool reset_at_document) {
  Parts parts = {tokens_part(sequence), labels_part(sequence)};
  if (reset_at_document) parts.push_back(starts_part(sequence));
  return parts;
}

void fill_window(const data::TokenFile& file, uint64_t start, const WindowOptions& options, const BatchView& row) {
  const std::span<int32_t> all_tokens = row.get<int32_t>("tokens"), all_labels = row.get<int32_t>("labels"),
                           starts = row.get<int32_t>("starts");
  const size_t size = all_tokens.size();
  const uint64_t total = file.num_tokens();
  size_t at = 0;
  uint64_t first = start;
  if (options.begin >= 0 && first < total) {
    int32_t token = 0;
    file.read(first, std::span(&token, 1));
    if (token != options.begin) {
      check_ids(file, first, std::span(&token, 1), options.vocab_size);
      all_tokens[0] = options.begin;
      all_labels[0] = token;
      if (!starts.empty()) starts[0] = 0;
      at = 1;
    }
  }
  while (at < size && first < total) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(size - at, total - first));
    const std::span<int32_t> tokens = all_tokens.subspan(at, count);
    const std::span<int32_t> labels = all_labels.subspan(at, count);
    if (first + count < total) {
      labels.back() = file.read_with_next(first, tokens);
      check_ids(file, first + count, labels.last(1), options.vocab_size);
    } else {
      file.read(first, tokens);
      labels.back() = kIgnored;
    }
    check_ids(file, first, tokens, options.vocab_size);
    std::copy(tokens.begin() + 1, tokens.end(), labels.begin());
    if (!starts.empty()) {
      if (options.reset_at_document) {
        mark_documents(file, first, at, count, first == start ? 0 : at, starts, all_labels);
      } else {
        std::fill_n(starts.begin() + static_cast<std::ptrdiff_t>(at), count, 0);
      }
    }
    at += count;
    first = options.wrap ? 0 : total;
  }
  std::fill(all_tokens.begin() + static_cast<std::ptrdiff_t>(at), all_tokens.end(), 0);
  std::fill(all_labels.begin() + static_cast<std::ptrdiff_t>(at), all_labels.end(), kIgnored);
  if (starts.empty()) return;
  // Padding is a document of its own.
  const auto begin = static_cast<int32_t>(options.reset_at_document ? at : 0);
  std::fill(starts.begin() + static_cast<std::ptrdiff_t>(at), starts.end(), begin);
}

}  // namespace kintsugi::samples
