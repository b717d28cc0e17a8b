#include "kintsugi/tasks/encode.h"

#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::tasks {
namespace {

std::optional<int32_t> first_special(const text::Tokenizer& tokenizer) {
  const std::vector<int32_t> before = tokenizer.special_tokens().before;
  return before.empty() ? std::nullopt : std::optional(before.front());
}

class Encoder {
 public:
  Encoder(const text::Tokenizer& tokenizer, const EncodeOptions& options)
      : tokenizer_(tokenizer), options_(options), first_(first_special(tokenizer)) {
    if (options.begin && !first_)
      throw base::UserError("tasks", "the tokenizer has no special token that begins a text; leave --begin out");
  }

  EncodedRequest encode(const Request& request) const {
    const std::string_view context = without_trailing_space(request.context);
    EncodedRequest encoded;
    size_t before = 0;  // tokens of the context
    if (request.context.empty()) {
      const std::optional<int32_t> start = first_ ? first_ : tokenizer_.end_of_text();
      encoded.ids = tokenizer_.encode(request.continuation);
      before = 1;
      if (start && (encoded.ids.empty() || encoded.ids[0] != *start)) encoded.ids.insert(encoded.ids.begin(), *start);
      if (!start)
        throw base::UserError("tasks",
                              "the context is empty, and the tokenizer has no token that begins or ends a text");
    } else {
      if (options_.begin) encoded.ids.push_back(*first_);
      encoded.ids.reserve(encoded.ids.size() + request.context.size() / 2);
      before = encoded.ids.size() + tokenizer_.encode(context).size();
      tokenizer_.encode(request.context + request.continuation, encoded.ids);
    }
    if (encoded.ids.size() <= before || before == 0)
      throw base::UserError("tasks", "the tokenizer makes no tokens of the {} {}",
                            before == 0 ? "context" : "continuation",
                            base::in_quotes(before == 0 ? request.context : request.continuation, 80));
    encoded.scored = static_cast<int64_t>(encoded.ids.size() - before);
    if (encoded.scored > options_.context)
      throw base::UserError("tasks", "the continuation has {} tokens, and the model reads {}", encoded.scored,
                            options_.context);
    require_vocabulary(encoded.ids);
    const auto most = static_cast<size_t>(options_.context) + 1;
    encoded.cut = encoded.ids.size() > most;
    if (encoded.cut) encoded.ids.erase(encoded.ids.begin(), encoded.ids.end() - static_cast<std::ptrdiff_t>(most));
    return encoded;
  }

  // A text begins after the token of an empty context.
  void encode_text(const std::string& text, std::vector<EncodedRequest>& windows) const {
    const std::optional<int32_t> start = first_ ? first_ : tokenizer_.end_of_text();
    if (!start) throw base::UserError("tasks", "the tokenizer has no token that begins or ends a text");
    std::vector<int32_t> ids = {*start};
    tokenizer_.encode(text, ids);
    if (ids.size() < 2) throw base::UserError("tasks", "the tokenizer makes no tokens of the text");
    require_vocabulary(ids);
    const auto most = static_cast<size_t>(options_.context);
    for (size_t done = 1; done < ids.size();) {
      const size_t end = std::min(done + most, ids.size()), begin = end > most + 1 ? end - most - 1 : 0;
      windows.push_back(
          {.ids = {ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end)},
           .scored = static_cast<int64_t>(end - done),
           .goes_on = done > 1});
      done = end;
    }
  }

 private:
  void require_vocabulary(std::span<const int32_t> ids) const {
    for (const int32_t id : ids)
      if (id >= options_.vocab)
        throw base::UserError("tasks", "the tokenizer makes the id {}, but the model's table has {} rows", id,
                              options_.vocab);
  }

  const text::Tokenizer& tokenizer_;
  const EncodeOptions& options_;
  std::optional<int32_t> first_;
};

}  // namespace

std::vector<EncodedRequest> encode_requests(Kind kind, const text::Tokenizer& tokenizer,
                                            std::span<const Document> documents, const EncodeOptions& options) {
  const Encoder encoder(tokenizer, options);
  std::vector<EncodedRequest> encoded;
  for (size_t d = 0; d < documents.size(); ++d)
    for (size_t r = 0; r < documents[d].requests.size(); ++r) {
      try {
        const Request& request = documents[d].requests[r];
        if (kind == Kind::text) {
          encoder.encode_text(request.continuation, encoded);
        } else {
          encoded.push_back(encoder.encode(request));
        }
      } catch (const base::UserError& e) {
        throw base::UserError("tasks", "document {}, request {}: {}", d + 1, r + 1,
                              std::string_view(e.what()).substr(std::string_view(e.what()).find("] ") + 2));
      }
    }
  return encoded;
}

std::vector<evaluate::Score> scores_of_requests(std::span<const EncodedRequest> encoded,
                                                std::span<const evaluate::Score> scores) {
  base::require(encoded.size() == scores.size(), "tasks", "{} scores for {} texts", scores.size(), encoded.size());
  std::vector<evaluate::Score> all;
  for (size_t i = 0; i < encoded.size(); ++i) {
    if (!encoded[i].goes_on) {
      all.push_back(scores[i]);
      continue;
    }
    all.back().log_likelihood += scores[i].log_likelihood;
    all.back().count += scores[i].count;
    all.back().greedy = all.back().greedy && scores[i].greedy;
  }
  return all;
}

}  // namespace kintsugi::tasks
