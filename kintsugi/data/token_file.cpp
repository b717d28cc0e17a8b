#include "kintsugi/data/token_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/lfs_pointer.h"
#include "kintsugi/data/token_index.h"

namespace kintsugi::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are read as they are");

constexpr size_t kReadBytes = 64 << 10;  // of ids, at a time
constexpr size_t kSearched = 64;         // documents at the end of a search, read together
constexpr uint64_t kNoted = 4096;        // documents whose beginnings are cached

template <typename T>
T load(const std::byte* bytes, uint64_t index = 0) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

// Value `index` of a table that begins at byte `table` of the file.
template <typename T>
T value_at(const base::ReadOnlyFile& file, uint64_t table, uint64_t index) {
  T value;
  file.read_at(table + index * sizeof(T), std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

// Reads the values of a table sequentially.
template <typename T>
class Table {
 public:
  Table(const base::ReadOnlyFile& file, uint64_t begin, uint64_t count) : file_(file), at_(begin), left_(count) {}

  T next() {
    if (used_ == held_) {
      held_ = std::min<uint64_t>(left_, block_.size());
      used_ = 0;
      file_.read_at(at_, std::as_writable_bytes(std::span(block_).first(held_)));
      at_ += held_ * sizeof(T);
      left_ -= held_;
    }
    return block_[used_++];
  }

 private:
  const base::ReadOnlyFile& file_;
  uint64_t at_, left_;
  std::vector<T> block_ = std::vector<T>(kReadBytes / sizeof(T));
  size_t held_ = 0, used_ = 0;
};

void refuse_lfs_pointer(const base::ReadOnlyFile& file) {
  std::array<char, 64> head = {};
  const size_t size = std::min<uint64_t>(file.size(), head.size());
  file.read_at(0, std::as_writable_bytes(std::span(head.data(), size)));
  if (base::is_lfs_pointer({head.data(), size}))
    throw base::UserError("tokens", "\"{}\" is {}", file.path().string(), base::kLfsAdvice);
}

base::ReadOnlyFile open_half(const std::filesystem::path& prefix, std::string_view suffix, std::string_view other) {
  const std::filesystem::path path = with_suffix(prefix, suffix);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    const std::filesystem::path beside = with_suffix(prefix, other);
    if (std::filesystem::exists(beside, ignored)) {
      const bool bare = suffix == ".idx" && !std::filesystem::exists(with_suffix(prefix, ".json"), ignored);
      throw base::UserError(
          "tokens", "\"{}\" is missing next to \"{}\"; a token file is a .bin and an .idx of one name{}", path.string(),
          beside.filename().string(), bare ? "; name the .bin itself if it is nanoGPT's or llm.c's" : "");
    }
    if (std::filesystem::exists(with_suffix(prefix / "train", suffix), ignored))
      throw base::UserError("tokens", "\"{}\" is a folder with token files; name one of them: \"{}\"", prefix.string(),
                            (prefix / "train").string());
    throw base::UserError("tokens",
                          "there is no token file \"{}\" (.bin and .idx); \"kintsugi prepare\" makes one from text",
                          prefix.string());
  }
  base::ReadOnlyFile file(path);
  refuse_lfs_pointer(file);
  return file;
}

template <typename T>
void widen(const std::byte* from, std::span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const T value = load<T>(from, i);
    if constexpr (sizeof(T) == 8) {
      const bool fits = value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
      out[i] = fits ? static_cast<int32_t>(value) : std::numeric_limits<int32_t>::max();
    } else {
      out[i] = value;
    }
  }
}

void widen(TokenType type, const std::byte* from, std::span<int32_t> out) {
  switch (type) {
    case TokenType::kU8:
      return widen<uint8_t>(from, out);
    case TokenType::kI8:
      return widen<int8_t>(from, out);
    case TokenType::kI16:
      return widen<int16_t>(from, out);
    case TokenType::kU16:
      return widen<uint16_t>(from, out);
    case TokenType::kI32:
      return widen<int32_t>(from, out);
    case TokenType::kI64:
      return widen<int64_t>(from, out);
  }
}

}  // namespace

std::filesystem::path token_prefix(const std::filesystem::path& path) {
  const std::filesystem::path suffix = path.extension();
  if (suffix != ".bin" && suffix != ".idx") return path;
  std::filesystem::path prefix = path;
  return prefix.replace_extension();
}

