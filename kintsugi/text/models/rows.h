// One function per model, each in a file of its name; the table is in token_model.cpp.
#pragma once

#include "kintsugi/text/token_model.h"

namespace kintsugi::text {

std::unique_ptr<TokenModel> read_character_bpe(const base::Json& model);
std::unique_ptr<TokenModel> read_unigram(const base::Json& model);
std::unique_ptr<TokenModel> read_word_piece(const base::Json& model);
std::unique_ptr<TokenModel> read_word_level(const base::Json& model);

}  // namespace kintsugi::text
