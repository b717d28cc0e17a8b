#include "kintsugi/serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/serve/api_error.h"
#include "kintsugi/serve/api_text.h"
#include "kintsugi/serve/page.h"
#include "kintsugi/text/chat_template.h"

namespace kintsugi::serve {
namespace {

using base::JsonWriter;

int64_t now_in_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string without_place(const base::UserError& error) {
  const std::string_view text = error.what();
  const size_t end = text.find("] ");
  return std::string(end == text.npos ? text : text.substr(end + 2));
}

// In constant time.
bool same_key(std::string_view a, std::string_view b) {
  unsigned differs = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    differs |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[b.empty() ? 0 : i % b.size()]);
  return differs == 0;
}

text::Role role_of(const std::string& name) {
  if (name == "system" || name == "developer") return text::Role::system;
  if (name == "user") return text::Role::user;
  if (name == "assistant") return text::Role::assistant;
  throw ApiError(400, "messages", "unknown role \"{}\"; there are system, user and assistant", name);
}

}  // namespace

struct Service::Route {
  std::string_view method, path;
  HttpAnswer (Service::*answer)(const HttpRequest&);
  bool open = false;  // needs no key
};

std::span<const Service::Route> Service::routes() {
  static constexpr std::array<Route, 9> kRoutes = {{
      {"GET", "/", &Service::page, true},
      {"GET", "/health", &Service::health, true},
      {"GET", "/metrics", &Service::metrics},
      {"GET", "/v1/models", &Service::models},
      {"GET", "/tokenizer_info", &Service::tokenizer_info},
      {"POST", "/v1/completions", &Service::complete},
      {"POST", "/v1/chat/completions", &Service::chat},
      {"POST", "/tokenize", &Service::tokenize},
      {"POST", "/detokenize", &Service::detokenize},
  }};
  return kRoutes;
}

Service::Service(ServiceOptions options, const text::Tokenizer& tokenizer, JobQueue& queue)
    : options_(std::move(options)),
      tokenizer_(tokenizer),
      queue_(queue),
      created_(now_in_seconds()),
      begun_(std::chrono::steady_clock::now()) {}

std::string Service::refusal(int status) {
  switch (status) {
    case 413:
      return error_body(status, "the body is larger than the server takes");
    case 414:
      return error_body(status, "the path is longer than the server takes");
    case 500:
      return error_body(status, "the server failed to answer; its operator finds more in its log");
    default:
      return error_body(status, "the request is malformed, or was not complete in time");
  }
}

HttpAnswer Service::answer(const HttpRequest& request) {
  HttpAnswer answer;
  try {
    answer = route(request);
  } catch (const ApiError& e) {
    answer = {.status = e.status, .body = error_body(e.status, e.what(), e.param, e.code)};
    if (e.status == 429) answer.retry_after_seconds = 1;
  } catch (const base::UserError& e) {
    answer = {.status = 400, .body = error_body(400, without_place(e))};
  }
  const bool known = std::ranges::any_of(routes(), [&](const Route& r) { return r.path == request.path; });
  const std::lock_guard lock(mutex_);
  ++answers_[{known ? request.path : "other", answer.status}];
  return answer;
}

HttpAnswer Service::route(const HttpRequest& request) {
  bool known = false;
  for (const Route& r : routes()) {
    if (r.path != request.path) continue;
    known = true;
    if (r.method != request.method) continue;
    if (!r.open) require_key(request);
    return (this->*r.answer)(request);
  }
  if (known) throw ApiError(405, "", "{} does not take {}", request.path, request.method);
  std::string paths;
  for (const Route& r : routes()) paths += (paths.empty() ? "" : ", ") + std::string(r.path);
  throw ApiError(404, "", "there is no {}; there are {}", valid_text(request.path.substr(0, 100)), paths);
}

void Service::require_key(const HttpRequest& request) const {
  if (options_.key.empty()) return;
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view given = request.authorization;
  if (!given.starts_with(kBearer) || !same_key(given.substr(kBearer.size()), options_.key))
    throw ApiError(401, "", "the header \"Authorization: Bearer KEY\" is missing, or its key is not the server's")
        .with_code("invalid_api_key");
}

