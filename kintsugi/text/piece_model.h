// The models of a SentencePiece file: normalized text to ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kintsugi/text/sentencepiece_file.h"

namespace kintsugi::text {

// Appends the pieces of `text`, valid UTF-8 without user-defined pieces; an id of -1 is a part not covered by any
// piece. Const use is thread-safe.
struct PieceSegment {
  std::string_view text;
  int32_t id;
};
class PieceModel {
 public:
  virtual ~PieceModel() = default;
  virtual void segment(std::string_view text, std::vector<PieceSegment>& segments) const = 0;
};

// Creates the model named by the file, which must outlive it. Throws UserError for a BPE with unused pieces.
std::unique_ptr<PieceModel> make_piece_model(const SentencePieceFile& file, std::string_view where);

}  // namespace kintsugi::text