std::filesystem::path with_suffix(const std::filesystem::path& prefix, std::string_view suffix) {
  std::filesystem::path path = prefix;
  path += suffix;
  return path;
}

TokenFile::TokenFile(const std::filesystem::path& path) : prefix_(token_prefix(path)) {
  const auto there = [&](std::string_view suffix) {
    std::error_code ignored;
    return std::filesystem::exists(with_suffix(prefix_, suffix), ignored);
  };
  // A pair prepared here has a summary; this one has lost its index.
  if (path.extension() == ".bin" && there(".bin") && !there(".idx") && !there(".json")) {
    open_bare();
    return;
  }
  idx_ = open_half(prefix_, ".idx", ".bin");
  check_header();
  bin_ = open_half(prefix_, ".bin", ".idx");
  check_sequences();
  check_documents();
  num_tokens_ = bin_.size() / size_of(type_);
  note_begins();
}

void TokenFile::open_bare() {
  constexpr int32_t kOfGpt2 = 20240520, kOfLlama3 = 20240801;
  constexpr uint64_t kHeader = 1024;
  bin_ = base::ReadOnlyFile(with_suffix(prefix_, ".bin"));
  refuse_lfs_pointer(bin_);
  bare_ = true;
  const std::string name = bin_.path().string();
  std::array<int32_t, 3> head = {};
  if (bin_.size() >= kHeader) bin_.read_at(0, std::as_writable_bytes(std::span(head)));
  if (head[0] == kOfGpt2 || head[0] == kOfLlama3) {
    const int32_t version = head[0] == kOfGpt2 ? 1 : 7;
    if (head[1] != version)
      throw base::UserError("tokens", "\"{}\" has version {} of llm.c's format; this program reads version {}", name,
                            head[1], version);
    header_ = kHeader;
    type_ = head[0] == kOfGpt2 ? TokenType::kU16 : TokenType::kI32;
    const uint64_t rest = bin_.size() - header_;
    if (head[2] < 0 || rest != static_cast<uint64_t>(head[2]) * size_of(type_))
      throw base::UserError("tokens", "\"{}\" says that it holds {} ids, but {} bytes follow its header", name, head[2],
                            rest);
  } else if (bin_.size() % size_of(type_) != 0) {
    throw base::UserError("tokens", "\"{}\" has no index \"{}.idx\", and {} bytes are not 16-bit ids, as nanoGPT's are",
                          name, prefix_.filename().string(), bin_.size());
  }
  num_tokens_ = (bin_.size() - header_) / size_of(type_);
  num_sequences_ = num_documents_ = 1;
  noted_begins_ = {0};
  noted_every_ = kSearched;
  if (header_ > 0) return;
  // Wider ids are nearly always below 65,536, so that every second half is 0.
  std::vector<uint16_t> ids(std::min<uint64_t>(num_tokens_, kReadBytes / 2) / 2 * 2);
  bin_.read_at(0, std::as_writable_bytes(std::span(ids)));
  bool wide = ids.size() >= 16;
  for (size_t i = 1; i < ids.size() && wide; i += 2) wide = ids[i] == 0;
  if (wide)
    throw base::UserError("tokens",
                          "\"{}\" has no index \"{}.idx\", and as 16-bit ids, nanoGPT's, every second one would be 0: "
                          "its ids seem to be wider",
                          name, prefix_.filename().string());
}

