#include "kintsugi/serve/service.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "kintsugi/serve/engine.h"
#include "kintsugi/text/bytes_tokenizer.h"
#include "kintsugi/text/sentencepiece_tokenizer.h"
#include "kintsugi/text/small_sentencepiece_test.h"

namespace kintsugi::serve::service_test {
namespace {

using nlohmann::json;

// A model that answers each prompt with one text, a byte at a time.
class Model {
 public:
  Model(JobQueue& queue, std::string text) : queue_(queue), thread_([this, text] { run(text); }) {}
  ~Model() {
    queue_.close();
    thread_.join();
  }

 private:
  void run(const std::string& text) {
    while (!queue_.closed()) {
      const std::shared_ptr<Job> job = queue_.pop(std::chrono::milliseconds(20));
      if (!job) continue;
      const Generation& g = job->generation();
      std::vector<TokenScore> scores;
      for (const int32_t id : g.prompt) scores.push_back({.id = id, .log_probability = -1.0, .top = {{id, -1.0}}});
      job->prompt_read(g.score_prompt ? scores : std::vector<TokenScore>());
      for (int64_t i = 0; i < g.max_tokens; ++i) {
        const int32_t id = static_cast<unsigned char>(text[static_cast<size_t>(i) % text.size()]);
        TokenScore score = {.id = id};
        if (g.top >= 0) score.log_probability = -0.5;
        for (int64_t t = 0; t < g.top; ++t) score.top.push_back({static_cast<int32_t>((id + t) % 256), -0.5 - t});
        if (!job->add(std::move(score)) || job->cancelled()) break;
      }
      job->end();
    }
  }

  JobQueue& queue_;
  std::thread thread_;
};

std::string body_of(const HttpAnswer& answer) {
  std::string body = answer.body;
  if (answer.source)
    while (answer.source->next(body)) {
    }
  return body;
}

class ServiceTest : public ::testing::Test {
 protected:
  Service make(const std::string& chat = "chatml") {
    return Service({.name = "m", .context = 200, .vocab = tokenizer_->vocab_size(), .chat = chat}, *tokenizer_, queue_);
  }
  static json post(Service& service, const std::string& path, const json& body) {
    return json::parse(body_of(service.answer({.method = "POST", .path = path, .body = body.dump()})));
  }

  std::unique_ptr<text::Tokenizer> tokenizer_ = text::make_bytes_tokenizer();
  JobQueue queue_{50};
};

}  // namespace

TEST_F(ServiceTest, Chats) {
  Service service = make();
  const Model model(queue_, "Hi there<|im_end|>");
  const json messages =
      json::array({{{"role", "system"}, {"content", "Be kind."}},
                   {{"role", "user"}, {"content", json::array({{{"type", "text"}, {"text", "Hi"}}})}}});
  const json answer = post(service, "/v1/chat/completions",
                           {{"model", "m"}, {"messages", messages}, {"logprobs", true}, {"top_logprobs", 2}});
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["choices"][0]["message"], (json{{"role", "assistant"}, {"content", "Hi there"}}));
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  const json first = answer["choices"][0]["logprobs"]["content"][0];
  EXPECT_EQ(first["token"], "H");
  EXPECT_EQ(first["bytes"], json::array({72}));
  EXPECT_EQ(first["top_logprobs"].size(), 2u);
  EXPECT_EQ(
      answer["usage"]["prompt_tokens"],
      std::string("<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
          .size());

  const std::string stream =
      body_of(service.answer({.method = "POST",
                              .path = "/v1/chat/completions",
                              .body = json{{"model", "m"}, {"messages", messages}, {"stream", true}}.dump()}));
  std::string text;
  for (size_t at = 0, end; (end = stream.find("\n\n", at)) != std::string::npos; at = end + 2) {
    const std::string event = stream.substr(at + 6, end - at - 6);
    if (event == "[DONE]") continue;
    const json delta = json::parse(event)["choices"][0]["delta"];
    if (delta.contains("content")) text += delta["content"];
  }
  EXPECT_EQ(text, "Hi there");

  const json wrong = post(service, "/v1/chat/completions",
                          {{"model", "m"}, {"messages", json::array({{{"role", "assistant"}, {"content", "Hi"}}})}});
  EXPECT_EQ(wrong["error"]["param"], "messages");
  Service plain = make("");
  EXPECT_EQ(post(plain, "/v1/chat/completions", {{"model", "m"}, {"messages", messages}})["error"]["message"],
            "the server was started without --chat, the format of the model's chats");
}

TEST_F(ServiceTest, TokensThatAreNoTextDiffer) {
  Service service = make();
  const Model model(queue_, "\xC3\xA9");
  const json answer = post(service, "/v1/completions",
                           {{"model", "m"}, {"prompt", "a"}, {"max_tokens", 3}, {"logprobs", 3}, {"echo", true}});
  const json choice = answer["choices"][0];
  EXPECT_EQ(choice["text"], "a\u00e9\ufffd");
  EXPECT_EQ(choice["logprobs"]["tokens"], (json{"a", "bytes:\\xc3", "bytes:\\xa9", "bytes:\\xc3"}));
  EXPECT_EQ(choice["logprobs"]["text_offset"], (json{0, 1, 2, 2}));
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][1].size(), 3u);
}

