#include "kintsugi/serve/answer.h"

#include <algorithm>

#include "kintsugi/base/json_writer.h"
#include "kintsugi/serve/api_error.h"
#include "kintsugi/serve/api_text.h"

namespace kintsugi::serve {
namespace {

using base::JsonWriter;
constexpr std::chrono::milliseconds kWait{100};  // maximum wait for the engine before checking the client
// While there is nothing to send, sends something without meaning at this interval: only that detects a disconnected
// client.
constexpr std::chrono::seconds kAlive{1};

// How much of a text was written.
struct Written {
  std::string text;
  std::vector<TokenScore> tokens;
  std::optional<int32_t> before = {};  // the token before the next
  int64_t offset = 0;                  // characters of the tokens before the next
  int64_t made = 0;
  bool begun = false, ended = false;
  Finish finish = Finish::none;
};

void write_finish(JsonWriter& out, Finish finish) {
  out.key("finish_reason");
  finish == Finish::none ? out.null() : out.value(finish == Finish::stop ? "stop" : "length");
}

class Answer : public BodySource {
 public:
  Answer(AnswerParts parts, const text::Tokenizer& tokenizer, std::function<void(const AnswerEnd&)> ended)
      : parts_(std::move(parts)), tokenizer_(tokenizer), ended_(std::move(ended)), written_(parts_.choices.size()) {}
  ~Answer() override {
    if (!over_) cancel();
  }

  bool next(std::string& out) override {
    if (parts_.streams && !greeted_) {
      if (parts_.chat)
        for (size_t i = 0; i < written_.size(); ++i) out += event(i, {}, true);
      greeted_ = true;
    }
    if (!take_parts(out)) {
      leave(AnswerEnd::failed);
      out += parts_.streams ? "data: " + failure() + "\n\n" : failure();
      return false;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!out.empty()) sent_ = now;
    if (!std::ranges::all_of(written_, &Written::ended)) {
      if (now - sent_ < kAlive) return true;
      out += parts_.streams ? ": waiting\n\n" : " ";  // a comment of the stream; white space before the JSON
      sent_ = now;
      return true;
    }
    if (parts_.streams) {
      if (parts_.includes_usage) out += usage_event();
      out += "data: [DONE]\n\n";
    } else {
      out += whole();
    }
    leave(AnswerEnd::whole);
    return false;
  }

  void cancel() override { leave(AnswerEnd::cancelled); }

 private:
  void leave(AnswerEnd::Way way) {
    if (over_) return;
    over_ = true;
    for (const auto& choice : parts_.choices) choice->cancel();
    int64_t made = 0;
    for (const Written& w : written_) made += w.made;
    ended_({.way = way, .tokens = made});
  }

  // Takes new parts of all texts. Returns false if one failed, or on timeout.
  bool take_parts(std::string& out) {
    bool waits = true;
    for (size_t i = 0; i < written_.size(); ++i) {
      Written& w = written_[i];
      if (w.ended) continue;
      Choice::Part part = parts_.choices[i]->take(waits ? kWait : std::chrono::milliseconds(0));
      waits = false;
      if (part.ended && part.finish == Finish::none) {
        failure_ = std::move(part.failure);
        return false;
      }
      add(i, std::move(part), out);
    }
    return std::chrono::steady_clock::now() < parts_.deadline;
  }

  void add(size_t i, Choice::Part part, std::string& out) {
    Written& w = written_[i];
    const bool echoes = !parts_.echoes.empty();
    const bool first = !w.begun && (!part.tokens.empty() || part.ended || !part.prompt.empty());
    std::string text = first && echoes ? parts_.echoes[i] + part.text : part.text;
    if (first && !echoes && !parts_.choices[i]->generation().prompt.empty() && !parts_.chat) {
      w.before = parts_.choices[i]->generation().prompt.back();
    }
    w.begun |= first;
    w.made += std::ssize(part.tokens);
    w.ended = part.ended;
    w.finish = part.ended ? part.finish : Finish::none;
    std::vector<TokenScore> tokens = echoes ? std::move(part.prompt) : std::vector<TokenScore>();
    std::ranges::move(part.tokens, std::back_inserter(tokens));
    if (parts_.streams) {
      if (text.empty() && tokens.empty() && !w.ended) return;
      out += event(i,
                   {.text = std::move(text),
                    .tokens = std::move(tokens),
                    .before = w.before,
                    .offset = w.offset,
                    .finish = w.finish},
                   false);
    } else {
      w.text += text;
      std::ranges::move(tokens, std::back_inserter(w.tokens));
    }
  }

  void begin(JsonWriter& out, std::string_view object) const {
    out.key("id").value(parts_.id).key("object").value(object).key("created").value(parts_.created);
    out.key("model").value(parts_.model);
  }

  void write_usage(JsonWriter& out) const {
    int64_t made = 0;
    for (const Written& w : written_) made += w.made;
    out.key("usage").object([&] {
      out.key("prompt_tokens").value(parts_.prompt_tokens).key("completion_tokens").value(made);
      out.key("total_tokens").value(parts_.prompt_tokens + made);
    });
  }

  std::string_view chunk_name() const { return parts_.chat ? "chat.completion.chunk" : "text_completion"; }

