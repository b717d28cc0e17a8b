// One sample cut from a token file.
#pragma once

#include <cstdint>

#include "kintsugi/data/batch.h"
#include "kintsugi/data/token_file.h"

namespace kintsugi::data {

struct WindowOptions {
  bool wrap = false;               // the first token follows the last one; else positions past the end are padding
  bool reset_at_document = false;  // documents are separate: starts are given, a document's last token predicts nothing
  int64_t vocab_size = 0;          // ids are checked against it; 0: not checked
};

// Fills one row (all three spans have its length, document_starts may be empty) with the tokens from `start` on. The
// last token of the file predicts nothing. Padding is token 0 with the label kIgnored.
void fill_window(const TokenFile& file, uint64_t start, const WindowOptions& options, const BatchView& row);

}  // namespace kintsugi::data
