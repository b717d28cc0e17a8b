#include "kintsugi/serve/api_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/serve/api_error.h"

namespace kintsugi::serve {
namespace {

using base::Json;

// The message of a JSON error without its place in our code.
std::string message_of(const base::UserError& error) {
  const std::string_view text = error.what();
  const size_t end = text.find("] ");
  return std::string(end == text.npos ? text : text.substr(end + 2));
}

// Calls f(value) for a member that is present and not null; errors name it.
template <typename F>
void with(const Json& object, std::string_view name, const F& f) {
  const std::optional<Json> value = object.find(name);
  if (!value || value->is_null()) return;
  try {
    f(*value);
  } catch (const base::UserError& e) {
    throw ApiError(400, name, "{}", message_of(e));
  }
}

// Throws UserError for a number outside the range.
double number_between(const Json& value, double least, double most) {
  const double number = value.number();
  if (number < least || number > most) value.refuse(fmt::format("a number from {} to {}", least, most));
  return number;
}

// Members that clients send and that have no effect at these values; rejects others.
void require_neutral(const Json& body) {
  const auto refuse = [&](std::string_view name, std::string_view what) {
    throw ApiError(400, name, "\"{}\" is not supported; {}", name, what);
  };
  with(body, "suffix", [&](const Json& v) {
    if (!v.text().empty()) refuse("suffix", "leave it out");
  });
}

void require_known(const Json& body, std::span<const std::string_view> own) {
  static constexpr std::array<std::string_view, 19> kShared = {"model",
                                                               "max_tokens",
                                                               "temperature",
                                                               "top_k",
                                                               "top_p",
                                                               "n",
                                                               "stream",
                                                               "stream_options",
                                                               "stop",
                                                               "seed",
                                                               "presence_penalty",
                                                               "frequency_penalty",
                                                               "logit_bias",
                                                               "user",
                                                               "metadata",
                                                               "store",
                                                               "logprobs",
                                                               "min_p",
                                                               "repetition_penalty"};
  for (const Json& member : body.members())
    if (std::ranges::find(kShared, member.key()) == kShared.end() && std::ranges::find(own, member.key()) == own.end())
      throw ApiError(400, member.key(), "unknown parameter \"{}\"", member.key());
}

std::string parse_model(const Json& body) {
  std::string model;
  with(body, "model", [&](const Json& v) { model = v.text(); });
  if (model.empty())
    throw ApiError(400, "model", "the request names no model; /v1/models lists the one that is served");
  return model;
}

Sampling parse_sampling(const Json& body, const ApiLimits& limits) {
  Sampling s;
  require_neutral(body);
  constexpr int64_t kMost = 1'000'000'000;
  with(body, "max_tokens", [&](const Json& v) { s.max_tokens = v.whole(0, kMost); });
  with(body, "temperature", [&](const Json& v) { s.temperature = number_between(v, 0, 2); });
  with(body, "top_k", [&](const Json& v) { s.top_k = v.whole(0, kMost); });
  with(body, "top_p", [&](const Json& v) {
    s.top_p = number_between(v, 0, 1);
    if (s.top_p == 0) v.refuse("a number above 0, and at most 1");
  });
  with(body, "min_p", [&](const Json& v) { s.min_p = number_between(v, 0, 1); });
  with(body, "repetition_penalty", [&](const Json& v) {
    s.repetition_penalty = number_between(v, 0, 100);
    if (s.repetition_penalty == 0) v.refuse("a number above 0, and at most 100");
  });
  with(body, "presence_penalty", [&](const Json& v) { s.presence_penalty = number_between(v, -2, 2); });
  with(body, "frequency_penalty", [&](const Json& v) { s.frequency_penalty = number_between(v, -2, 2); });
  with(body, "logit_bias", [&](const Json& v) {
    for (const Json& member : v.members()) {
      const std::string key(member.key());
      int32_t id = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || end != key.data() + key.size() || id < 0)
        v.fail("\"{}\" is not a token id", key.substr(0, 40));
      s.logit_bias.emplace_back(id, number_between(member, -100, 100));
    }
    if (s.logit_bias.size() > limits.biases) v.refuse(fmt::format("at most {} ids", limits.biases));
  });
  with(body, "seed", [&](const Json& v) { s.seed = static_cast<uint64_t>(v.whole(0)); });
  with(body, "n", [&](const Json& v) { s.choices = v.whole(1, limits.choices); });
  with(body, "stream", [&](const Json& v) { s.streams = v.boolean(); });
  with(body, "stream_options", [&](const Json& v) {
    for (const Json& member : v.members())
      if (member.key() != "include_usage" && member.key() != "include_obfuscation")
        v.fail("unknown member \"{}\"", member.key());
    with(v, "include_usage", [&](const Json& flag) { s.includes_usage = flag.boolean(); });
    if (!s.streams) v.fail("\"stream_options\" needs \"stream\": true");
  });
  with(body, "stop", [&](const Json& v) {
    if (v.is_text()) {
      s.stops.emplace_back(v.text());
    } else {
      for (const Json& one : v.list()) s.stops.emplace_back(one.text());
    }
    if (s.stops.size() > limits.stops) v.refuse(fmt::format("at most {} texts", limits.stops));
    std::erase(s.stops, "");
  });
  return s;
}

std::variant<std::string, Ids> parse_prompt(const Json& value) {
  if (value.is_text()) return std::string(value.text());
  if (!value.is_list()) value.refuse("a text, or a list of texts, of token ids, or of lists of token ids");
  return parse_ids(value, "prompt");
}

}  // namespace

