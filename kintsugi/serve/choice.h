// A text of an answer during generation.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/evaluate/stop_text.h"
#include "kintsugi/serve/job.h"
#include "kintsugi/text/stream_decoder.h"

namespace kintsugi::serve {

// How a text ended.
enum class Finish : uint8_t {
  none,    // not ended, or the engine failed
  stop,    // at an end-of-text token or a stop text
  length,  // at the requested maximum of tokens
};

class Choice : public Job {
 public:
  struct Ends {
    std::vector<std::string> stops = {};  // texts before which it ends
    std::vector<int32_t> tokens = {};     // ids that end a text
  };
  // `before`: ids of the preceding text. The tokenizer must outlive it.
  Choice(const text::Tokenizer& tokenizer, Generation generation, std::span<const int32_t> before, Ends ends);

  // Called by the client's thread.
  struct Part {
    std::vector<TokenScore> prompt;  // once, with the first part
    std::string text;                // continues what was taken before
    std::vector<TokenScore> tokens;
    bool ended = false;
    Finish finish = Finish::none;
    std::string failure;  // why it ended with Finish::none; empty: the server stops
  };
  // Returns what arrived since the last call, waiting at most `within`.
  Part take(std::chrono::milliseconds within);
  void cancel() { cancelled_ = true; }

  // Called by the engine's thread.
  const Generation& generation() const override { return generation_; }
  bool cancelled() const override { return cancelled_; }
  void prompt_read(std::vector<TokenScore> scores) override;
  bool add(TokenScore token) override;
  void fail(std::string why) override;
  void end() override;

 private:
  const Generation generation_;
  const std::vector<int32_t> ends_;
  std::atomic<bool> cancelled_ = false;
  text::StreamDecoder decoder_;
  evaluate::StopText stop_;
  int64_t made_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  Part part_;
};

}  // namespace kintsugi::serve