void TokenFile::check_header() {
  const std::string name = with_suffix(prefix_, ".idx").string();
  std::array<std::byte, kIndexHeaderBytes> bytes = {};
  if (idx_.size() < kIndexHeaderBytes) {
    throw base::UserError("tokens",
                          "\"{}\" is cut short: {} bytes, its header alone has {}; make it again with prepare", name,
                          idx_.size(), kIndexHeaderBytes);
  }
  idx_.read_at(0, bytes);
  if (std::memcmp(bytes.data(), kIndexMagic.data(), kIndexMagic.size()) != 0) {
    throw base::UserError("tokens", "\"{}\" is not the index of a token file: it does not begin with \"MMIDIDX\"",
                          name);
  }
  const auto version = load<uint64_t>(bytes.data() + 9);
  if (version != 1) {
    throw base::UserError("tokens", "\"{}\" has version {} of the format; this program reads version 1", name, version);
  }
  const auto code = load<uint8_t>(bytes.data() + 17);
  const std::optional<TokenType> type = token_type_of(code);
  if (!type) {
    throw base::UserError("tokens", "\"{}\" has type code {}{}; token ids are integers: codes 1 to 5 and 8", name, code,
                          code == 6 || code == 7 ? " (floating point)" : "");
  }
  type_ = *type;
  num_sequences_ = load<uint64_t>(bytes.data() + 18);
  const auto num_boundaries = load<uint64_t>(bytes.data() + 26);
  // Check bounds first, so that no product below can overflow.
  const uint64_t rest = idx_.size() - kIndexHeaderBytes;
  const bool possible = num_sequences_ <= rest / 12 && num_boundaries <= rest / 8;
  const uint64_t needed = possible ? num_sequences_ * 12 + num_boundaries * 8 : 0;
  if (!possible || (rest != needed && rest != needed + num_sequences_)) {
    throw base::UserError("tokens",
                          "\"{}\" is cut short or damaged: it names {} sequences and {} boundaries, which do not fit "
                          "its {} bytes; make it again with prepare",
                          name, num_sequences_, num_boundaries, idx_.size());
  }
  if (num_boundaries == 0) {
    throw base::UserError("tokens", "\"{}\" has no document boundaries; a whole index has at least one", name);
  }
  num_documents_ = num_boundaries - 1;
  lengths_ = kIndexHeaderBytes;
  pointers_ = lengths_ + num_sequences_ * 4;
  boundaries_ = pointers_ + num_sequences_ * 8;
}

void TokenFile::check_sequences() const {
  const std::string name = with_suffix(prefix_, ".idx").string();
  Table<int32_t> lengths(idx_, lengths_, num_sequences_);
  Table<int64_t> pointers(idx_, pointers_, num_sequences_);
  const auto item = static_cast<int64_t>(size_of(type_));
  int64_t at = 0;
  for (uint64_t i = 0; i < num_sequences_; ++i) {
    const int64_t tokens = lengths.next(), pointer = pointers.next();
    if (tokens < 0) {
      throw base::UserError("tokens", "\"{}\" is damaged: sequence {} has length {}; make it again with prepare", name,
                            i, tokens);
    }
    if (pointer != at) {
      throw base::UserError("tokens",
                            "\"{}\" is damaged: sequence {} begins at byte {}, but the sequences before it end at "
                            "byte {}; make it again with prepare",
                            name, i, pointer, at);
    }
    if (__builtin_add_overflow(at, tokens * item, &at)) {
      throw base::UserError("tokens", "\"{}\" is damaged: its lengths add up to more than 2^63 bytes", name);
    }
  }
  if (static_cast<uint64_t>(at) != bin_.size()) {
    throw base::UserError("tokens",
                          "\"{}.bin\" has {} bytes, but its index describes {}: {}; make it again with prepare",
                          prefix_.string(), bin_.size(), at,
                          bin_.size() < static_cast<uint64_t>(at) ? "it is cut short" : "they do not belong together");
  }
}

void TokenFile::check_documents() {
  const std::string name = with_suffix(prefix_, ".idx").string();
  Table<int64_t> boundaries(idx_, boundaries_, num_documents_ + 1);
  int64_t before = 0;
  for (uint64_t d = 0; d <= num_documents_; ++d) {
    const int64_t sequence = boundaries.next();
    const bool ends = d == 0 ? sequence == 0 : sequence >= before;
    if (!ends || sequence > static_cast<int64_t>(num_sequences_)) {
      throw base::UserError("tokens",
                            "\"{}\" is damaged: document {} begins at sequence {}, after {} of {}; make it "
                            "again with prepare",
                            name, d, sequence, before, num_sequences_);
    }
    one_sequence_each_ = one_sequence_each_ && sequence == static_cast<int64_t>(d);
    before = sequence;
  }
  if (before != static_cast<int64_t>(num_sequences_)) {
    throw base::UserError("tokens",
                          "\"{}\" is damaged: its documents end at sequence {} of {}; make it again with prepare", name,
                          before, num_sequences_);
  }
}

