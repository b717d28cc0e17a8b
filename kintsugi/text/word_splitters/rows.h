// One function per pre-tokenizer, each in a file of its name; the table is in word_splitter.cpp.
#pragma once

#include "kintsugi/text/word_splitter.h"

namespace kintsugi::text {

std::unique_ptr<WordSplitter> read_metaspace(const base::Json& part);
std::unique_ptr<WordSplitter> read_splitter_sequence(const base::Json& part);
std::unique_ptr<WordSplitter> read_byte_level_splitter(const base::Json& part);
std::unique_ptr<WordSplitter> read_split(const base::Json& part);
std::unique_ptr<WordSplitter> read_digits(const base::Json& part);
std::unique_ptr<WordSplitter> read_punctuation(const base::Json& part);
std::unique_ptr<WordSplitter> read_whitespace(const base::Json& part);
std::unique_ptr<WordSplitter> read_whitespace_split(const base::Json& part);
std::unique_ptr<WordSplitter> read_unicode_scripts(const base::Json& part);
std::unique_ptr<WordSplitter> read_fixed_length(const base::Json& part);
std::unique_ptr<WordSplitter> read_char_delimiter(const base::Json& part);
std::unique_ptr<WordSplitter> read_bert_pre_tokenizer(const base::Json& part);

}  // namespace kintsugi::text