// For any request, the answer is JSON with a fitting status, and the service continues.
TEST_F(ServiceTest, AnswersToDamagedRequests) {
  Service service = make();
  const Model model(queue_, "text");
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const std::vector<std::string> bodies = {
      R"({"model": "m", "prompt": ["a", "b"], "max_tokens": 2, "logprobs": 1, "echo": true, "stop": ["x"], "n": 2})",
      R"({"model": "m", "prompt": [[1, 2, 3]], "max_tokens": 1, "stream": true, "stream_options": {"include_usage": true}})",
      R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "temperature": 0.5, "seed": 9})",
      R"({"prompt": "a", "tokens": [1, 2, 999]})"};
  const std::vector<std::string> words = {
      "null",  "-1", "1e99", "[]", "{}", "\"\"", "true", "\xff", "\\ud800",          "99999999999",
      "\"n\"", ",",  ":",    "]",  "}",  "[[",   "0.5",  " ",    "\"logprobs\": 99,"};
  const std::vector<std::string> paths = {"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"};
  size_t good = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string body = bodies[below(bodies.size())];
    for (size_t edits = below(4); edits > 0; --edits) {
      const size_t at = below(body.size() + 1);
      switch (below(4)) {
        case 0:
          body.insert(at, words[below(words.size())]);
          break;
        case 1:
          body.erase(at, below(9));
          break;
        case 2:
          if (at < body.size()) body[at] = static_cast<char>(random());
          break;
        default:
          body.insert(at, body.substr(below(body.size() + 1), below(20)));
      }
    }
    const HttpAnswer answer = service.answer({.method = "POST", .path = paths[below(paths.size())], .body = body});
    const std::string text = body_of(answer);
    if (answer.status == 200) {
      ++good;
      continue;
    }
    ASSERT_TRUE(answer.status == 400 || answer.status == 404) << answer.status << ": " << body;
    ASSERT_TRUE(json::parse(text)["error"]["message"].is_string()) << body;
  }
  EXPECT_GT(good, 500u);
  EXPECT_EQ(post(service, "/v1/completions", {{"model", "m"}, {"prompt", "a"}})["choices"][0]["text"],
            "texttexttexttext");
}

TEST_F(ServiceTest, ThePageNamesTheModel) {
  Service chats({.name = "a<b&c", .context = 200, .vocab = tokenizer_->vocab_size(), .chat = "chatml", .key = "k"},
                *tokenizer_, queue_);
  const HttpAnswer page = chats.answer({.method = "GET", .path = "/"});  // without the key
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.type, "text/html; charset=utf-8");
  EXPECT_NE(page.body.find("<title>a&lt;b&amp;c</title>"), std::string::npos);
  EXPECT_NE(page.body.find("const chats = true,"), std::string::npos);
  EXPECT_EQ(page.body.find('%'), page.body.find("%;"));  // no mark is left; a width of 100%
  Service plain = make("");
  EXPECT_NE(plain.answer({.method = "GET", .path = "/"}).body.find("const chats = false,"), std::string::npos);
}

