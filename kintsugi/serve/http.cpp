#include "kintsugi/serve/http.h"

#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "kintsugi/base/error.h"

namespace kintsugi::serve {
namespace {

// Without SO_REUSEPORT, so that a port in use is an error.
void set_options(int socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

// Releases its source when the library is done with the answer, on success or failure.
class Sending {
 public:
  explicit Sending(std::shared_ptr<BodySource> source) : source_(std::move(source)) {}

  bool send(httplib::DataSink& sink) {
    if (sink.is_writable && !sink.is_writable()) return leave();
    std::string part;
    const bool more = source_->next(part);
    if (!part.empty() && !sink.write(part.data(), part.size())) return leave();
    if (!more) {
      ended_ = true;
      sink.done();
    }
    return true;
  }
  void end(bool) { leave(); }

 private:
  bool leave() {
    if (!ended_) source_->cancel();
    ended_ = true;
    return false;
  }

  std::shared_ptr<BodySource> source_;
  bool ended_ = false;
};

class LibraryServer : public HttpServer {
 public:
  LibraryServer(const std::string& address, int port, const HttpLimits& limits, Handler handler, Refusal refusal)
      : handler_(std::move(handler)), refusal_(std::move(refusal)) {
    server_.new_task_queue = [count = limits.connections] {
      return new httplib::ThreadPool(static_cast<size_t>(count));
    };
    server_.set_socket_options(set_options);
    server_.set_tcp_nodelay(true);
    server_.set_payload_max_length(limits.body_bytes);
    server_.set_read_timeout(limits.header_seconds);
    server_.set_write_timeout(limits.header_seconds);
    server_.set_keep_alive_timeout(limits.header_seconds);
    server_.set_keep_alive_max_count(10'000);
    const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
      respond(request, response);
    };
    server_.Get(".*", answer).Post(".*", answer).Put(".*", answer).Delete(".*", answer).Patch(".*", answer);
    server_.set_error_handler([this](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) response.set_content(refusal_(response.status), "application/json");
    });
    errno = 0;
    port_ = port > 0 ? port : server_.bind_to_any_port(address);
    if (port_ < 0 || (port > 0 && !server_.bind_to_port(address, port)))
      throw base::UserError("serve", "cannot listen on {}:{}: {}; name another with --host and --port", address, port,
                            errno == 0 ? "no such address" : std::strerror(errno));
  }

  int port() const override { return port_; }
  void run() override {
    running_ = true;
    if (!stopped_) server_.listen_after_bind();
    running_ = false;
  }
  void stop() override {
    stopped_ = true;
    // The library's stop() has no effect before it listens.
    while (running_ && !server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    server_.stop();
  }

 private:
  void respond(const httplib::Request& request, httplib::Response& response) {
    HttpAnswer answer;
    try {
      answer = handler_({.method = request.method,
                         .path = request.path,
                         .body = request.body,
                         .authorization = request.get_header_value("Authorization")});
    } catch (const std::exception&) {
      answer = {.status = 500, .body = refusal_(500)};
    }
    response.status = answer.status;
    if (answer.retry_after_seconds > 0) response.set_header("Retry-After", std::to_string(answer.retry_after_seconds));
    if (!answer.source) return response.set_content(answer.body, answer.type);
    response.set_header("Cache-Control", "no-cache");
    const auto sending = std::make_shared<Sending>(answer.source);
    response.set_chunked_content_provider(
        answer.type, [sending](size_t, httplib::DataSink& sink) { return sending->send(sink); },
        [sending](bool success) { sending->end(success); });
  }

  Handler handler_;
  Refusal refusal_;
  httplib::Server server_;
  int port_ = 0;
  std::atomic<bool> running_ = false, stopped_ = false;
};

}  // namespace

std::unique_ptr<HttpServer> open_http(const std::string& address, int port, const HttpLimits& limits,
                                      HttpServer::Handler handler, HttpServer::Refusal refusal) {
  return std::make_unique<LibraryServer>(address, port, limits, std::move(handler), std::move(refusal));
}

bool has_http() {
  return true;
}

}  // namespace kintsugi::serve
