// API errors, in the form that clients expect.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace kintsugi::serve {

// A status for the client, and a body {"error": {"message", "type", "param", "code"}}.
class ApiError : public std::runtime_error {
 public:
  template <typename... Args>
  ApiError(int status_, std::string_view param_, fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)), status(status_), param(param_) {}

  ApiError& with_code(std::string_view text) {
    code = text;
    return *this;
  }

  int status;
  std::string param;  // the invalid member of the request; "": none
  std::string code;   // "": none
};

// The body of an error. The status determines the type.
std::string error_body(int status, std::string_view message, std::string_view param = {}, std::string_view code = {});

}  // namespace kintsugi::serve