TEST_F(ServiceTest, SamplingReachesTheModel) {
  Service service = make();
  const auto sent = [&](json body) {
    body["model"] = "m", body["prompt"] = "a", body["max_tokens"] = 1;
    const HttpAnswer answer = service.answer({.method = "POST", .path = "/v1/completions", .body = body.dump()});
    EXPECT_EQ(answer.status, 200) << answer.body;
    const auto job = queue_.pop(std::chrono::milliseconds(0));
    job->end();
    return job->generation().sample;
  };
  const evaluate::SampleOptions s = sent({{"top_p", 0.5},
                                          {"min_p", 0.1},
                                          {"top_k", 7},
                                          {"repetition_penalty", 1.5},
                                          {"presence_penalty", -1},
                                          {"frequency_penalty", 0.25},
                                          {"logit_bias", {{"65", -100}, {"66", 2.5}}},
                                          {"seed", 9}});
  EXPECT_EQ(s.top_p, 0.5);
  EXPECT_EQ(s.min_p, 0.1);
  EXPECT_EQ(s.top_k, 7);
  EXPECT_EQ(s.repetition_penalty, 1.5);
  EXPECT_EQ(s.presence_penalty, -1);
  EXPECT_EQ(s.frequency_penalty, 0.25);
  EXPECT_EQ(s.logit_bias, (std::vector<std::pair<int32_t, double>>{{65, -100}, {66, 2.5}}));
  EXPECT_EQ(s.seed, 9u);
  EXPECT_FALSE(sent({{"top_p", 1}, {"logit_bias", json::object()}}).changes_logits());
}

// SentencePiece makes no control tokens of text, but <s> and </s> of a chat are its tokens 1 and 2.
TEST_F(ServiceTest, TurnsOfAChatEndWithTheTokenOfSentencePiece) {
  tokenizer_ = text::make_sentencepiece_tokenizer(text::small_sentencepiece(2, true), "small.model");
  Service service = make("llama2");
  const auto turn = [](const char* role, const char* content) { return json{{"role", role}, {"content", content}}; };
  const json body = {{"model", "m"},
                     {"messages", json::array({turn("user", "low"), turn("assistant", "lower"), turn("user", "low")})},
                     {"max_tokens", 1}};
  const HttpAnswer answer = service.answer({.method = "POST", .path = "/v1/chat/completions", .body = body.dump()});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto job = queue_.pop(std::chrono::milliseconds(0));
  job->end();
  const std::vector<int32_t>& prompt = job->generation().prompt;
  const auto end = std::ranges::find(prompt, 2);
  ASSERT_NE(end, prompt.end());
  EXPECT_EQ(end[1], 1);
  EXPECT_EQ(std::ranges::count(prompt, 2), 1);
}

// Clients, such as lm-evaluation-harness, look up ids of the special tokens by their text.
TEST_F(ServiceTest, SpecialTokensOfSentencePieceHaveTextAndId) {
  tokenizer_ = text::make_sentencepiece_tokenizer(text::small_sentencepiece(2, true), "small.model");
  Service service = make();
  const json info = json::parse(service.answer({.method = "GET", .path = "/tokenizer_info"}).body);
  EXPECT_EQ(info["eos_token"], "</s>");
  const auto ids = [&](const char* text) {
    const json body = {{"prompt", text}, {"add_special_tokens", false}};
    return json::parse(service.answer({.method = "POST", .path = "/tokenize", .body = body.dump()}).body)["tokens"];
  };
  EXPECT_EQ(ids("</s>"), json::array({2}));
  EXPECT_EQ(ids("<s>"), json::array({1}));
  EXPECT_GT(ids("</s> low").size(), 3u);  // text, not a token
}

// The server goes on, and says why.
TEST_F(ServiceTest, ATextThatFailsSaysWhy) {
  Service service = make();
  const HttpAnswer answer = service.answer(
      {.method = "POST", .path = "/v1/completions", .body = R"({"model": "m", "prompt": "a", "max_tokens": 4})"});
  const auto job = queue_.pop(std::chrono::milliseconds(0));
  job->fail("the logits are NaN");
  job->end();
  EXPECT_EQ(json::parse(body_of(answer))["error"]["message"], "the logits are NaN");
}

}  // namespace kintsugi::serve::service_test
