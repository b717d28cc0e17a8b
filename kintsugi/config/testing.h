// For the tests of this module: the text of an error.
#pragma once

#include <string>

#include "kintsugi/base/error.h"

namespace kintsugi::config {

// The text of the UserError that `f` throws, or "no error".
template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace kintsugi::config
