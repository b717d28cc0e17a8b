// The API: dispatches requests. Independent of sockets and programs; thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "kintsugi/serve/answer.h"
#include "kintsugi/serve/api_request.h"
#include "kintsugi/serve/http.h"
#include "kintsugi/serve/job.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::serve {

struct ServiceOptions {
  std::string name = {};                 // of the model
  int64_t context = 0;                   // tokens per text, including its prompt
  int64_t vocab = 0;                     // ids common to the model and the tokenizer
  bool begins = false;                   // texts begin with the tokenizer's begin tokens
  std::string chat = {};                 // chat format; "": the model has none
  std::string key = {};                  // required of clients; "": none
  std::chrono::seconds time_limit{600};  // per request
  int64_t requests = 64;                 // concurrent, including waiting ones
  ApiLimits limits = {};
};

class Service {
 public:
  // Both must outlive it.
  Service(ServiceOptions options, const text::Tokenizer& tokenizer, JobQueue& queue);

  HttpAnswer answer(const HttpRequest& request);
  // The body for a request rejected before it was handled.
  static std::string refusal(int status);

 private:
  HttpAnswer route(const HttpRequest& request);
  HttpAnswer complete(const HttpRequest& request);
  HttpAnswer chat(const HttpRequest& request);
  HttpAnswer page(const HttpRequest& request);
  HttpAnswer models(const HttpRequest& request);
  HttpAnswer health(const HttpRequest& request);
  HttpAnswer metrics(const HttpRequest& request);
  HttpAnswer tokenize(const HttpRequest& request);
  HttpAnswer detokenize(const HttpRequest& request);
  HttpAnswer tokenizer_info(const HttpRequest& request);

  struct Route;
  static std::span<const Route> routes();

  void require_model(const std::string& name) const;
  void require_key(const HttpRequest& request) const;
  Ids with_beginning(const std::string& text, bool chat, size_t& ids_of_text) const;
  std::shared_ptr<Choice> make_choice(const Ids& prompt, std::span<const int32_t> before, const Sampling& sampling,
                                      int64_t number, std::vector<std::string> stops, bool score_prompt) const;
  HttpAnswer begin(AnswerParts parts, const Sampling& sampling);

  const ServiceOptions options_;
  const text::Tokenizer& tokenizer_;
  JobQueue& queue_;
  const int64_t created_;
  const std::chrono::steady_clock::time_point begun_;
  std::atomic<uint64_t> requests_ = 0;
  // For /metrics.
  std::atomic<int64_t> prompt_tokens_ = 0, made_tokens_ = 0, cancelled_ = 0, failed_ = 0, finished_ = 0, under_way_ = 0;
  std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> answers_;  // by path and status
};

}  // namespace kintsugi::serve
