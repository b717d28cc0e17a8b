// One function per decoder, each in a file of its name; the table is in token_decoder.cpp.
#pragma once

#include "kintsugi/text/token_decoder.h"

namespace kintsugi::text {

std::unique_ptr<TokenDecoder> read_decoder_sequence(const base::Json& part);
std::unique_ptr<TokenDecoder> read_replace_decoder(const base::Json& part);
std::unique_ptr<TokenDecoder> read_byte_fallback_decoder(const base::Json& part);
std::unique_ptr<TokenDecoder> read_fuse_decoder(const base::Json& part);
std::unique_ptr<TokenDecoder> read_strip_decoder(const base::Json& part);
std::unique_ptr<TokenDecoder> read_metaspace_decoder(const base::Json& part);
std::unique_ptr<TokenDecoder> read_byte_level_decoder(const base::Json& part);
std::unique_ptr<TokenDecoder> read_word_piece_decoder(const base::Json& part);
std::unique_ptr<TokenDecoder> read_bpe_decoder(const base::Json& part);

}  // namespace kintsugi::text