void Service::require_model(const std::string& name) const {
  if (name == options_.name) return;
  throw ApiError(404, "model", "there is no model \"{}\"; \"{}\" is served", name.substr(0, 100), options_.name)
      .with_code("model_not_found");
}

HttpAnswer Service::health(const HttpRequest&) {
  return {.body = "{\"status\":\"ok\"}"};
}

HttpAnswer Service::page(const HttpRequest&) {
  std::string name;
  for (const char c : valid_text(options_.name)) name += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  std::string html(kPage);
  const auto put = [&](std::string_view mark, const std::string& text) {
    for (size_t at = 0; (at = html.find(mark, at)) != std::string::npos; at += text.size())
      html.replace(at, mark.size(), text);
  };
  put("%CHATS%", options_.chat.empty() ? "false" : "true");
  put("%MODEL%", name);
  return {.type = "text/html; charset=utf-8", .body = html};
}

HttpAnswer Service::models(const HttpRequest&) {
  JsonWriter out;
  out.object([&] {
    out.key("object").value("list");
    out.key("data").list([&] {
      out.object([&] {
        out.key("id").value(options_.name).key("object").value("model").key("created").value(created_);
        out.key("owned_by").value("kintsugi").key("max_model_len").value(options_.context);
      });
    });
  });
  return {.body = out.text()};
}

// Prepends the tokenizer's begin tokens, as a model made elsewhere expects. Without any, a text begins as after the end
// of another, or after a line.
Ids Service::with_beginning(const std::string& text, bool chat, size_t& ids_of_text) const {
  Ids ids;
  chat ? text::encode_chat(tokenizer_, text, true, ids) : tokenizer_.encode(text, ids);
  ids_of_text = ids.size();
  if (options_.begins) {
    const std::vector<int32_t> before = tokenizer_.special_tokens().before;
    ids.insert(ids.begin(), before.begin(), before.end());
  } else if (const auto begin = tokenizer_.begin_of_document()) {
    ids.insert(ids.begin(), *begin);
  }
  const auto end = tokenizer_.end_of_text();
  if (ids.empty()) ids = end ? Ids{*end} : tokenizer_.encode("\n");
  return ids;
}

std::shared_ptr<Choice> Service::make_choice(const Ids& prompt, std::span<const int32_t> before,
                                             const Sampling& sampling, int64_t number, std::vector<std::string> stops,
                                             bool score_prompt) const {
  if (prompt.empty()) throw ApiError(400, "prompt", "the prompt has no tokens");
  for (const int32_t id : prompt)
    if (id >= options_.vocab)
      throw ApiError(400, "prompt", "the id {} is not one of the {} of the vocabulary", id, options_.vocab);
  for (const auto& [id, bias] : sampling.logit_bias)
    if (id >= options_.vocab)
      throw ApiError(400, "logit_bias", "the id {} is not one of the {} of the vocabulary", id, options_.vocab);
  const int64_t length = std::ssize(prompt), room = options_.context - length;
  const int64_t tokens = sampling.max_tokens.value_or(std::max<int64_t>(room, 1));
  if (tokens > room)
    throw ApiError(400, "prompt", "the prompt has {} tokens, and with max_tokens {} they are more than the model's {}",
                   length, tokens, options_.context)
        .with_code("context_length_exceeded");
  return std::make_shared<Choice>(tokenizer_,
                                  Generation{.prompt = prompt,
                                             .max_tokens = tokens,
                                             .sample = {.temperature = sampling.temperature,
                                                        .top_k = sampling.top_k,
                                                        .seed = *sampling.seed + static_cast<uint64_t>(number),
                                                        .vocab = options_.vocab,
                                                        .top_p = sampling.top_p,
                                                        .min_p = sampling.min_p,
                                                        .repetition_penalty = sampling.repetition_penalty,
                                                        .presence_penalty = sampling.presence_penalty,
                                                        .frequency_penalty = sampling.frequency_penalty,
                                                        .logit_bias = sampling.logit_bias},
                                             .top = sampling.top,
                                             .score_prompt = score_prompt},
                                  before, Choice::Ends{.stops = std::move(stops), .tokens = tokenizer_.stops()});
}

