// Encodes requests as token ids in the same way as lm-evaluation-harness.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kintsugi/evaluate/scorer.h"
#include "kintsugi/tasks/documents.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::tasks {

struct EncodedRequest {
  std::vector<int32_t> ids;
  int64_t scored = 0;    // number of tokens at the end that are the continuation
  bool cut = false;      // truncated the context at its beginning
  bool goes_on = false;  // another window of the previous request
};

struct EncodeOptions {
  int64_t context = 0;  // maximum number of tokens that the model reads; the last token of a request is only a label
  int64_t vocab = 0;    // rows of the model's table
  bool begin = false;   // prepend the tokenizer's first special token to each request
};

// Moves white space at the context's end to the continuation. Encodes both together; the continuation is what follows
// the tokens of the context alone. An empty context becomes the tokenizer's first special token, or its end-of-text
// token. Truncates at the beginning what exceeds the model's context. Returns one for each request of each document, in
// order. Throws UserError, naming the document, for a request that cannot be scored. Cuts a whole text into windows of
// the model's context, each of which predicts all tokens except those of the previous window. A task that scores by
// common tokens compares the requests of a document; at least the last token of each is scored.
std::vector<EncodedRequest> encode_requests(const Task& task, const text::Tokenizer& tokenizer,
                                            std::span<const Document> documents, const EncodeOptions& options);

// Combines the scores of encoded requests to one per request: sums windows.
std::vector<evaluate::Score> scores_of_requests(std::span<const EncodedRequest> encoded,
                                                std::span<const evaluate::Score> scores);

}  // namespace kintsugi::tasks
