// `kintsugi serve` from the client's side, over plain sockets; compared with `generate` and `evaluate --task`.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "kintsugi/base/file.h"
#include "tests/process.h"

namespace kintsugi::tests::server_test {
namespace {

using nlohmann::json;

struct Response {
  int status = 0;
  std::string head, body;
  json parsed() const { return json::parse(body); }
};

// A connection to the server.
class Connection {
 public:
  explicit Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit = {.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<size_t>(sent));
    }
  }
  // Reads until `end` appears, or the server closes.
  std::string receive(std::string_view end = "") {
    char part[4096];
    while (end.empty() || received_.find(end) == std::string::npos) {
      const ssize_t count = ::recv(socket_, part, sizeof(part), 0);
      if (count <= 0) break;
      received_.append(part, static_cast<size_t>(count));
    }
    return received_;
  }

 private:
  int socket_;
  std::string received_;
};

std::string request_text(const std::string& method, const std::string& path, const std::string& body,
                         const std::string& headers = "") {
  return fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n{}", method, path,
                     headers, body.size(), body);
}

std::string without_chunks(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t line = text.find("\r\n");
    const size_t count = std::stoul(std::string(text.substr(0, line)), nullptr, 16);
    if (count == 0) break;
    out += text.substr(line + 2, count);
    text.remove_prefix(line + 2 + count + 2);
  }
  return out;
}

Response response_of(const std::string& text) {
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) return {.status = 0, .head = text, .body = ""};
  Response r = {.status = std::stoi(text.substr(9, 3)), .head = text.substr(0, end), .body = text.substr(end + 4)};
  if (r.head.find("chunked") != std::string::npos) r.body = without_chunks(r.body);
  return r;
}

// A run of a few steps, created once.
class Trained {
 public:
  Trained() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 400; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    std::ofstream(folder / "run.toml")
        << "[model]\nlayers = 2\nembed = 32\nheads = 4\ncontext = 128\n[data]\ntrain = \"corpus/train\"\n[train]\n"
           "folder = \"run\"\nsteps = 30\nglobal_batch = 8\nsequence = 64\nlearning_rate = 1e-2\n[parallel]\n"
           "threads = 1\n";
    EXPECT_EQ(run("prepare text.txt --tokenizer bytes --output corpus").code, 0);
    EXPECT_EQ(run("train run.toml").code, 0);
    std::ofstream task(folder / "valid.jsonl");
    for (int i = 0; i < 12; ++i)
      task << json{{"goal", fmt::format("Line {}", i)},
                   {"sol1", "of a text that a model can learn. \u00e9"},
                   {"sol2", fmt::format("a {} that", std::string(static_cast<size_t>(i * 7), 'q'))},
                   {"label", i % 2}}
           << "\n";
  }
  Ended run(const std::string& arguments) const { return run_kintsugi(folder.path(), arguments); }

  TemporaryFolder folder;
};

class Server {
 public:
  Server(const fs::path& folder, const std::string& arguments)
      : process(folder, "serve run --port 0 --threads 1 --client-limit 1 " + arguments) {
    process.wait_for([&] {
      for (const auto& file : fs::directory_iterator(folder)) {
        if (file.path().extension() != ".out") continue;
        const std::string text = base::read_file(file.path());
        const size_t at = text.find("serving run on http://127.0.0.1:");
        if (at == std::string::npos || text.back() != '\n') continue;
        const int found = std::stoi(text.substr(at + 32));
        out = file.path();
        port = found;
      }
      return port > 0;
    });
    EXPECT_GT(port, 0) << process.told();
  }
  ~Server() {
    if (port > 0) fs::remove(out);
  }

  Response call(const std::string& method, const std::string& path, const std::string& body = "",
                const std::string& headers = "") const {
    Connection c(port);
    c.send(request_text(method, path, body, headers));
    return response_of(c.receive());
  }
  Response complete(json body) const {
    if (!body.contains("model")) body["model"] = "run";
    return call("POST", "/v1/completions", body.dump());
  }
  // The value of a metric.
  int64_t metric(const std::string& name) const {
    const std::string text = call("GET", "/metrics").body;
    const size_t at = text.find("\nkintsugi_" + name + " ");
    return at == std::string::npos ? -1 : std::stol(text.substr(at + 11 + name.size()));
  }