HttpAnswer Service::begin(AnswerParts parts, const Sampling& sampling) {
  parts.model = options_.name;
  parts.created = now_in_seconds();
  parts.log_probabilities = sampling.top >= 0;
  parts.streams = sampling.streams;
  parts.includes_usage = sampling.includes_usage;
  parts.deadline = std::chrono::steady_clock::now() + options_.time_limit;
  if (under_way_ >= options_.requests || !queue_.push({parts.choices.begin(), parts.choices.end()}))
    throw ApiError(429, "", "the server has as many requests as it takes; try again later");
  prompt_tokens_ += parts.prompt_tokens;
  ++under_way_;
  const bool streams = parts.streams;
  const auto ended = [this](const AnswerEnd& end) {
    made_tokens_ += end.tokens;
    --under_way_;
    ++(end.way == AnswerEnd::whole ? finished_ : end.way == AnswerEnd::cancelled ? cancelled_ : failed_);
  };
  return {.type = streams ? "text/event-stream" : "application/json",
          .source = make_answer(std::move(parts), tokenizer_, ended)};
}

HttpAnswer Service::complete(const HttpRequest& http) {
  CompletionRequest request = parse_completion(http.body, options_.limits);
  require_model(request.model);
  const uint64_t number = ++requests_;
  if (!request.sampling.seed) request.sampling.seed = number;
  AnswerParts parts;
  parts.id = fmt::format("cmpl-{}", number);
  const bool scores = request.echo && request.sampling.top >= 0;
  for (const auto& prompt : request.prompts) {
    const auto* const text = std::get_if<std::string>(&prompt);
    size_t of_text = 0;
    const Ids ids = text ? with_beginning(*text, false, of_text) : std::get<Ids>(prompt);
    const auto before = text ? std::span(ids).last(std::min(of_text, ids.size())) : std::span(ids);
    parts.prompt_tokens += std::ssize(ids);
    for (int64_t n = 0; n < request.sampling.choices; ++n) {
      parts.choices.push_back(make_choice(ids, before, request.sampling, n, request.sampling.stops, scores));
      if (request.echo) parts.echoes.push_back(text ? *text : tokenizer_.decode(ids));
    }
  }
  return begin(std::move(parts), request.sampling);
}

HttpAnswer Service::chat(const HttpRequest& http) {
  ChatRequest request = parse_chat(http.body, options_.limits);
  require_model(request.model);
  if (options_.chat.empty())
    throw ApiError(400, "messages", "the server was started without --chat, the format of the model's chats");
  const text::ChatTemplate& format = text::chat_template(options_.chat);
  std::vector<text::Message> messages;
  for (const ChatMessage& m : request.messages) messages.push_back({role_of(m.role), m.content});
  std::string text;
  try {
    text = text::format_chat(format, messages);
  } catch (const base::UserError& e) {
    throw ApiError(400, "messages", "{}", without_place(e));
  }
  const uint64_t number = ++requests_;
  if (!request.sampling.seed) request.sampling.seed = number;
  AnswerParts parts;
  parts.chat = true;
  parts.id = fmt::format("chatcmpl-{}", number);
  size_t of_text = 0;
  const Ids ids = with_beginning(text, true, of_text);
  parts.prompt_tokens = std::ssize(ids);
  std::vector<std::string> stops = request.sampling.stops;
  if (!format.stop.empty()) stops.emplace_back(format.stop);
  for (int64_t n = 0; n < request.sampling.choices; ++n)
    parts.choices.push_back(make_choice(ids, {}, request.sampling, n, stops, false));
  return begin(std::move(parts), request.sampling);
}