  // `role`: the first event of a chat's answer.
  std::string event(size_t i, Written w, bool role) {
    JsonWriter out;
    out.object([&] {
      begin(out, chunk_name());
      out.key("choices").list([&] {
        out.object([&] {
          out.key("index").value(i);
          if (parts_.chat) {
            out.key("delta").object([&] {
              if (role) out.key("role").value("assistant");
              if (role || !w.text.empty()) out.key("content").value(valid_text(w.text));
            });
          } else {
            out.key("text").value(valid_text(w.text));
          }
          write_log_probabilities(out, w);
          write_finish(out, w.finish);
        });
      });
      if (parts_.includes_usage) out.key("usage").null();
    });
    written_[i].before = w.before, written_[i].offset = w.offset;
    return "data: " + out.text() + "\n\n";
  }

  std::string usage_event() const {
    JsonWriter out;
    out.object([&] {
      begin(out, chunk_name());
      out.key("choices").list([] {});
      write_usage(out);
    });
    return "data: " + out.text() + "\n\n";
  }

  std::string whole() {
    JsonWriter out;
    out.object([&] {
      begin(out, parts_.chat ? "chat.completion" : "text_completion");
      out.key("choices").list([&] {
        for (size_t i = 0; i < written_.size(); ++i) {
          Written& w = written_[i];
          out.object([&] {
            out.key("index").value(i);
            if (parts_.chat) {
              out.key("message").object(
                  [&] { out.key("role").value("assistant").key("content").value(valid_text(w.text)); });
            } else {
              out.key("text").value(valid_text(w.text));
            }
            write_log_probabilities(out, w);
            write_finish(out, w.finish);
          });
        }
      });
      write_usage(out);
    });
    return out.text();
  }

  std::string failure() const {
    if (!failure_.empty()) return error_body(500, failure_);
    return error_body(503, "the answer was not finished: the server stops, or the request took longer than it may");
  }

  void write_log_probabilities(JsonWriter& out, Written& w) const {
    out.key("logprobs");
    if (!parts_.log_probabilities || (parts_.streams && w.tokens.empty())) {
      out.null();
    } else if (parts_.chat) {
      out.object([&] { out.key("content").list([&] { write_chat_tokens(out, w); }); });
    } else {
      out.object([&] { write_tokens(out, w); });
    }
  }

  // The format of completions: a list per property. The alternatives always include the token itself.
  void write_tokens(JsonWriter& out, Written& w) const {
    std::vector<std::string> texts;
    std::vector<std::optional<int32_t>> before;
    std::vector<int64_t> offsets;
    for (const TokenScore& t : w.tokens) {
      const std::string bytes = token_bytes(tokenizer_, w.before, t.id);
      texts.push_back(token_text(bytes));
      before.push_back(w.before);
      offsets.push_back(w.offset);
      w.offset += num_characters(bytes);
      w.before = t.id;
    }
    const auto each = [&](std::string_view key, const auto& write) {
      out.key(key).list([&] {
        for (size_t i = 0; i < w.tokens.size(); ++i) write(i);
      });
    };
    each("tokens", [&](size_t i) { out.value(texts[i]); });
    each("token_logprobs", [&](size_t i) {
      const auto& p = w.tokens[i].log_probability;
      p ? out.value(*p) : out.null();
    });
    each("top_logprobs", [&](size_t i) {
      const TokenScore& t = w.tokens[i];
      if (!t.log_probability) return void(out.null());
      std::vector<std::pair<std::string, double>> top;
      const auto put = [&](const std::string& text, double p) {
        const auto known = std::ranges::find(top, text, &std::pair<std::string, double>::first);
        known == top.end() ? void(top.emplace_back(text, p)) : void(known->second = std::max(known->second, p));
      };
      for (const TokenScore::Alternative& a : t.top)
        put(token_text(token_bytes(tokenizer_, before[i], a.id)), a.log_probability);
      put(texts[i], *t.log_probability);
      out.object([&] {
        for (const auto& [text, p] : top) out.key(text).value(p);
      });
    });
    each("text_offset", [&](size_t i) { out.value(offsets[i]); });
  }

  void write_chat_token(JsonWriter& out, std::optional<int32_t> before, int32_t id, double p) const {
    const std::string bytes = token_bytes(tokenizer_, before, id);
    out.key("token").value(token_text(bytes)).key("logprob").value(p);
    out.key("bytes").list([&] {
      for (const char c : bytes) out.value(static_cast<int>(static_cast<unsigned char>(c)));
    });
  }

  void write_chat_tokens(JsonWriter& out, Written& w) const {
    for (const TokenScore& t : w.tokens) {
      out.object([&] {
        write_chat_token(out, w.before, t.id, t.log_probability.value_or(0));
        out.key("top_logprobs").list([&] {
          for (const TokenScore::Alternative& a : t.top)
            out.object([&] { write_chat_token(out, w.before, a.id, a.log_probability); });
        });
      });
      w.before = t.id;
    }
  }

  const AnswerParts parts_;
  const text::Tokenizer& tokenizer_;
  const std::function<void(const AnswerEnd&)> ended_;
  std::vector<Written> written_;
  std::chrono::steady_clock::time_point sent_ = std::chrono::steady_clock::now();
  bool greeted_ = false, over_ = false;
  std::string failure_;  // of a text; empty: none, or the server stops
};

}  // namespace

std::shared_ptr<BodySource> make_answer(AnswerParts parts, const text::Tokenizer& tokenizer,
                                        std::function<void(const AnswerEnd&)> ended) {
  return std::make_shared<Answer>(std::move(parts), tokenizer, std::move(ended));
}

}  // namespace kintsugi::serve
