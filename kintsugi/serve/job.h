// A text that the model is asked to make, and its queue: between the threads of clients and that of the model.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "kintsugi/evaluate/draw.h"
#include "kintsugi/evaluate/token_score.h"

namespace kintsugi::serve {

using evaluate::TokenScore;

struct Generation {
  std::vector<int32_t> prompt;  // not empty; with max_tokens it fits into the caches
  int64_t max_tokens = 0;
  evaluate::SampleOptions sample = {};
  int64_t top = -1;           // log-probabilities, with so many alternatives; -1: none
  bool score_prompt = false;  // those of the prompt's tokens too
};

// Functions are called by the model's thread, but for the constructor and cancelled().
class Job {
 public:
  virtual ~Job() = default;

  virtual const Generation& generation() const = 0;
  virtual bool cancelled() const = 0;
  virtual void prompt_read(std::vector<TokenScore> scores) = 0;  // one for each token, if they are asked for
  virtual bool add(TokenScore token) = 0;                        // whether the text goes on
  virtual void end() = 0;                                        // the last call, whatever happened
};

class JobQueue {
 public:
  explicit JobQueue(size_t most) : most_(most) {}

  // All of them, or, if there is no room, none: false. After close() none.
  bool push(const std::vector<std::shared_ptr<Job>>& jobs);
  // The oldest; null if there is none within the time, or the queue is closed and empty.
  std::shared_ptr<Job> pop(std::chrono::milliseconds within);
  void close();
  bool closed() const;
  size_t size() const;

  // Texts that are generated now, as the model's side says.
  std::atomic<int64_t> running = 0;

 private:
  size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool closed_ = false;
};

}  // namespace kintsugi::serve