HttpAnswer Service::tokenize(const HttpRequest& http) {
  const base::Json body = parse_object(http.body);
  std::string text;
  bool special = options_.begins;
  try {
    text = body.at("prompt").text();
    if (const auto flag = body.find("add_special_tokens")) special = flag->boolean();
  } catch (const base::UserError& e) {
    throw ApiError(400, "prompt", "{}", without_place(e));
  }
  // A control token alone, which clients look up by the text that tokenizer_info gives.
  const auto control = tokenizer_.control_token(text);
  Ids ids = control ? Ids{*control} : tokenizer_.encode(text);
  if (special && !control) {
    const std::vector<int32_t> before = tokenizer_.special_tokens().before;
    ids.insert(ids.begin(), before.begin(), before.end());
  }
  JsonWriter out;
  out.object([&] {
    out.key("count").value(ids.size()).key("max_model_len").value(options_.context);
    out.key("tokens").list([&] {
      for (const int32_t id : ids) out.value(id);
    });
  });
  return {.body = out.text()};
}

HttpAnswer Service::detokenize(const HttpRequest& http) {
  const base::Json body = parse_object(http.body);
  const auto tokens = body.find("tokens");
  if (!tokens) throw ApiError(400, "tokens", "the request has no tokens");
  JsonWriter out;
  out.object([&] { out.key("prompt").value(valid_text(tokenizer_.decode(parse_ids(*tokens, "tokens")))); });
  return {.body = out.text()};
}

HttpAnswer Service::tokenizer_info(const HttpRequest&) {
  const auto text_of = [&](std::optional<int32_t> id) -> std::optional<std::string> {
    if (!id) return std::nullopt;
    if (auto control = tokenizer_.control_text(*id)) return control;
    return token_text(tokenizer_.decode(Ids{*id}));
  };
  const std::vector<int32_t> before = tokenizer_.special_tokens().before;
  JsonWriter out;
  const auto put = [&](std::string_view key, const std::optional<std::string>& text) {
    out.key(key);
    text && !text->empty() ? out.value(*text) : out.null();
  };
  out.object([&] {
    out.key("tokenizer_class").value(tokenizer_.kind()).key("vocab_size").value(tokenizer_.vocab_size());
    put("bos_token", text_of(before.empty() ? std::nullopt : std::optional(before.front())));
    put("eos_token", text_of(tokenizer_.end_of_text()));
    out.key("pad_token").null().key("model_max_length").value(options_.context);
  });
  return {.body = out.text()};
}

// In the text format of Prometheus.
HttpAnswer Service::metrics(const HttpRequest&) {
  std::string text;
  const auto put = [&](std::string_view name, std::string_view kind, std::string_view help, const std::string& values) {
    text += fmt::format("# HELP kintsugi_{} {}\n# TYPE kintsugi_{} {}\n{}", name, help, name, kind, values);
  };
  const auto one = [&](std::string_view name, std::string_view kind, std::string_view help, auto value) {
    put(name, kind, help, fmt::format("kintsugi_{} {}\n", name, value));
  };
  std::string answers;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, count] : answers_)
      answers +=
          fmt::format("kintsugi_http_answers_total{{path=\"{}\",status=\"{}\"}} {}\n", key.first, key.second, count);
  }
  put("http_answers_total", "counter", "Answers by path and status.", answers);
  one("prompt_tokens_total", "counter", "Tokens of prompts that were taken.", prompt_tokens_.load());
  one("generated_tokens_total", "counter", "Tokens that were made.", made_tokens_.load());
  one("requests_finished_total", "counter", "Requests whose answer was made to its end.", finished_.load());
  one("requests_cancelled_total", "counter", "Requests whose client left.", cancelled_.load());
  one("requests_failed_total", "counter", "Requests that were not finished.", failed_.load());
  one("requests_running", "gauge", "Requests under way, those that wait included.", under_way_.load());
  one("texts_waiting", "gauge", "Texts that wait for the model.", queue_.size());
  one("slots_used", "gauge", "Texts that are generated at the moment.", queue_.running.load());
  one("uptime_seconds", "gauge", "Seconds since the start.",
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count());
  return {.type = "text/plain; version=0.0.4", .body = text};
}

}  // namespace kintsugi::serve