Json parse_object(std::string_view body) {
  try {
    Json json = Json::parse("serve", "body", body);
    if (!json.is_object()) json.refuse("an object");
    return json;
  } catch (const base::UserError& e) {
    throw ApiError(400, "", "the body is not the JSON object that is expected: {}", message_of(e));
  }
}

Ids parse_ids(const Json& list, std::string_view param) {
  try {
    Ids ids;
    for (const Json& id : list.list()) ids.push_back(static_cast<int32_t>(id.whole(0, INT32_MAX)));
    return ids;
  } catch (const base::UserError& e) {
    throw ApiError(400, param, "{}", message_of(e));
  }
}

CompletionRequest parse_completion(std::string_view text, const ApiLimits& limits) {
  const Json body = parse_object(text);
  constexpr std::array<std::string_view, 4> kOwn = {"prompt", "echo", "best_of", "suffix"};
  require_known(body, kOwn);
  CompletionRequest request = {
      .model = parse_model(body), .prompts = {}, .echo = false, .sampling = parse_sampling(body, limits)};
  Sampling& s = request.sampling;
  with(body, "echo", [&](const Json& v) { request.echo = v.boolean(); });
  with(body, "best_of", [&](const Json& v) {
    if (v.whole(1) != s.choices) v.refuse("as many as \"n\"; more are not supported");
  });
  with(body, "logprobs", [&](const Json& v) { s.top = v.whole(0, limits.top); });
  with(body, "prompt", [&](const Json& v) {
    // A text, a list of texts, a list of ids, or a list of lists of ids.
    if (!v.is_list() || (!v.list().empty() && v.list()[0].is_number())) {
      request.prompts.push_back(parse_prompt(v));
    } else {
      for (const Json& one : v.list()) request.prompts.push_back(parse_prompt(one));
    }
  });
  if (request.prompts.empty()) throw ApiError(400, "prompt", "the request has no prompt");
  if (std::ssize(request.prompts) * s.choices > limits.choices)
    throw ApiError(400, "n", "{} prompts with {} choices each are more than the {} that a request may ask for",
                   request.prompts.size(), s.choices, limits.choices);
  if (!s.max_tokens) s.max_tokens = 16;
  return request;
}

ChatRequest parse_chat(std::string_view text, const ApiLimits& limits) {
  const Json body = parse_object(text);
  constexpr std::array<std::string_view, 3> kOwn = {"messages", "max_completion_tokens", "top_logprobs"};
  require_known(body, kOwn);
  ChatRequest request = {.model = parse_model(body), .messages = {}, .sampling = parse_sampling(body, limits)};
  Sampling& s = request.sampling;
  with(body, "max_completion_tokens", [&](const Json& v) { s.max_tokens = v.whole(0); });
  with(body, "logprobs", [&](const Json& v) { s.top = v.boolean() ? 0 : -1; });
  with(body, "top_logprobs", [&](const Json& v) {
    const int64_t top = v.whole(0, limits.top);
    if (s.top < 0 && top > 0) v.fail("\"top_logprobs\" needs \"logprobs\": true");
    if (s.top >= 0) s.top = top;
  });
  with(body, "messages", [&](const Json& v) {
    for (const Json& message : v.list()) {
      for (const Json& member : message.members())
        if (member.key() != "role" && member.key() != "content" && member.key() != "name")
          message.fail("unknown member \"{}\" of a message", member.key());
      ChatMessage& m = request.messages.emplace_back();
      m.role = message.at("role").text();
      const Json content = message.at("content");
      if (content.is_list()) {
        for (const Json& part : content.list()) {
          if (part.at("type").text() != "text") part.at("type").refuse("\"text\"; the model reads nothing else");
          m.content += part.at("text").text();
        }
      } else {
        m.content = content.text();
      }
    }
  });
  if (request.messages.empty()) throw ApiError(400, "messages", "the request has no messages");
  return request;
}

}  // namespace kintsugi::serve
