// Requests as token ids, as lm-evaluation-harness encodes them.
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
  int64_t scored = 0;    // the last so many are the continuation
  bool cut = false;      // tokens of the context were left out at its beginning
  bool goes_on = false;  // a further window of the request before it
};

struct EncodeOptions {
  int64_t context = 0;  // tokens that the model reads at most; the last token of a request is only predicted
  int64_t vocab = 0;    // rows of the model's table
  bool begin = false;   // the tokenizer's first special token stands before each request
};

// White space at the context's end is moved to the continuation. Both are encoded together; the continuation is what
// follows the tokens of the context alone. An empty context is the tokenizer's first special token, or the one that
// ends a text. What is longer than the model's context loses tokens at its beginning. One for each request of each
// document, in order. UserError that names the document for a request that cannot be scored. A whole text is cut into
// windows of the model's context, in each of which all tokens are predicted but for those of the window before it.
std::vector<EncodedRequest> encode_requests(Kind kind, const text::Tokenizer& tokenizer,
                                            std::span<const Document> documents, const EncodeOptions& options);

// From scores of what was encoded to one for each request: windows are added.
std::vector<evaluate::Score> scores_of_requests(std::span<const EncodedRequest> encoded,
                                                std::span<const evaluate::Score> scores);

}  // namespace kintsugi::tasks
