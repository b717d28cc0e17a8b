// The API: which request asks for what. It knows neither sockets nor programs, and may be called by several threads.
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
  int64_t context = 0;                   // tokens of a text, its prompt included
  int64_t vocab = 0;                     // ids that the model and the tokenizer have
  bool begins = false;                   // the tokenizer's first special tokens stand before texts
  std::string chat = {};                 // the format of chats; "": the model knows none
  std::string key = {};                  // that clients must give; "": none
  std::chrono::seconds time_limit{600};  // of a request
  int64_t requests = 64;                 // that are generated at the same time, waiting ones included
  ApiLimits limits = {};
};

class Service {
 public:
  // Both must outlive it.
  Service(ServiceOptions options, const text::Tokenizer& tokenizer, JobQueue& queue);

  HttpAnswer answer(const HttpRequest& request);
  // The body for a request that was refused before it came here.
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
  Ids with_beginning(const std::string& text, size_t& ids_of_text) const;
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
