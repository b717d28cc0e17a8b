#include "kintsugi/data/token_file.h"

#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/data/token_index.h"

namespace kintsugi::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are read in place");

template <typename T>
T load(const std::byte* bytes, uint64_t index = 0) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

base::MappedFile open_half(const std::filesystem::path& prefix, std::string_view suffix, std::string_view other) {
  const std::filesystem::path path = with_suffix(prefix, suffix);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    const std::filesystem::path beside = with_suffix(prefix, other);
    if (std::filesystem::exists(beside, ignored)) {
      throw base::UserError("tokens", "\"{}\" is missing beside \"{}\"; a token file is a .bin and an .idx of one name",
                            path.string(), beside.filename().string());
    }
    throw base::UserError("tokens",
                          "there is no token file \"{}\" (.bin and .idx); \"kintsugi prepare\" makes one from text",
                          prefix.string());
  }
  return base::MappedFile(path);
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
  idx_ = open_half(prefix_, ".idx", ".bin");
  check_header();
  bin_ = open_half(prefix_, ".bin", ".idx");
  check_index();
  num_tokens_ = bin_.bytes().size() / size_of(type_);
}

void TokenFile::check_header() {
  const std::string name = with_suffix(prefix_, ".idx").string();
  const std::span<const std::byte> bytes = idx_.bytes();
  if (bytes.size() < kIndexHeaderBytes) {
    throw base::UserError("tokens",
                          "\"{}\" is cut short: {} bytes, its header alone has {}; make it again with prepare", name,
                          bytes.size(), kIndexHeaderBytes);
  }
  if (std::memcmp(bytes.data(), kIndexMagic.data(), kIndexMagic.size()) != 0) {
    throw base::UserError("tokens", "\"{}\" is no index of a token file: it does not begin with \"MMIDIDX\"", name);
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
  // Bounds first, so that no product below can overflow.
  const uint64_t rest = bytes.size() - kIndexHeaderBytes;
  const bool possible = num_sequences_ <= rest / 12 && num_boundaries <= rest / 8;
  const uint64_t needed = possible ? num_sequences_ * 12 + num_boundaries * 8 : 0;
  if (!possible || (rest != needed && rest != needed + num_sequences_)) {
    throw base::UserError("tokens",
                          "\"{}\" is cut short or damaged: it names {} sequences and {} boundaries, which do not fit "
                          "its {} bytes; make it again with prepare",
                          name, num_sequences_, num_boundaries, bytes.size());
  }
  if (num_boundaries == 0) {
    throw base::UserError("tokens", "\"{}\" has no document boundaries; a whole index has at least one", name);
  }
  num_documents_ = num_boundaries - 1;
  lengths_ = bytes.data() + kIndexHeaderBytes;
  pointers_ = lengths_ + num_sequences_ * 4;
  boundaries_ = pointers_ + num_sequences_ * 8;
}

void TokenFile::check_index() const {
  const std::string name = with_suffix(prefix_, ".idx").string();
  const auto item = static_cast<int64_t>(size_of(type_));
  int64_t at = 0;
  for (uint64_t i = 0; i < num_sequences_; ++i) {
    const int64_t tokens = length(i);
    if (tokens < 0) {
      throw base::UserError("tokens", "\"{}\" is damaged: sequence {} has length {}; make it again with prepare", name,
                            i, tokens);
    }
    if (pointer(i) != at) {
      throw base::UserError("tokens",
                            "\"{}\" is damaged: sequence {} begins at byte {}, but the sequences before it end at "
                            "byte {}; make it again with prepare",
                            name, i, pointer(i), at);
    }
    if (__builtin_add_overflow(at, tokens * item, &at)) {
      throw base::UserError("tokens", "\"{}\" is damaged: its lengths add up to more than 2^63 bytes", name);
    }
  }
  if (static_cast<uint64_t>(at) != bin_.bytes().size()) {
    throw base::UserError(
        "tokens", "\"{}.bin\" has {} bytes, but its index describes {}: {}; make it again with prepare",
        prefix_.string(), bin_.bytes().size(), at,
        bin_.bytes().size() < static_cast<uint64_t>(at) ? "it is cut short" : "they do not belong together");
  }
  int64_t before = 0;
  for (uint64_t d = 0; d <= num_documents_; ++d) {
    const int64_t sequence = boundary(d);
    const bool ends = d == 0 ? sequence == 0 : sequence >= before;
    if (!ends || sequence > static_cast<int64_t>(num_sequences_)) {
      throw base::UserError("tokens",
                            "\"{}\" is damaged: document {} begins at sequence {}, after {} of {}; make it "
                            "again with prepare",
                            name, d, sequence, before, num_sequences_);
    }
    before = sequence;
  }
  if (before != static_cast<int64_t>(num_sequences_)) {
    throw base::UserError("tokens",
                          "\"{}\" is damaged: its documents end at sequence {} of {}; make it again with prepare", name,
                          before, num_sequences_);
  }
}

int64_t TokenFile::length(uint64_t sequence) const {
  return load<int32_t>(lengths_, sequence);
}
int64_t TokenFile::pointer(uint64_t sequence) const {
  return load<int64_t>(pointers_, sequence);
}
int64_t TokenFile::boundary(uint64_t document) const {
  return load<int64_t>(boundaries_, document);
}

uint64_t TokenFile::document_begin(uint64_t document) const {
  base::require(document <= num_documents_, "tokens", "document {} of {}", document, num_documents_);
  const auto sequence = static_cast<uint64_t>(boundary(document));
  if (sequence == num_sequences_) return num_tokens_;
  return static_cast<uint64_t>(pointer(sequence)) / size_of(type_);
}

uint64_t TokenFile::document_of(uint64_t token) const {
  base::require(token < num_tokens_, "tokens", "token {} of {}", token, num_tokens_);
  uint64_t low = 0;  // begins at or before the token
  uint64_t high = num_documents_;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (document_begin(middle) <= token ? low : high) = middle;
  }
  return low;
}

void TokenFile::read(uint64_t first, std::span<int32_t> out) const {
  base::require(first <= num_tokens_ && out.size() <= num_tokens_ - first, "tokens", "tokens {} + {} of {}", first,
                out.size(), num_tokens_);
  const std::byte* from = bin_.bytes().data() + first * size_of(type_);
  switch (type_) {
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

}  // namespace kintsugi::data
