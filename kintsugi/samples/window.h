// Cuts a sample from a token file.
#pragma once

#include <cstdint>

#include "kintsugi/data/token_file.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::samples {

struct WindowOptions {
  bool wrap = false;               // the first token follows the last; otherwise positions past the end are padding
  bool reset_at_document = false;  // separate documents: fill starts; a document's last token predicts nothing
  int64_t vocab_size = 0;          // bound on ids; 0: not checked
  int32_t begin = -1;              // id prepended to each sample unless its first token is equal; -1: none
};

// Throws UserError unless the ids, those of the file from token `first` on, are in the vocabulary; size 0: not checked.
void check_ids(const data::TokenFile& file, uint64_t first, std::span<const int32_t> ids, int64_t vocab_size);

// The parts of windows of `sequence` tokens; starts only if documents are separate.
Parts parts_of_windows(int64_t sequence, bool reset_at_document);

// Fills one row (tokens and labels of its length, starts optional) with the tokens from `start` on, after `begin`,
// which predicts the first of them. The file's last token predicts nothing. Padding is token 0 with the label kIgnored.
void fill_window(const data::TokenFile& file, uint64_t start, const WindowOptions& options, const BatchView& row);

}  // namespace kintsugi::samples
