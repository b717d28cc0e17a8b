#include "kintsugi/data/token_writer.h"

#include <algorithm>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/memory.h"
#include "kintsugi/data/fingerprint.h"
#include "kintsugi/data/token_file.h"
#include "kintsugi/data/token_index.h"
#include "kintsugi/data/token_summary.h"

namespace kintsugi::data {
namespace {

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

void rename_part(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error) throw base::UserError("tokens", "cannot rename \"{}\": {}", from.string(), error.message());
}

constexpr size_t kTokensPacked = 1 << 16;  // tokens packed at a time

}  // namespace

TokenWriter::TokenWriter(const std::filesystem::path& prefix, TokenWriterOptions options)
    : prefix_(token_prefix(prefix)), options_(std::move(options)), type_(token_type_for(options_.vocab_size)) {
  base::require(options_.vocab_size > 0 && options_.max_sequence > 0, "tokens", "a writer without a vocabulary");
  bin_.emplace(part(".bin"));
  lengths_.emplace(part(".lengths"));
  boundaries_.emplace(part(".boundaries"));
  boundaries_->write(bytes_of(int64_t{0}));
  hash_ = XXH3_createState();
  XXH3_64bits_reset(hash_);
}

TokenWriter::~TokenWriter() {
  XXH3_freeState(hash_);
  if (published_) return;
  base::if_memory_lasts([this] {
    for (const char* suffix : {".bin", ".idx", ".json", ".lengths", ".boundaries"})
      base::remove_if_possible(part(suffix));
  });
}

std::filesystem::path TokenWriter::part(std::string_view suffix) const {
  return with_suffix(with_suffix(prefix_, suffix), ".part");
}

void TokenWriter::append(std::span<const int32_t> ids) {
  while (!ids.empty()) {
    const auto space = static_cast<size_t>(options_.max_sequence - in_sequence_);
    if (space == 0) {
      end_sequence();
      continue;
    }
    const std::span<const int32_t> block = ids.first(std::min({ids.size(), space, kTokensPacked}));
    for (const int32_t id : block) {
      base::require(id >= 0 && id < options_.vocab_size, "tokens", "id {} with a vocabulary of {}", id,
                    options_.vocab_size);
      max_token_ = std::max<int64_t>(max_token_, id);
    }
    packed_.resize(block.size() * size_of(type_));
    if (type_ == TokenType::kU16) {
      for (size_t i = 0; i < block.size(); ++i) {
        const auto id = static_cast<uint16_t>(block[i]);
        std::memcpy(packed_.data() + 2 * i, &id, 2);
      }
    } else {
      std::memcpy(packed_.data(), block.data(), packed_.size());
    }
    XXH3_64bits_update(hash_, packed_.data(), packed_.size());
    bin_->write(packed_);
    in_sequence_ += static_cast<int64_t>(block.size());
    num_tokens_ += block.size();
    ids = ids.subspan(block.size());
  }
}

void TokenWriter::end_sequence() {
  lengths_->write(bytes_of(static_cast<int32_t>(in_sequence_)));
  ++num_sequences_;
  in_sequence_ = 0;
}

void TokenWriter::end_document() {
  if (in_sequence_ > 0 || num_sequences_ == begun_) end_sequence();
  boundaries_->write(bytes_of(static_cast<int64_t>(num_sequences_)));
  ++num_documents_;
  begun_ = num_sequences_;
}

void TokenWriter::finish() {
  if (in_sequence_ > 0 || num_sequences_ > begun_) end_document();
  bin_->close();
  lengths_->close();
  boundaries_->close();
  write_index();
  write_summary();
  std::filesystem::remove(part(".lengths"));
  std::filesystem::remove(part(".boundaries"));
}

void TokenWriter::write_index() {
  const base::ReadOnlyFile lengths(part(".lengths"));
  base::FileWriter idx(part(".idx"));
  const auto copy = [&](std::span<const std::byte> block) { idx.write(block); };
  idx.write(kIndexMagic);
  idx.write(bytes_of(uint64_t{1}));
  idx.write(bytes_of(static_cast<uint8_t>(type_)));
  idx.write(bytes_of(num_sequences_));
  idx.write(bytes_of(num_documents_ + 1));
  base::for_each_block(lengths, copy);
  int64_t pointer = 0;
  base::for_each_block(lengths, [&](std::span<const std::byte> block) {
    for (size_t at = 0; at < block.size(); at += sizeof(int32_t)) {
      idx.write(bytes_of(pointer));
      int32_t length = 0;
      std::memcpy(&length, block.data() + at, sizeof length);
      pointer += static_cast<int64_t>(length) * static_cast<int64_t>(size_of(type_));
    }
  });
  base::for_each_block(base::ReadOnlyFile(part(".boundaries")), copy);
  idx.close();
}

void TokenWriter::write_summary() {
  TokenSummary summary;
  summary.num_tokens = num_tokens_;
  summary.num_documents = num_documents_;
  summary.min_token = max_token_ < 0 ? -1 : 0;
  summary.max_token = max_token_;
  summary.vocab_size = options_.vocab_size;
  summary.tokenizer = options_.tokenizer;
  summary.checksum = XXH3_64bits_digest(hash_);
  const base::ReadOnlyFile idx(part(".idx"));
  summary.fingerprint = fingerprint(base::ReadOnlyFile(part(".bin")), idx);
  base::FileWriter json(part(".json"));
  json.write(summary_to_json(summary, base::checksum_of(idx)));
  json.close();
}

void TokenWriter::publish() {
  std::error_code ignored;
  // Without its index an older pair is incomplete, so a stop between two renames leaves no mixture of old and new.
  std::filesystem::remove(with_suffix(prefix_, ".idx"), ignored);
  for (const char* suffix : {".bin", ".json", ".idx"}) rename_part(part(suffix), with_suffix(prefix_, suffix));
  base::sync_folder(prefix_.parent_path());
  published_ = true;
}

}  // namespace kintsugi::data