  Process process;
  int port = 0;
  fs::path out;
};

class Serve : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { trained_ = std::make_unique<Trained>(); }
  static void TearDownTestSuite() { trained_.reset(); }
  void SetUp() override {
    if (trained_->run("serve run --port 0 --key-file none").err.find("this build has no HTTP server") !=
        std::string::npos)
      GTEST_SKIP() << "this build has no HTTP server";
  }
  static const fs::path& folder() { return trained_->folder.path(); }

  static std::unique_ptr<Trained> trained_;
};
std::unique_ptr<Trained> Serve::trained_;

bool wait_for_metric(const Server& server, const std::string& name, int64_t value) {
  for (int i = 0; i < 300; ++i) {
    if (server.metric(name) == value) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

const json kGreedy = {{"prompt", "Line 1"}, {"max_tokens", 40}, {"temperature", 0}};

}  // namespace

TEST_F(Serve, AnswersAsGenerateDoes) {
  const std::string want = trained_->run("generate run --temperature 0 --length 40 --prompt \"Line 1\"").out;
  for (const std::string layout : {"", "--set parallel.tensor=2", "--set parallel.pipe=2"}) {
    const Server server(folder(), layout);
    EXPECT_EQ(server.call("GET", "/health").body, "{\"status\":\"ok\"}");
    const Response r = server.complete(kGreedy);
    ASSERT_EQ(r.status, 200) << r.body;
    const json answer = r.parsed();
    EXPECT_EQ("Line 1" + answer["choices"][0]["text"].get<std::string>() + "\n", want) << layout;
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(answer["usage"], (json{{"prompt_tokens", 6}, {"completion_tokens", 40}, {"total_tokens", 46}}));
    EXPECT_EQ(answer["model"], "run");
  }
  // A device: a few tokens, since the emulation is slow.
  const Server server(folder(), "--slots 2 --context 16 --set parallel.device=emulated");
  json body = kGreedy;
  body["max_tokens"] = 3;
  const Response r = server.complete(body);
  ASSERT_EQ(r.status, 200) << r.body;
  EXPECT_EQ("Line 1" + r.parsed()["choices"][0]["text"].get<std::string>(), want.substr(0, 9));
}

TEST_F(Serve, StreamsWhatItAnswers) {
  const Server server(folder(), "");
  const std::string want = server.complete(kGreedy).parsed()["choices"][0]["text"];
  json body = kGreedy;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  body["n"] = 2;
  body["model"] = "run";
  const Response r = server.call("POST", "/v1/completions", body.dump());
  EXPECT_NE(r.head.find("text/event-stream"), std::string::npos);
  std::string texts[2], finish;
  size_t events = 0, at = 0;
  json last;
  for (size_t end; (end = r.body.find("\n\n", at)) != std::string::npos; at = end + 2) {
    const std::string event = r.body.substr(at, end - at);
    if (event.starts_with(":")) continue;  // a comment
    ASSERT_EQ(event.substr(0, 6), "data: ");
    if (event == "data: [DONE]") break;
    last = json::parse(event.substr(6));
    ++events;
    for (const json& choice : last["choices"]) texts[choice["index"].get<int>()] += choice["text"];
  }
  EXPECT_EQ(r.body.substr(at), "data: [DONE]\n\n");
  EXPECT_EQ(texts[0], want);
  EXPECT_EQ(texts[1], want);
  EXPECT_EQ(last["usage"]["completion_tokens"], 80);
  EXPECT_GT(events, 2u);
}

TEST_F(Serve, LogProbabilitiesAreThoseOfTheTask) {
  const std::string dump = (folder() / "dump.jsonl").string();
  const Ended native = trained_->run("evaluate run --task piqa --data valid.jsonl --batch 5 --dump " + dump);
  ASSERT_EQ(native.code, 0) << native.err;
  for (const std::string layout :
       {"--set parallel.tensor=2", "--set parallel.context=2", "--set parallel.pipe=2", "--set parallel.data=2"}) {
    const Ended other =
        trained_->run("evaluate run --task piqa --data valid.jsonl --dump " + dump + ".other " + layout);
    ASSERT_EQ(other.code, 0) << other.err;
    std::ifstream a(dump), b(dump + ".other");
    for (std::string x, y; std::getline(a, x) && std::getline(b, y);) {
      const json want = json::parse(x), got = json::parse(y);
      EXPECT_EQ(got["choice"], want["choice"]) << layout;
      EXPECT_EQ(got["greedy"], want["greedy"]) << layout;
      for (size_t i = 0; i < 2; ++i)
        EXPECT_NEAR(got["log_likelihoods"][i].get<double>(), want["log_likelihoods"][i].get<double>(), 2e-4) << layout;
    }
  }
  const Server server(folder(), "");
  std::ifstream documents(folder() / "valid.jsonl"), results(dump);
  size_t count = 0;
  for (std::string document, result; std::getline(documents, document) && std::getline(results, result); ++count) {
    const json d = json::parse(document), want = json::parse(result);
    const std::string context = "Question: " + d["goal"].get<std::string>() + "\nAnswer:";
    for (size_t i = 0; i < 2; ++i) {
      const std::string whole = context + " " + d[i == 0 ? "sol1" : "sol2"].get<std::string>();
      json ids = json::array();
      for (const char c : whole) ids.push_back(static_cast<unsigned char>(c));
      const Response r = server.complete({{"prompt", json::array({ids})},
                                          {"max_tokens", 1},
                                          {"temperature", 0},
                                          {"logprobs", 1},
                                          {"echo", true},
                                          {"seed", 1234}});
      ASSERT_EQ(r.status, 200) << r.body;
      const json choice = r.parsed()["choices"][0], found = choice["logprobs"];
      ASSERT_EQ(found["tokens"].size(), whole.size() + 1);
      EXPECT_EQ(choice["text"].get<std::string>().substr(0, whole.size()), whole);
      EXPECT_TRUE(found["token_logprobs"][0].is_null());
      double sum = 0;
      bool greedy = true;
      for (size_t t = context.size(); t < whole.size(); ++t) {
        const double p = found["token_logprobs"][t];
        sum += p;
        double most = -1e9;
        for (const json& other : found["top_logprobs"][t]) most = std::max(most, other.get<double>());
        greedy = greedy && p == most;
      }
      EXPECT_NEAR(sum, want["log_likelihoods"][i].get<double>(), 1e-5 * std::abs(sum));
      EXPECT_EQ(greedy, want["greedy"][i].get<bool>());
    }
  }
  EXPECT_EQ(count, 12u);
}

TEST_F(Serve, ErrorsHaveTheFormOfTheApi) {
  const Server server(folder(), "--max-body 20000");
  struct Wrong {
    json body;
    int status;
    std::string param, message;
  };
  for (const Wrong& w : std::vector<Wrong>{
           {{{"model", "other"}, {"prompt", "a"}}, 404, "model", "there is no model \"other\"; \"run\" is served"},
           {{{"model", "run"}}, 400, "prompt", "the request has no prompt"},
           {{{"model", "run"}, {"prompt", 3}},
            400,
            "prompt",
            "\"body\":1: \"prompt\" is 3; it should be a text, or a list of texts, of token ids, or of lists of token "
            "ids"},
           {{{"model", "run"}, {"prompt", "a"}, {"max_tokens", "9"}},
            400,
            "max_tokens",
            "\"body\":1: \"max_tokens\" is \"9\"; it should be a whole number"},
           {{{"model", "run"}, {"prompt", "a"}, {"temperature", 3}},
            400,
            "temperature",
            "\"body\":1: \"temperature\" is 3; it should be a number from 0 to 2"},
           {{{"model", "run"}, {"prompt", "a"}, {"logprobs", 21}}, 400, "logprobs", "\"body\":1: \"logprobs\" is 21"},
           {{{"model", "run"}, {"prompt", "a"}, {"tempratur", 1}}, 400, "tempratur", "unknown parameter \"tempratur\""},
           {{{"model", "run"}, {"prompt", "a"}, {"top_p", 0}},
            400,
            "top_p",
            "\"body\":1: \"top_p\" is 0; it should be a number above 0, and at most 1"},
           {{{"model", "run"}, {"prompt", "a"}, {"logit_bias", {{"x", 1}}}}, 400, "logit_bias", "\"body\":1: "},
           {{{"model", "run"}, {"prompt", "a"}, {"logit_bias", {{"99999", 1}}}},
            400,
            "logit_bias",
            "the id 99999 is not one of the "},
           {{{"model", "run"}, {"prompt", "a"}, {"suffix", "b"}}, 400, "suffix", "\"suffix\" is not supported"},
           {{{"model", "run"}, {"prompt", {1, 99999}}}, 400, "prompt", "the id 99999 is not one of the "},
           {{{"model", "run"}, {"prompt", std::string(200, 'a')}},
            400,
            "prompt",
            "the prompt has 200 tokens, and with max_tokens 16 they are more than the model's 128"}}) {
    const Response r = server.complete(w.body);
    EXPECT_EQ(r.status, w.status) << w.body;
    const json error = r.parsed()["error"];
    EXPECT_EQ(error["param"], w.param);
    EXPECT_EQ(error["message"].get<std::string>().substr(0, w.message.size()), w.message);
    EXPECT_TRUE(error["type"].is_string());
  }
  for (const std::string body : {"", "{", "[]", "{\"model\": \"run\", \"prompt\": \"\xff\"}", "{\"a\":1,\"a\":2}"}) {
    const Response r = server.call("POST", "/v1/completions", body);
    EXPECT_EQ(r.status, 400) << body;
    EXPECT_EQ(r.parsed()["error"]["type"], "invalid_request_error") << body;
  }
  const Response none = server.call("GET", "/v1/nothing"), put = server.call("PUT", "/v1/models", "{}");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(none.parsed()["error"]["type"], "not_found_error");
  EXPECT_EQ(put.status, 405);
  const Response large = server.complete({{"prompt", std::string(30'000, 'a')}});
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.parsed()["error"]["message"], "the body is larger than the server takes");
  const Response chat = server.call("POST", "/v1/chat/completions",
                                    R"({"model": "run", "messages": [{"role": "user", "content": "Hi"}]})");
  EXPECT_EQ(chat.status, 400);
  EXPECT_EQ(server.complete(kGreedy).status, 200);  // it goes on
}

TEST_F(Serve, ClientsThatWaitOrLeaveStopNobody) {
  const Server server(folder(), "--connections 3");
  Connection half(server.port);
  half.send("POST /v1/completions HTTP/1.1\r\nHos");
  Connection silent(server.port), garbage(server.port);
  garbage.send("\x16\x03\x01 not HTTP at all\r\n\r\n");
  // A client that disconnects during its answer.
  json body = {{"model", "run"}, {"prompt", "Line 1"}, {"max_tokens", 100}, {"stream", true}, {"n", 100}};
  {
    Connection leaves(server.port);
    leaves.send(request_text("POST", "/v1/completions", body.dump()));
    EXPECT_NE(leaves.receive("data: ").find("data: "), std::string::npos);
  }
  {
    Connection leaves(server.port);
    body.erase("stream");
    leaves.send(request_text("POST", "/v1/completions", body.dump()));
    EXPECT_TRUE(wait_for_metric(server, "requests_running", 1));
  }
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(server.complete(kGreedy).status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
  half.receive();  // it is closed
  silent.receive();
  EXPECT_TRUE(wait_for_metric(server, "requests_cancelled_total", 2));
  EXPECT_TRUE(wait_for_metric(server, "requests_running", 0));
  EXPECT_EQ(server.metric("texts_waiting"), 0);
}

// The same text alone and among others; and a full server: /health and /metrics still respond.
TEST_F(Serve, ManyTextsAtTheSameTimeAreThoseAlone) {
  for (const std::string layout : {"", "--set parallel.tensor=2"}) {
    const Server server(folder(), "--slots 5 " + layout);
    std::vector<json> bodies;
    std::vector<std::string> alone;
    for (int i = 0; i < 32; ++i) {
      bodies.push_back({{"model", "run"},
                        {"prompt", fmt::format("Line {} of a text", std::string(static_cast<size_t>(i % 7), 'x'))},
                        {"max_tokens", 8 + 3 * (i % 9)},
                        {"temperature", i % 4 == 0 ? 0.7 : 0.0},
                        {"top_p", 0.9},
                        {"seed", i}});
      alone.push_back(server.complete(bodies.back()).parsed()["choices"][0]["text"]);
    }
    std::vector<std::string> together(bodies.size());
    std::vector<std::thread> clients;
    for (size_t i = 0; i < bodies.size(); ++i)
      clients.emplace_back([&, i] { together[i] = server.complete(bodies[i]).parsed()["choices"][0]["text"]; });
    for (std::thread& client : clients) client.join();
    for (size_t i = 0; i < bodies.size(); ++i) EXPECT_EQ(together[i], alone[i]) << bodies[i] << layout;
  }
}

TEST_F(Serve, TellsHowItIsWhenItIsFull) {
  const Server server(folder(), "--slots 1 --connections 2");
  std::vector<std::unique_ptr<Connection>> clients;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_unique<Connection>(server.port));
    clients.back()->send(request_text(
        "POST", "/v1/completions",
        json{{"model", "run"}, {"prompt", "Line 1"}, {"max_tokens", 100}, {"stream", true}, {"n", 60}}.dump()));
  }
  EXPECT_TRUE(wait_for_metric(server, "requests_running", 2));
  EXPECT_EQ(server.call("GET", "/health").status, 200);
  EXPECT_TRUE(wait_for_metric(server, "slots_used", 1));
  const Response refused = server.complete(kGreedy);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.parsed()["error"]["type"], "rate_limit_error");
  clients.clear();
  EXPECT_TRUE(wait_for_metric(server, "requests_running", 0));
  EXPECT_EQ(server.complete(kGreedy).status, 200);
}

TEST_F(Serve, RefusesWhatItHasNoRoomForAndWhoHasNoKey) {
  std::ofstream(folder() / "key") << "secret\n";
  const Server server(folder(), "--queue 2 --key-file key");
  const std::string key = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(server.call("GET", "/health").status, 200);
  EXPECT_EQ(server.call("GET", "/v1/models").status, 401);
  EXPECT_EQ(server.call("GET", "/v1/models", "", "Authorization: Bearer secre\r\n").status, 401);
  EXPECT_EQ(server.call("GET", "/v1/models", "", key).parsed()["data"][0]["id"], "run");
  json body = kGreedy;
  body["model"] = "run";
  body["n"] = 3;
  const Response r = server.call("POST", "/v1/completions", body.dump(), key);
  EXPECT_EQ(r.status, 429);
  EXPECT_NE(r.head.find("Retry-After: 1"), std::string::npos);
  EXPECT_EQ(r.parsed()["error"]["type"], "rate_limit_error");
}

TEST_F(Serve, TellsOfItsTokenizer) {
  const Server server(folder(), "");
  const json info = server.call("GET", "/tokenizer_info").parsed();
  EXPECT_TRUE(info.contains("eos_token"));
  EXPECT_EQ(info["model_max_length"], 128);
  EXPECT_EQ(server.call("POST", "/tokenize", R"({"prompt": "ab", "add_special_tokens": false})").parsed()["tokens"],
            (json{97, 98}));
  EXPECT_EQ(server.call("POST", "/detokenize", R"({"tokens": [97, 98]})").parsed()["prompt"], "ab");
  EXPECT_EQ(server.call("POST", "/detokenize", R"({"tokens": [97, 99999]})").status, 400);
}

TEST_F(Serve, APortInUseAndASignal) {
  Server server(folder(), "");
  const Ended second = trained_->run(fmt::format("serve run --port {}", server.port));
  EXPECT_EQ(second.code, 1);
  EXPECT_EQ(second.err.find(fmt::format("error: [serve] cannot listen on 127.0.0.1:{}: ", server.port)), 0u)
      << second.err;
  server.process.send(SIGTERM);
  EXPECT_EQ(server.process.wait().code, 0);
}

}  // namespace kintsugi::tests::server_test
