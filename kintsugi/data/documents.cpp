#include "kintsugi/data/documents.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::data {
namespace {

std::string fields_of(const nlohmann::json& object) {
  std::string names;
  int shown = 0;
  for (const auto& [name, value] : object.items()) {
    if (++shown > 8) return names + ", ...";
    names += (shown > 1 ? ", \"" : "\"") + base::one_line(name, 40) + "\"";
  }
  return names.empty() ? "none" : names;
}

// What is wrong, without the library's prefix and position (the line is named already).
std::string reason_of(const nlohmann::json::parse_error& error) {
  const std::string_view text = error.what();
  const size_t at = text.find("syntax error");
  return base::one_line(at == std::string_view::npos ? text : text.substr(at), 160);
}

std::string parse_line(std::string_view line, const std::string& field, const std::string& where) {
  nlohmann::json object;
  try {
    object = nlohmann::json::parse(line);
  } catch (const nlohmann::json::parse_error& error) {
    throw base::UserError("prepare", "{}: the line is no JSON: {}", where, reason_of(error));
  }
  if (!object.is_object()) {
    throw base::UserError("prepare", "{}: the line is a JSON {}, not an object with fields", where, object.type_name());
  }
  const auto found = object.find(field);
  if (found == object.end()) {
    throw base::UserError("prepare", "{}: there is no field \"{}\"; its fields are {}", where, field,
                          fields_of(object));
  }
  if (!found->is_string()) {
    throw base::UserError("prepare", "{}: the field \"{}\" is a {}, not a string", where, field, found->type_name());
  }
  return std::move(found->get_ref<std::string&>());
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
      const std::string content = parse_line(line, field, where);
      f({content, piece.document + number, true, false, where});
    }
  }
}

}  // namespace kintsugi::data
