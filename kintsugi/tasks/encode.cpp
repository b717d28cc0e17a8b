#include "kintsugi/tasks/encode.h"

#include <algorithm>
#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::tasks {
namespace {

std::optional<int32_t> first_special(const text::Tokenizer& tokenizer) {
  const std::vector<int32_t> before = tokenizer.special_tokens().before;
  return before.empty() ? std::nullopt : std::optional(before.front());
}

// The number of tokens that all begin with.
size_t common_prefix(std::span<const EncodedRequest> requests) {
  size_t shared = requests[0].ids.size();
  for (const EncodedRequest& r : requests)
    shared = std::min(shared, static_cast<size_t>(std::ranges::mismatch(r.ids, requests[0].ids).in1 - r.ids.begin()));
  return shared;
}

// The number of tokens that all end with.
size_t common_suffix(std::span<const EncodedRequest> requests) {
  size_t shared = requests[0].ids.size();
  for (const EncodedRequest& r : requests) {
    const auto end = std::mismatch(r.ids.rbegin(), r.ids.rend(), requests[0].ids.rbegin(), requests[0].ids.rend());
    shared = std::min(shared, static_cast<size_t>(end.first - r.ids.rbegin()));
  }
  return shared;
}

class Encoder {
 public:
  Encoder(const text::Tokenizer& tokenizer, const EncodeOptions& options, const Task& task)
      : tokenizer_(tokenizer), options_(options), scored_(task.scored), first_(first_special(tokenizer)) {
    if (options.begin && !first_)
      throw base::UserError("tasks", "the tokenizer has no special token that begins a text; leave --begin out");
    if (options.begin || task.begin) begin_ = beginning();
  }

  void encode(const Document& document, size_t index, std::vector<EncodedRequest>& all) const {
    std::vector<EncodedRequest> requests;
    for (size_t r = 0; r < document.requests.size(); ++r)
      named(index, r, [&] {
        requests.push_back(scored_ == Scored::continuation ? encode_apart(document.requests[r])
                                                           : encode_whole(document.requests[r]));
      });
    const size_t prefix = scored_ == Scored::after_common_prefix ? common_prefix(requests) : 0,
                 suffix = scored_ == Scored::common_suffix ? common_suffix(requests) : 0;
    for (size_t r = 0; r < requests.size(); ++r)
      named(index, r, [&] {
        EncodedRequest& one = requests[r];
        const size_t size = one.ids.size();
        if (scored_ == Scored::after_common_prefix)
          one.scored = static_cast<int64_t>(std::max<size_t>(1, size - prefix));
        if (scored_ == Scored::common_suffix)
          one.scored = static_cast<int64_t>(std::clamp<size_t>(suffix, 1, size - 1));
        cut(one);
        all.push_back(std::move(one));
      });
  }

  // Calls f(); its errors name the request.
  template <typename F>
  static void named(size_t document, size_t request, const F& f) {
    try {
      f();
    } catch (const base::UserError& e) {
      throw base::UserError("tasks", "document {}, request {}: {}", document + 1, request + 1,
                            std::string_view(e.what()).substr(std::string_view(e.what()).find("] ") + 2));
    }
  }

  // A text begins after the token of an empty context.
  void encode_text(const std::string& text, std::vector<EncodedRequest>& windows) const {
    std::vector<int32_t> ids = {beginning()};
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
  // The token before a text.
  int32_t beginning() const {
    const std::optional<int32_t> start = first_ ? first_ : tokenizer_.end_of_text();
    if (!start) throw base::UserError("tasks", "the tokenizer has no token that begins or ends a text");
    return *start;
  }

  // Scores what follows the tokens of the context.
  EncodedRequest encode_apart(const Request& request) const {
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
      if (begin_) encoded.ids.push_back(*begin_);
      encoded.ids.reserve(encoded.ids.size() + request.context.size() / 2);
      before = encoded.ids.size() + tokenizer_.encode(context).size();
      tokenizer_.encode(request.context + request.continuation, encoded.ids);
    }
    if (encoded.ids.size() <= before || before == 0)
      throw base::UserError("tasks", "the tokenizer makes no tokens of the {} {}",
                            before == 0 ? "context" : "continuation",
                            base::in_quotes(before == 0 ? request.context : request.continuation, 80));
    encoded.scored = static_cast<int64_t>(encoded.ids.size() - before);
    return encoded;
  }

  EncodedRequest encode_whole(const Request& request) const {
    EncodedRequest encoded;
    if (begin_) encoded.ids.push_back(*begin_);
    tokenizer_.encode(request.context + request.continuation, encoded.ids);
    if (encoded.ids.size() < 2) throw base::UserError("tasks", "the tokenizer makes no tokens of the request");
    return encoded;
  }

  // Truncates the beginning of a request that is longer than the model's context.
  void cut(EncodedRequest& encoded) const {
    if (encoded.scored > options_.context)
      throw base::UserError("tasks", "the continuation has {} tokens, and the model reads {}", encoded.scored,
                            options_.context);
    require_vocabulary(encoded.ids);
    const auto most = static_cast<size_t>(options_.context) + 1;
    encoded.cut = encoded.ids.size() > most;
    if (encoded.cut) encoded.ids.erase(encoded.ids.begin(), encoded.ids.end() - static_cast<std::ptrdiff_t>(most));
  }

  void require_vocabulary(std::span<const int32_t> ids) const {
    for (const int32_t id : ids)
      if (id >= options_.vocab)
        throw base::UserError("tasks", "the tokenizer makes the id {}, but the model's table has {} rows", id,
                              options_.vocab);
  }

  const text::Tokenizer& tokenizer_;
  const EncodeOptions& options_;
  const Scored scored_;
  std::optional<int32_t> first_, begin_;  // the tokenizer's, and what precedes each request
};

}  // namespace

std::vector<EncodedRequest> encode_requests(const Task& task, const text::Tokenizer& tokenizer,
                                            std::span<const Document> documents, const EncodeOptions& options) {
  const Encoder encoder(tokenizer, options, task);
  std::vector<EncodedRequest> encoded;
  for (size_t d = 0; d < documents.size(); ++d) {
    if (task.kind != Kind::text) {
      encoder.encode(documents[d], d, encoded);
    } else {
      Encoder::named(d, 0, [&] { encoder.encode_text(documents[d].requests[0].continuation, encoded); });
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
