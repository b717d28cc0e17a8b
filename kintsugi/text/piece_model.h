// The models of a SentencePiece file: normalized text to ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kintsugi/text/sentencepiece_file.h"

namespace kintsugi::text {

// Appends the pieces of `text`, valid UTF-8 without pieces that the user defined; an id of -1 is a part of the text
// that no piece covers. Const use is safe from several threads at once.
struct PieceSegment {
  std::string_view text;
  int32_t id;
};
class PieceModel {
 public:
  virtual ~PieceModel() = default;
  virtual void segment(std::string_view text, std::vector<PieceSegment>& segments) const = 0;
};

// By the model that the file names, which must outlive it. UserError for a BPE with unused pieces.
std::unique_ptr<PieceModel> make_piece_model(const SentencePieceFile& file, std::string_view where);

}  // namespace kintsugi::text
