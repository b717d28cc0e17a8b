#include "kintsugi/data/documents.h"

#include <fmt/format.h>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"

namespace kintsugi::data {
namespace {

std::string fields_of(const base::Json& object) {
  std::string names;
  int shown = 0;
  for (const base::Json& member : object.members()) {
    if (++shown > 8) return names + ", ...";
    names += (shown > 1 ? ", " : "") + base::in_quotes(member.key(), 40);
  }
  return names.empty() ? "none" : names;
}

// An error without its "[where] ".
std::string_view without_place(std::string_view error) {
  const size_t at = error.find("] ");
  return at == error.npos ? error : error.substr(at + 2);
}

std::string text_in_field(const base::Json& object, const std::string& field) {
  const auto found = object.find(field);
  if (!found) object.fail("there is no field {}; its fields are {}", base::in_quotes(field), fields_of(object));
  return std::string(found->text());
}

}  // namespace

std::optional<std::string> Lines::text_of(std::string_view line, const std::string& path, uint64_t number) {
  if (auto found = text_of_flat_line(line, field_)) return found;
  try {
    JsonRepairs made;
    std::string text =
        text_in_field(parse_json_line("prepare", path, line, static_cast<int64_t>(number), made), field_);
    if (made.numbers + made.surrogates > 0) {
      const std::lock_guard lock(mutex_);
      repairs_.numbers += made.numbers;
      repairs_.surrogates += made.surrogates;
    }
    return text;
  } catch (const base::UserError& error) {
    const std::lock_guard lock(mutex_);
    if (bad_ == most_bad_) {
      if (most_bad_ == 0) throw;
      throw base::UserError("prepare", "{}; --skip-bad-lines {} skipped as many before it", without_place(error.what()),
                            most_bad_);
    }
    ++bad_;
    // Keep the first one, regardless of which thread finds it first.
    if (a_bad_line_.empty() || std::pair(path, number) < first_bad_) {
      first_bad_ = {path, number};
      a_bad_line_ = without_place(error.what());
    }
    return std::nullopt;
  }
}

void for_each_part(const Corpus& corpus, const Chunk& chunk, Lines& lines,
                   const std::function<void(const TextPart&)>& f) {
  for (const Piece& piece : chunk.pieces) {
    const std::string_view text = std::string_view(chunk.text).substr(piece.begin, piece.end - piece.begin);
    const CorpusFile& file = corpus.files[piece.file];
    if (!file.jsonl) {
      const std::string path = file.path.string();
      f({text, piece.document, piece.ends_document, piece.clipped,
         piece.offset == 0 ? path : fmt::format("{} from byte {} on", path, piece.offset)});
      continue;
    }
    uint64_t number = 0;
    for (size_t at = 0; at < text.size(); ++number) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at);
      at = end + 1;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const std::string where = fmt::format("{}:{}", file.path.string(), piece.line + number);
      const auto content = lines.text_of(line, file.path.string(), piece.line + number);
      if (content) f({*content, piece.document + number, true, false, where});
    }
  }
}

}  // namespace kintsugi::data
