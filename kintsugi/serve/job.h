// A text to generate, and the queue between client threads and the engine's.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/evaluate/draw.h"
#include "kintsugi/evaluate/token_score.h"

namespace kintsugi::serve {

using evaluate::TokenScore;

struct Generation {
  std::vector<int32_t> prompt;  // nonempty; must fit into the caches together with max_tokens
  int64_t max_tokens = 0;
  evaluate::SampleOptions sample = {};
  int64_t top = -1;           // log-probabilities with this many alternatives; -1: none
  bool score_prompt = false;  // also for the tokens of the prompt
};

// The engine's thread calls all functions except the constructor and cancelled().
class Job {
 public:
  virtual ~Job() = default;

  virtual const Generation& generation() const = 0;
  virtual bool cancelled() const = 0;
  virtual void prompt_read(std::vector<TokenScore> scores) = 0;  // one per token, if requested
  virtual bool add(TokenScore token) = 0;                        // returns whether to continue
  virtual void fail(std::string why) = 0;                        // the text cannot be continued
  virtual void end() = 0;                                        // always the last call
};

class JobQueue {
 public:
  explicit JobQueue(size_t most) : most_(most) {}

  // Adds all of them, or none and returns false if they do not fit. Adds none after close().
  bool push(const std::vector<std::shared_ptr<Job>>& jobs);
  // Returns the oldest; null if there is none within the time, or if the queue is closed and empty.
  std::shared_ptr<Job> pop(std::chrono::milliseconds within);
  void close();
  bool closed() const;
  size_t size() const;

  // Texts in generation, as reported by the engine.
  std::atomic<int64_t> running = 0;

 private:
  size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool closed_ = false;
};

}  // namespace kintsugi::serve
