#include "kintsugi/data/documents.h"

#include <fmt/format.h>

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

std::string parse_line(std::string_view line, const std::string& field, const std::string& path, uint64_t number) {
  const auto object = base::Json::parse("prepare", path, line, static_cast<int64_t>(number));
  const auto found = object.find(field);
  if (!found) object.fail("there is no field {}; its fields are {}", base::in_quotes(field), fields_of(object));
  return std::string(found->text());
}

}  // namespace

void for_each_part(const Corpus& corpus, const Chunk& chunk, const std::string& field,
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
      const std::string content = parse_line(line, field, file.path.string(), piece.line + number);
      f({content, piece.document + number, true, false, where});
    }
  }
}

}  // namespace kintsugi::data
