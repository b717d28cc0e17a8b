// An HTTP server. Only http.cpp knows the library behind it; no_httplib.cpp replaces it where the build lacks the
// library.
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

// A body produced while it is sent.
class BodySource {
 public:
  virtual ~BodySource() = default;

  // Appends what is ready to send, waiting at most about 100 ms. Returns false at the end.
  virtual bool next(std::string& part) = 0;
  // The client disconnected. Called at most once, by the thread that calls next().
  virtual void cancel() = 0;
};

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::shared_ptr<BodySource> source = nullptr;  // instead of the body
  int retry_after_seconds = 0;                   // 0: omit the header
};

struct HttpLimits {
  size_t body_bytes = 4 << 20;
  int connections = 64;     // served concurrently, including those with short answers; others wait
  int header_seconds = 10;  // for each part of a request to arrive, and of an answer to be accepted
};

class HttpServer {
 public:
  // Called concurrently by several threads. Exceptions become answers with status 500.
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;
  // Creates an answer to requests that the library rejects: too large a body, a malformed request.
  using Refusal = std::function<std::string(int status)>;

  virtual ~HttpServer() = default;
  virtual int port() const = 0;
  virtual void run() = 0;   // returns after stop()
  virtual void stop() = 0;  // thread-safe; answers in progress are finished
};

// Listens on the address; port 0: any free port. Throws UserError on failure, or if the build lacks the library.
std::unique_ptr<HttpServer> open_http(const std::string& address, int port, const HttpLimits& limits,
                                      HttpServer::Handler handler, HttpServer::Refusal refusal);

// Whether the build has the library.
bool has_http();

}  // namespace kintsugi::serve
