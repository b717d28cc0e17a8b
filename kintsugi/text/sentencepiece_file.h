// SentencePiece's .model file (sentencepiece_model.proto).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::text {

// The numbers are those of the file.
enum class PieceType { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
enum class SentencePieceModel { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 };

struct SentencePieceFile {
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };
  std::vector<Piece> pieces;  // [id]
  SentencePieceModel model = SentencePieceModel::kUnigram;
  bool byte_fallback = false;
  bool suffix_whitespace = false;         // white space ends words instead of beginning them
  std::string unknown_text = " \u2047 ";  // what an unknown token decodes to
  std::string begin_piece = "<s>";
  std::string end_piece = "</s>";
  std::string charsmap;  // charsmap.h; empty: none
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};

// Throws UserError if the content is malformed: an empty, duplicate or invalid UTF-8 piece, or one longer than 4 KiB;
// not exactly one unknown piece; or missing byte pieces although byte_fallback is set.
SentencePieceFile parse_sentencepiece(std::string_view content, std::string_view where);

}  // namespace kintsugi::text
