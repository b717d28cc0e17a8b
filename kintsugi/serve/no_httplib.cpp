#include "kintsugi/base/error.h"
#include "kintsugi/serve/http.h"

namespace kintsugi::serve {

std::unique_ptr<HttpServer> open_http(const std::string&, int, const HttpLimits&, HttpServer::Handler,
                                      HttpServer::Refusal) {
  throw base::UserError("serve",
                        "this build has no HTTP server; install libcpp-httplib-dev, configure and build again");
}

bool has_http() {
  return false;
}

}  // namespace kintsugi::serve
