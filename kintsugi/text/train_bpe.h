// Learning the merges of a byte-level BPE (Sennrich et al. 2016, algorithm 1).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kintsugi/text/tokenizer.h"
#include "kintsugi/text/word_counter.h"

namespace kintsugi::text {

// Ids 0 to 255 are the bytes in GPT-2's order, then come the merges in the order in which they were learned, and
// <|endoftext|> last. The pair that occurs most often is merged next; of several, the one that is least by its bytes
// (left, then right). A pair must occur twice. `progress`, if any, is called after each merge with the size so far and
// the requested size. UserError if vocab_size is below 257, or above what the words have pairs for.
std::unique_ptr<Tokenizer> train_bpe(const WordCounter& words, int32_t vocab_size,
                                     const std::function<void(int32_t done, int32_t total)>& progress = {});

}  // namespace kintsugi::text
