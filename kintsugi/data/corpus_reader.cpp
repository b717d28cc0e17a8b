#include "kintsugi/data/corpus_reader.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::data {
namespace {

constexpr size_t kLeastRead = 64 << 10;  // avoids tiny pieces at the end of a chunk
constexpr size_t kMostText = 1 << 30;    // without a safe cut

}  // namespace

CorpusReader::CorpusReader(const Corpus& corpus, ReaderOptions options) : corpus_(corpus), options_(options) {
  base::require(!options_.split_at || (corpus_.files.size() == 1 && !corpus_.files[0].jsonl), "prepare",
                "a split by position of {} files", corpus_.files.size());
}

bool CorpusReader::next(Chunk& chunk) {
  chunk.text.clear();
  chunk.pieces.clear();
  while (chunk.text.size() < options_.chunk_bytes && file_ < corpus_.files.size()) {
    if (!input_) input_ = std::make_unique<InputFile>(corpus_.files[file_]);
    corpus_.files[file_].jsonl ? read_lines(chunk) : read_plain(chunk);
  }
  return !chunk.pieces.empty();
}

// Makes chunk.text contain `want` bytes from `begin`; returns false if the file ends before.
bool CorpusReader::fill(Chunk& chunk, size_t begin, size_t want) {
  const size_t have = chunk.text.size() - begin;
  if (have >= want) return true;
  const size_t missing = want - have;
  return input_->read(missing, chunk.text) == missing;
}

void CorpusReader::close_file() {
  input_.reset();
  ++file_;
  offset_ = 0;
  line_ = 1;
}

void CorpusReader::read_plain(Chunk& chunk) {
  const size_t begin = chunk.text.size();
  chunk.text += rest_;
  rest_.clear();
  size_t want = std::max(options_.chunk_bytes - begin, std::min(kLeastRead, options_.chunk_bytes));
  Piece piece = {.begin = begin, .file = file_, .offset = offset_, .document = document_};
  while (true) {
    const bool more = fill(chunk, begin, want);
    const bool splits = options_.split_at && *options_.split_at >= offset_ && document_ == 0 &&
                        *options_.split_at <= offset_ + (chunk.text.size() - begin);
    if (splits) {
      piece.end = begin + static_cast<size_t>(*options_.split_at - offset_);
      piece.clipped = true;
      ++document_;
      break;
    }
    if (!more) {
      piece.end = chunk.text.size();
      ++document_;
      break;
    }
    if (options_.tokenizer && options_.rule == CutRule::kWord && !cuts_) cuts_.emplace(*options_.tokenizer);
    const size_t cut =
        find_safe_cut(std::string_view(chunk.text).substr(begin), options_.rule, cuts_ ? &*cuts_ : nullptr);
    if (cut > 0) {
      piece.end = begin + cut;
      piece.ends_document = false;
      break;
    }
    if (want >= kMostText) {
      throw base::UserError(
          "prepare",
          "\"{}\": from byte {} on there is no place for 1 GiB at which this tokenizer's words surely "
          "end; make several files of it, or take --tokenizer bytes",
          corpus_.files[file_].path.string(), offset_);
    }
    want *= 2;
  }
  const bool whole = piece.ends_document && !piece.clipped;
  offset_ += piece.end - begin;
  if (whole) {
    close_file();
  } else {
    rest_.assign(chunk.text, piece.end);
    chunk.text.resize(piece.end);
  }
  chunk.pieces.push_back(piece);
}

void CorpusReader::read_lines(Chunk& chunk) {
  const size_t begin = chunk.text.size();
  chunk.text += rest_;
  rest_.clear();
  size_t want = std::max(options_.chunk_bytes - begin, std::min(kLeastRead, options_.chunk_bytes));
  Piece piece = {.begin = begin, .file = file_, .offset = offset_, .document = document_, .line = line_};
  bool more = true;
  while (true) {
    more = fill(chunk, begin, want);
    if (!more) {
      piece.end = chunk.text.size();
      break;
    }
    const size_t newline = chunk.text.rfind('\n');
    if (newline != std::string::npos && newline >= begin) {
      piece.end = newline + 1;
      break;
    }
    if (want >= kMostText) {
      throw base::UserError("prepare", "{}:{}: the line is longer than 1 GiB; is it JSONL, one object per line?",
                            corpus_.files[file_].path.string(), line_);
    }
    want *= 2;
  }
  const std::string_view lines = std::string_view(chunk.text).substr(begin, piece.end - begin);
  const auto count = static_cast<uint64_t>(std::count(lines.begin(), lines.end(), '\n')) +
                     (!lines.empty() && lines.back() != '\n' ? 1 : 0);
  document_ += count;
  line_ += count;
  offset_ += lines.size();
  if (more) {
    rest_.assign(chunk.text, piece.end);
    chunk.text.resize(piece.end);
  } else {
    close_file();
  }
  chunk.pieces.push_back(piece);
}

}  // namespace kintsugi::data
