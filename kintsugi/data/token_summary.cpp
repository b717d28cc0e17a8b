#include "kintsugi/data/token_summary.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <optional>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/base/thread_team.h"
#include "kintsugi/data/fingerprint.h"
#include "kintsugi/data/progress.h"
#include "kintsugi/text/declared_tokens.h"

namespace kintsugi::data {
namespace {

constexpr std::string_view kFormat = "kintsugi tokens";
constexpr uint64_t kBlock = 1 << 20;            // tokens that a thread takes at a time
constexpr uint64_t kWorthAWord = 256ull << 20;  // announce scans of at least this many bytes

std::string hex(uint64_t value) {
  return fmt::format("{:016x}", value);
}

constexpr std::string_view kTokens = "[tokens] ";  // prefix of each error

// What to do if NAME.json is rejected.
std::string advice(const TokenFile& file) {
  return fmt::format("prepare it again, or, if {0}.bin and {0}.idx are of another program, remove {0}.json",
                     file.prefix().filename().string());
}

[[noreturn]] void refuse_json(const TokenFile& file, const std::string& what) {
  throw base::UserError("tokens", "\"{}.json\" {}; {}", file.prefix().string(), what, advice(file));
}

struct Sidecar {
  TokenSummary summary;
  std::string index_checksum;
};

// Parses NAME.json; throws UserError, stating the line and the key.
Sidecar sidecar_from(const base::Json& json) {
  const auto format = json.find("format");
  if (!format || !format->is_text() || format->text() != kFormat) json.fail("it does not describe a token file");
  if (const base::Json version = json.at("version"); version.whole() != 1) version.refuse("1");
  Sidecar read;
  TokenSummary& summary = read.summary;
  summary.num_tokens = static_cast<uint64_t>(json.at("tokens").whole());
  summary.num_documents = static_cast<uint64_t>(json.at("documents").whole());
  summary.min_token = json.at("min_token").whole(-1);
  summary.max_token = json.at("max_token").whole(-1);
  summary.vocab_size = json.at("vocab_size").whole();
  summary.tokenizer = json.at("tokenizer").text();
  const std::string_view checksum = json.at("checksum").text();
  const char* end = checksum.data() + checksum.size();
  if (const auto parsed = std::from_chars(checksum.data(), end, summary.checksum, 16);
      parsed.ec != std::errc() || parsed.ptr != end)
    json.at("checksum").refuse("16 hexadecimal digits");
  if (const auto fingerprint = json.find("fingerprint")) summary.fingerprint = fingerprint->text();
  read.index_checksum = json.at("index_checksum").text();
  return read;
}

Sidecar parse_sidecar(const TokenFile& file, const std::string& text) {
  if (text.empty()) refuse_json(file, "is empty");
  const std::string path = with_suffix(file.prefix(), ".json").string();
  try {
    return sidecar_from(base::Json::parse("tokens", path, text));
  } catch (const base::UserError& error) {
    throw base::UserError("tokens", "{}; {}", std::string_view(error.what()).substr(kTokens.size()), advice(file));
  }
}

// The summary in NAME.json; nothing if there is no such file.
std::optional<TokenSummary> read_summary(const TokenFile& file) {
  const std::filesystem::path path = with_suffix(file.prefix(), ".json");
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  Sidecar read = parse_sidecar(file, base::read_file(path));
  const auto require_count = [&](const char* what, uint64_t written, uint64_t now) {
    if (written == now) return;
    refuse_json(file, fmt::format("describes another token file: {} {} instead of {}", written, what, now));
  };
  require_count("tokens", read.summary.num_tokens, file.num_tokens());
  require_count("documents", read.summary.num_documents, file.num_documents());
  if (read.summary.vocab_size > 0 && read.summary.max_token >= read.summary.vocab_size)
    refuse_json(file, fmt::format("says that the vocabulary has {} ids, and the largest one is {}",
                                  read.summary.vocab_size, read.summary.max_token));
  if (const std::string now = hex(base::checksum_of(file.idx())); now != read.index_checksum) {
    refuse_json(file, fmt::format("describes another token file: its index has the checksum {} instead of {}",
                                  read.index_checksum, now));
  }
  return read.summary;
}

TokenSummary scan(const TokenFile& file, int threads, std::FILE* progress) {
  struct Range {
    int32_t least = INT32_MAX;
    int32_t most = INT32_MIN;
  };
  std::atomic<uint64_t> next{0};
  const auto count = static_cast<size_t>(std::max(threads, 1));
  std::vector<Range> ranges(count);
  {
    const bool announce = file.num_bytes() >= kWorthAWord;
    Progress bar(announce ? progress : nullptr, fmt::format("reading {}.bin", file.prefix().string()),
                 file.num_bytes());
    base::ThreadTeam team(static_cast<int>(count));
    team.run([&](int thread) {
      const auto me = static_cast<size_t>(thread);
      std::vector<int32_t> block;
      while (true) {
        const uint64_t first = next.fetch_add(kBlock);
        if (first >= file.num_tokens()) return;
        block.resize(std::min(kBlock, file.num_tokens() - first));
        file.read(first, block);
        const auto [least, most] = std::minmax_element(block.begin(), block.end());
        ranges[me].least = std::min(ranges[me].least, *least);
        ranges[me].most = std::max(ranges[me].most, *most);
        if (me == 0) bar.show(std::min(next.load(), file.num_tokens()) * size_of(file.type()));
      }
    });
  }
  Range all;
  for (const Range& range : ranges) {
    all.least = std::min(all.least, range.least);
    all.most = std::max(all.most, range.most);
  }
  TokenSummary summary;
  summary.num_tokens = file.num_tokens();
  summary.num_documents = file.num_documents();
  if (file.num_tokens() > 0) {
    summary.min_token = all.least;
    summary.max_token = all.most;
  }
  summary.scanned = true;
  return summary;
}

}  // namespace

TokenSummary summarize(const TokenFile& file, int threads, std::FILE* progress) {
  if (std::optional<TokenSummary> summary = read_summary(file)) return *summary;
  return scan(file, threads, progress);
}

void require_vocabulary(const TokenFile& file, const TokenSummary& summary, int64_t vocab_size) {
  if (summary.num_tokens == 0) return;
  if (summary.min_token < 0) {
    throw base::UserError("data", "\"{}.bin\" holds the id {}; token ids are not negative", file.prefix().string(),
                          summary.min_token);
  }
  if (summary.max_token >= vocab_size) {
    throw base::UserError(
        "data", "\"{}.bin\" holds the id {}, but the model's vocabulary has {}; vocab must be at least {}",
        file.prefix().string(), summary.max_token, vocab_size, static_cast<uint64_t>(summary.max_token) + 1);
  }
}

uint64_t checksum_of(const TokenFile& file) {
  return base::checksum_of(file.bin());
}

std::string checked_fingerprint(const TokenFile& file, const TokenSummary& summary) {
  const std::string now = fingerprint(file);
  if (!summary.fingerprint.empty() && summary.fingerprint != now) {
    refuse_json(file, fmt::format("describes another token file: one with the fingerprint {} instead of {}",
                                  summary.fingerprint, now));
  }
  return now;
}

std::string tokenizer_fingerprint(std::string_view json) {
  const std::string plain = text::without_declared(json);
  return hex(XXH3_64bits(plain.data(), plain.size()));
}

std::string summary_to_json(const TokenSummary& summary, uint64_t index_checksum) {
  base::JsonWriter json(1);
  json.object([&] {
    json.key("format").value(kFormat);
    json.key("version").value(1);
    json.key("tokens").value(summary.num_tokens);
    json.key("documents").value(summary.num_documents);
    json.key("min_token").value(summary.min_token);
    json.key("max_token").value(summary.max_token);
    json.key("vocab_size").value(summary.vocab_size);
    json.key("tokenizer").value(summary.tokenizer);
    json.key("checksum").value(hex(summary.checksum));
    json.key("index_checksum").value(hex(index_checksum));
    json.key("fingerprint").value(summary.fingerprint);
  });
  return json.text() + "\n";
}

}  // namespace kintsugi::data
