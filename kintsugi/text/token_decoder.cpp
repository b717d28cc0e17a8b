#include "kintsugi/text/token_decoder.h"

#include "kintsugi/text/decoders/rows.h"
#include "kintsugi/text/json_part.h"

namespace kintsugi::text {
namespace {

constexpr PartRow<std::unique_ptr<TokenDecoder>> kRows[] = {
    {"Sequence", read_decoder_sequence},
    {"ByteLevel", read_byte_level_decoder},
    {"Metaspace", read_metaspace_decoder},
    {"Replace", read_replace_decoder},
    {"ByteFallback", read_byte_fallback_decoder},
    {"Fuse", read_fuse_decoder},
    {"Strip", read_strip_decoder},
    {"WordPiece", read_word_piece_decoder},
    {"BPEDecoder", read_bpe_decoder},
};

}  // namespace

std::unique_ptr<TokenDecoder> read_token_decoder(const base::Json& part) {
  return read_by_type<std::unique_ptr<TokenDecoder>>(part, kRows, "decoder");
}

}  // namespace kintsugi::text
