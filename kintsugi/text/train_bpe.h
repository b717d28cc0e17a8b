// Learns the merges of a byte-level BPE (Sennrich et al. 2016, algorithm 1).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kintsugi/text/tokenizer.h"
#include "kintsugi/text/word_counter.h"

namespace kintsugi::text {

// Ids 0 to 255 are the bytes in GPT-2's order, followed by the merges in the order learned, and <|endoftext|> last.
// Merges the most frequent pair next; in a tie, the smallest bytewise (left, then right). A pair must occur twice.
// Calls `progress`, if any, after each merge with the current and the requested size. Throws UserError if vocab_size is
// below 257, or above what the pairs in the words allow.
std::unique_ptr<Tokenizer> train_bpe(const WordCounter& words, int32_t vocab_size,
                                     const std::function<void(int32_t done, int32_t total)>& progress = {});

}  // namespace kintsugi::text
