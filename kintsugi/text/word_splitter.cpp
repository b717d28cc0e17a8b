#include "kintsugi/text/word_splitter.h"

#include "kintsugi/text/json_part.h"
#include "kintsugi/text/word_splitters/rows.h"

namespace kintsugi::text {
namespace {

constexpr PartRow<std::unique_ptr<WordSplitter>> kRows[] = {
    {"Sequence", read_splitter_sequence},
    {"ByteLevel", read_byte_level_splitter},
    {"Metaspace", read_metaspace},
    {"Split", read_split},
    {"BertPreTokenizer", read_bert_pre_tokenizer},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
    {"Punctuation", read_punctuation},
    {"Digits", read_digits},
    {"UnicodeScripts", read_unicode_scripts},
    {"FixedLength", read_fixed_length},
    {"CharDelimiterSplit", read_char_delimiter},
};

}  // namespace

std::unique_ptr<WordSplitter> read_word_splitter(const base::Json& part) {
  return read_by_type<std::unique_ptr<WordSplitter>>(part, kRows, "pre-tokenizer");
}

}  // namespace kintsugi::text
