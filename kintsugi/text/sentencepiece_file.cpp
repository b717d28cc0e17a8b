// ModelProto: pieces = 1 { piece = 1, score = 2, type = 3 }, trainer_spec = 2 { model_type = 3,
// treat_whitespace_as_suffix = 24, byte_fallback = 35, unk_surface = 44, eos_piece = 47 }, normalizer_spec = 3
// { precompiled_charsmap = 2, add_dummy_prefix = 3, remove_extra_whitespaces = 4, escape_whitespaces = 5 }
#include "kintsugi/text/sentencepiece_file.h"

#include <cmath>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/text/byte_tokens.h"
#include "kintsugi/text/protobuf.h"

namespace kintsugi::text {
namespace {

using base::UserError;

constexpr size_t kLongestPiece = 4096;  // bytes; published models have 16 characters or slightly more

SentencePieceFile::Piece read_piece(std::string_view message, size_t id, std::string_view where) {
  SentencePieceFile::Piece piece;
  ProtobufReader reader(message, where);
  for (ProtobufField field; reader.next(field);) {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) piece.score = field.as_float();
    if (field.number != 3) continue;
    if (field.value < 1 || field.value > 6)
      throw UserError("tokenizer", "{}: piece {} has type {}, and should have one from 1 to 6", where, id, field.value);
    piece.type = static_cast<PieceType>(field.value);
  }
  if (piece.text.empty() || !base::is_utf8(piece.text))
    throw UserError("tokenizer", "{}: piece {} is {}, and should be a text in UTF-8", where, id,
                    base::in_quotes(piece.text));
  if (piece.text.size() > kLongestPiece) {
    throw UserError("tokenizer", "{}: piece {} has {} bytes, and should have at most {}", where, id, piece.text.size(),
                    kLongestPiece);
  }
  if (!std::isfinite(piece.score)) throw UserError("tokenizer", "{}: the score of piece {} is not finite", where, id);
  return piece;
}

void read_trainer(std::string_view message, std::string_view where, SentencePieceFile& file) {
  ProtobufReader reader(message, where);
  for (ProtobufField field; reader.next(field);) {
    if (field.number == 24) file.suffix_whitespace = field.value != 0;
    if (field.number == 35) file.byte_fallback = field.value != 0;
    if (field.number == 44) file.unknown_text = field.bytes;
    if (field.number == 46) file.begin_piece = field.bytes;
    if (field.number == 47) file.end_piece = field.bytes;
    if (field.number != 3) continue;
    if (field.value < 1 || field.value > 4)
      throw UserError("tokenizer", "{}: the model is of type {}; known are 1 (unigram), 2 (BPE), 3 (word), 4 (char)",
                      where, field.value);
    file.model = static_cast<SentencePieceModel>(field.value);
  }
}

void read_normalizer_spec(std::string_view message, std::string_view where, SentencePieceFile& file) {
  ProtobufReader reader(message, where);
  for (ProtobufField field; reader.next(field);) {
    if (field.number == 2) file.charsmap = field.bytes;
    if (field.number == 3) file.add_dummy_prefix = field.value != 0;
    if (field.number == 4) file.remove_extra_whitespaces = field.value != 0;
    if (field.number == 5) file.escape_whitespaces = field.value != 0;
  }
}

void check(const SentencePieceFile& file, std::string_view where) {
  if (file.pieces.empty()) throw UserError("tokenizer", "{}: not a SentencePiece model: it has no pieces", where);
  std::set<std::string_view> seen;
  std::set<uint8_t> bytes;
  size_t num_unknown = 0;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    const auto& piece = file.pieces[id];
    if (!seen.insert(piece.text).second)
      throw UserError("tokenizer", "{}: piece {}, {}, is there twice", where, id, base::in_quotes(piece.text));
    num_unknown += piece.type == PieceType::kUnknown;
    if (piece.type != PieceType::kByte) continue;
    const auto byte = byte_of_token(piece.text);
    if (!byte) {
      throw UserError("tokenizer", "{}: piece {}, {}, is a byte piece and must be written as \"<0x0A>\"", where, id,
                      base::in_quotes(piece.text));
    }
    bytes.insert(*byte);
  }
  if (num_unknown != 1)
    throw UserError("tokenizer", "{}: there are {} unknown pieces, and there should be one", where, num_unknown);
  if (file.byte_fallback && bytes.size() != 256)
    throw UserError("tokenizer", "{}: {} of 256 bytes have a piece; with byte_fallback all must", where, bytes.size());
}

}  // namespace

SentencePieceFile parse_sentencepiece(std::string_view content, std::string_view where) {
  SentencePieceFile file;
  ProtobufReader reader(content, where);
  for (ProtobufField field; reader.next(field);) {
    if (field.number == 1) file.pieces.push_back(read_piece(field.bytes, file.pieces.size(), where));
    if (field.number == 2) read_trainer(field.bytes, where, file);
    if (field.number == 3) read_normalizer_spec(field.bytes, where, file);
  }
  check(file, where);
  return file;
}

}  // namespace kintsugi::text
