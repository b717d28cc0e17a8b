#include "kintsugi/serve/api_error.h"

#include "kintsugi/base/json_writer.h"
#include "kintsugi/serve/api_text.h"

namespace kintsugi::serve {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

std::string error_body(int status, std::string_view message, std::string_view param, std::string_view code) {
  base::JsonWriter out;
  const auto text_or_null = [&](std::string_view key, std::string_view text) {
    out.key(key);
    text.empty() ? out.null() : out.value(text);
  };
  out.object([&] {
    out.key("error").object([&] {
      out.key("message").value(valid_text(message));
      out.key("type").value(type_of(status));
      text_or_null("param", param);
      text_or_null("code", code);
    });
  });
  return out.text();
}

}  // namespace kintsugi::serve
