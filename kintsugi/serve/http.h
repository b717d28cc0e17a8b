// An HTTP server. The library behind it is known to http.cpp alone; no_httplib.cpp takes its place where the build
// lacks it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kintsugi::serve {

struct HttpRequest {
  std::string method = {}, path = {};
  std::string body = {};
  std::string authorization = {};  // the header
};

// A body that is produced while it is sent.
class BodySource {
 public:
  virtual ~BodySource() = default;

  // Appends what there is to send, after at most some 100 ms. False: that was the end.
  virtual bool next(std::string& part) = 0;
  // The client has left. Called at most once, by the thread that calls next().
  virtual void cancel() = 0;
};

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::shared_ptr<BodySource> source = nullptr;  // instead of the body
  int retry_after_seconds = 0;                   // 0: the header is left out
};

struct HttpLimits {
  size_t body_bytes = 4 << 20;
  int connections = 64;     // served at the same time, those with short answers included; others wait
  int header_seconds = 10;  // for each part of a request to arrive, and of an answer to be taken
};

class HttpServer {
 public:
  // Called by several threads at once. What it throws is an answer with status 500.
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;
  // An answer for requests that the library refuses: a body that is too large, a malformed request.
  using Refusal = std::function<std::string(int status)>;

  virtual ~HttpServer() = default;
  virtual int port() const = 0;
  virtual void run() = 0;   // returns after stop()
  virtual void stop() = 0;  // by any thread; answers under way are finished
};

// Listens on the address; port 0: any that is free. UserError if that is not possible, or if the build has no library.
std::unique_ptr<HttpServer> open_http(const std::string& address, int port, const HttpLimits& limits,
                                      HttpServer::Handler handler, HttpServer::Refusal refusal);

// Whether the build has the library.
bool has_http();

}  // namespace kintsugi::serve
