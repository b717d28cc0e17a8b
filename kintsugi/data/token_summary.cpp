#include "kintsugi/data/token_summary.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/thread_team.h"
#include "kintsugi/data/fingerprint.h"
#include "kintsugi/data/progress.h"

namespace kintsugi::data {
namespace {

constexpr std::string_view kFormat = "kintsugi tokens";
constexpr uint64_t kBlock = 1 << 20;            // tokens that a thread takes at a time
constexpr uint64_t kWorthAWord = 256ull << 20;  // bytes whose scan is announced

std::string hex(uint64_t value) {
  return fmt::format("{:016x}", value);
}

[[noreturn]] void refuse_json(const TokenFile& file, const std::string& what) {
  const std::string name = file.prefix().filename().string();
  throw base::UserError("tokens",
                        "\"{0}.json\" {1}; prepare it again, or, if {2}.bin and {2}.idx are of another program, remove "
                        "{2}.json",
                        file.prefix().string(), what, name);
}

// What is in NAME.json; std::exception if a key is missing or is of another type.
struct Sidecar {
  TokenSummary summary;
  std::string index_checksum;
};

Sidecar sidecar_from(const nlohmann::json& json) {
  Sidecar read;
  TokenSummary& summary = read.summary;
  summary.num_tokens = json.at("tokens");
  summary.num_documents = json.at("documents");
  summary.min_token = json.at("min_token");
  summary.max_token = json.at("max_token");
  summary.vocab_size = json.at("vocab_size");
  summary.tokenizer = json.at("tokenizer");
  summary.checksum = std::stoull(json.at("checksum").get<std::string>(), nullptr, 16);
  if (json.contains("fingerprint")) summary.fingerprint = json.at("fingerprint");
  read.index_checksum = json.at("index_checksum");
  return read;
}

Sidecar parse_sidecar(const TokenFile& file, const std::string& text) {
  if (text.empty()) refuse_json(file, "is empty");
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("format") || json["format"] != kFormat)
    refuse_json(file, "is damaged: it does not describe a token file");
  if (!json.contains("version") || json["version"] != 1)
    refuse_json(file, "has another version of the format; this program reads version 1");
  try {
    return sidecar_from(json);
  } catch (const std::exception&) {
    refuse_json(file, "is damaged: not all of its keys are there and of the right type");
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
    throw base::UserError("data",
                          "\"{}.bin\" holds the id {}, but the model's vocabulary has {}; vocab must be at least {}",
                          file.prefix().string(), summary.max_token, vocab_size, summary.max_token + 1);
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
  return hex(XXH3_64bits(json.data(), json.size()));
}

std::string summary_to_json(const TokenSummary& summary, uint64_t index_checksum) {
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["version"] = 1;
  json["tokens"] = summary.num_tokens;
  json["documents"] = summary.num_documents;
  json["min_token"] = summary.min_token;
  json["max_token"] = summary.max_token;
  json["vocab_size"] = summary.vocab_size;
  json["tokenizer"] = summary.tokenizer;
  json["checksum"] = hex(summary.checksum);
  json["index_checksum"] = hex(index_checksum);
  json["fingerprint"] = summary.fingerprint;
  return json.dump(1) + "\n";
}

}  // namespace kintsugi::data
