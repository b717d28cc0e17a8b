#include "app/show_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "app/print_entry.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/data/token_file.h"
#include "kintsugi/data/token_summary.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::app {
namespace {

constexpr uint64_t kFirstTokens = 64;

std::string digits(uint64_t value) {
  return base::group_digits(static_cast<int64_t>(value));
}

// Lengths in tokens: least, median, mean, most.
std::string lengths_of(const data::TokenFile& file) {
  std::vector<uint64_t> lengths(file.num_documents());
  file.document_begins(1, lengths);  // the ends
  std::adjacent_difference(lengths.begin(), lengths.end(), lengths.begin());
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  return fmt::format("{} to {} tokens, median {}, mean {}", digits(*least), digits(*most), digits(*middle),
                     digits(file.num_tokens() / file.num_documents()));
}

std::string checksum_text(const data::TokenFile& file, const data::TokenSummary& summary) {
  if (summary.scanned) return "none (the file is from another program, or its .json is missing)";
  const uint64_t now = data::checksum_of(file);
  if (now == summary.checksum) return fmt::format("{:016x}, as it was written", now);
  return fmt::format("{:016x}, but {:016x} was written: the file is DAMAGED, make it again with prepare", now,
                     summary.checksum);
}

// The tokenizer.json next to the pair; null if there is none.
std::unique_ptr<text::Tokenizer> tokenizer_beside(const data::TokenFile& file, const data::TokenSummary& summary) {
  const std::filesystem::path path = file.prefix().parent_path() / "tokenizer.json";
  if (!std::filesystem::is_regular_file(path)) {
    print_entry("tokenizer", "none next to it");
    return nullptr;
  }
  std::unique_ptr<text::Tokenizer> tokenizer = text::load_tokenizer(path);
  const bool same =
      summary.tokenizer.empty() || summary.tokenizer == data::tokenizer_fingerprint(base::read_file(path));
  print_entry("tokenizer", fmt::format("{}, {}{}", tokenizer->kind(), base::counted(tokenizer->vocab_size(), "id"),
                                       same ? "" : "; it is NOT the one that made this file"));
  if (!same) return nullptr;
  return tokenizer;
}

void print_first_tokens(const data::TokenFile& file, const text::Tokenizer* tokenizer) {
  std::vector<int32_t> ids(std::min(file.num_tokens(), kFirstTokens));
  file.read(0, ids);
  print_entry(
      "first ids",
      fmt::format("{}", fmt::join(ids.begin(), ids.begin() + std::min<std::ptrdiff_t>(16, std::ssize(ids)), " ")));
  const auto known = [&](int32_t id) { return id >= 0 && id < tokenizer->vocab_size(); };
  if (tokenizer && std::all_of(ids.begin(), ids.end(), known)) {
    print_entry("first text", "\"" + base::one_line(tokenizer->decode(ids)) + "\"");
  }
}

}  // namespace

void show_tokens(const std::filesystem::path& path) {
  const data::TokenFile file(path);
  const data::TokenSummary summary = data::summarize(file, static_cast<int>(base::usable_cores()), stderr);
  print_entry("token file", file.prefix().string() + (file.bare() ? ".bin" : ".bin, .idx"));
  print_entry("tokens", fmt::format("{}, {}, {}", digits(file.num_tokens()), data::name_of(file.type()),
                                    base::format_bytes(file.num_bytes())));
  print_entry("documents", digits(file.num_documents()));
  if (file.num_sequences() != file.num_documents()) print_entry("sequences", digits(file.num_sequences()));
  if (file.num_documents() > 0) print_entry("lengths", lengths_of(file));
  if (file.num_tokens() > 0) {
    print_entry("ids",
                fmt::format("{} to {}{}", summary.scanned ? summary.min_token : 0, summary.max_token,
                            summary.vocab_size > 0 ? fmt::format(" of a vocabulary of {}",
                                                                 digits(static_cast<uint64_t>(summary.vocab_size)))
                                                   : ""));
  }
  print_entry("checksum", checksum_text(file, summary));
  const std::unique_ptr<text::Tokenizer> tokenizer = tokenizer_beside(file, summary);
  if (file.num_tokens() > 0) print_first_tokens(file, tokenizer.get());
}

}  // namespace kintsugi::app