void TokenFile::note_begins() {
  noted_every_ = std::max<uint64_t>(kSearched, (num_documents_ + kNoted - 1) / kNoted);
  for (uint64_t d = 0; d < num_documents_; d += noted_every_) noted_begins_.push_back(document_begin(d));
}

uint64_t TokenFile::document_begin(uint64_t document) const {
  uint64_t begin = 0;
  document_begins(document, std::span(&begin, 1));
  return begin;
}

void TokenFile::document_begins(uint64_t first, std::span<uint64_t> out) const {
  base::require(first <= num_documents_ && out.size() <= num_documents_ - first + 1, "tokens",
                "documents {} + {} of {}", first, out.size(), num_documents_);
  if (out.empty()) return;
  if (bare_) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = first + i == 0 ? 0 : num_tokens_;
    return;
  }
  // The end, requested as the last document, has no sequence.
  const bool end = first + out.size() > num_documents_;
  const std::span<uint64_t> begun = out.first(out.size() - (end ? 1 : 0));
  if (end) out.back() = num_tokens_;
  if (one_sequence_each_) {
    idx_.read_at(pointers_ + first * sizeof(int64_t), std::as_writable_bytes(begun));
    for (uint64_t& byte : begun) byte /= size_of(type_);
    return;
  }
  idx_.read_at(boundaries_ + first * sizeof(int64_t), std::as_writable_bytes(begun));
  for (uint64_t& begin : begun) {
    const uint64_t sequence = begin;
    if (sequence > num_sequences_) {
      throw base::UserError("tokens", "\"{}\" has changed while it was in use; leave it alone, or prepare it again",
                            idx_.path().string());
    }
    begin = sequence == num_sequences_
                ? num_tokens_
                : static_cast<uint64_t>(value_at<int64_t>(idx_, pointers_, sequence)) / size_of(type_);
  }
}

uint64_t TokenFile::document_of(uint64_t token) const {
  base::require(token < num_tokens_, "tokens", "token {} of {}", token, num_tokens_);
  const auto after = std::upper_bound(noted_begins_.begin(), noted_begins_.end(), token);
  uint64_t low =
      static_cast<uint64_t>(after - noted_begins_.begin() - 1) * noted_every_;  // begins at or before the token
  uint64_t high = std::min(low + noted_every_, num_documents_);
  while (high - low > kSearched) {
    const uint64_t middle = low + (high - low) / 2;
    (document_begin(middle) <= token ? low : high) = middle;
  }
  std::array<uint64_t, kSearched> buffer;
  const std::span<uint64_t> begins = std::span(buffer).first(high - low);
  document_begins(low, begins);
  return low + static_cast<uint64_t>(std::upper_bound(begins.begin(), begins.end(), token) - begins.begin()) - 1;
}

void TokenFile::read(uint64_t first, std::span<int32_t> out) const {
  base::require(first <= num_tokens_ && out.size() <= num_tokens_ - first, "tokens", "tokens {} + {} of {}", first,
                out.size(), num_tokens_);
  read_tokens(first, out, nullptr);
}

int32_t TokenFile::read_with_next(uint64_t first, std::span<int32_t> out) const {
  base::require(!out.empty() && first < num_tokens_ && out.size() < num_tokens_ - first, "tokens",
                "tokens {} + {} + 1 of {}", first, out.size(), num_tokens_);
  int32_t next = 0;
  read_tokens(first, out, &next);
  return next;
}

void TokenFile::read_tokens(uint64_t first, std::span<int32_t> out, int32_t* next) const {
  std::array<std::byte, kReadBytes> buffer;
  const size_t item = size_of(type_), at_a_time = kReadBytes / item - 1;
  for (size_t done = 0; done < out.size(); done += at_a_time) {
    const std::span<int32_t> part = out.subspan(done, std::min(at_a_time, out.size() - done));
    const bool last = done + part.size() == out.size();
    const std::span<std::byte> bytes = std::span(buffer).first((part.size() + (last && next ? 1 : 0)) * item);
    bin_.read_at(header_ + (first + done) * item, bytes);
    widen(type_, bytes.data(), part);
    if (last && next) widen(type_, bytes.data() + part.size() * item, std::span(next, 1));
  }
}

}  // namespace kintsugi::data
