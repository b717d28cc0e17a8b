// tiktoken's files: lines of "BASE64 RANK".
#include <charconv>
#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/text/base64.h"
#include "kintsugi/text/ranked_bpe.h"
#include "kintsugi/text/split_pattern.h"

namespace kintsugi::text {
namespace {

constexpr std::string_view kCl100kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

using Special = std::vector<std::pair<std::string, int32_t>>;

Special of_llama3() {
  Special all = {{"<|begin_of_text|>", 128000},
                 {"<|end_of_text|>", 128001},
                 {"<|reserved_special_token_0|>", 128002},
                 {"<|reserved_special_token_1|>", 128003},
                 {"<|finetune_right_pad_id|>", 128004},
                 {"<|reserved_special_token_2|>", 128005},
                 {"<|start_header_id|>", 128006},
                 {"<|end_header_id|>", 128007},
                 {"<|eom_id|>", 128008},
                 {"<|eot_id|>", 128009},
                 {"<|python_tag|>", 128010}};
  for (int i = 3; i < 248; ++i) all.emplace_back(fmt::format("<|reserved_special_token_{}|>", i), 128008 + i);
  return all;
}

// A published tokenizer.
struct Known {
  std::string_view name;  // substring of the file's name
  size_t num_tokens;
  std::string_view pattern;
  Special special;
  std::string_view begin, end;
};

const std::vector<Known>& published() {
  constexpr std::string_view kEnd = "<|endoftext|>";
  static const std::vector<Known> list = {
      {"r50k", 50256, kGpt2Pattern, {{"<|endoftext|>", 50256}}, "", kEnd},
      {"p50k", 50280, kGpt2Pattern, {{"<|endoftext|>", 50256}}, "", kEnd},
      {"cl100k",
       100256,
       kCl100kPattern,
       {{"<|endoftext|>", 100257},
        {"<|fim_prefix|>", 100258},
        {"<|fim_middle|>", 100259},
        {"<|fim_suffix|>", 100260},
        {"<|endofprompt|>", 100276}},
       "",
       kEnd},
      {"o200k", 199998, kO200kPattern, {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}, "", kEnd},
      {"llama3", 128000, kCl100kPattern, of_llama3(), "<|begin_of_text|>", "<|end_of_text|>"},
      {"qwen",
       151643,
       kQwenPattern,
       {{"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}},
       "",
       kEnd}};
  return list;
}

// Finds a tokenizer by name and number of tokens, or by the latter alone.
const Known* find_published(std::string_view where, size_t num_tokens) {
  const size_t slash = where.rfind('/');
  const std::string_view name = slash == where.npos ? where : where.substr(slash + 1);
  for (const Known& known : published())
    if (known.num_tokens == num_tokens) return &known;
  for (const Known& known : published())
    if (name.starts_with(known.name)) return &known;
  return nullptr;
}

struct Line {
  std::string token;
  size_t rank = 0;
};

std::optional<Line> parse_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == line.npos || space == 0) return std::nullopt;
  const auto token = read_base64(line.substr(0, space));
  Line read;
  const char* end = line.data() + line.size();
  const auto [stop, error] = std::from_chars(line.data() + space + 1, end, read.rank);
  if (!token || token->empty() || error != std::errc() || stop != end) return std::nullopt;
  read.token = *token;
  return read;
}

std::string_view next_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

bool is_tiktoken(std::string_view content) {
  std::string_view rest = content.substr(0, 4096);
  return parse_line(next_line(rest)).has_value();
}

std::string tiktoken_json(std::string_view content, std::string_view where) {
  RankedBpe bpe;
  size_t number = 0, count = 0;
  for (std::string_view rest = content; !rest.empty();) {
    const std::string_view line = next_line(rest);
    ++number;
    if (line.empty()) continue;
    const auto read = parse_line(line);
    constexpr size_t kMost = 1 << 24;
    if (!read || read->rank >= kMost)
      throw base::UserError("tokenizer", "{}:{}: {} should be a token in base64 and its rank", where, number,
                            base::in_quotes(line, 60));
    if (bpe.tokens.size() <= read->rank) bpe.tokens.resize(read->rank + 1);
    if (!bpe.tokens[read->rank].empty())
      throw base::UserError("tokenizer", "{}:{}: the rank {} is there twice", where, number, read->rank);
    bpe.tokens[read->rank] = read->token;
    ++count;
  }
  bpe.pattern = kCl100kPattern;
  if (const Known* known = find_published(where, count)) {
    bpe.pattern = known->pattern;
    if (bpe.tokens.size() <= static_cast<size_t>(known->special.front().second) || known->num_tokens == count) {
      bpe.special = known->special;
      bpe.begin = known->begin;
      bpe.end = known->end;
    }
  }
  return write_ranked_json(bpe);
}

}  // namespace kintsugi::text
