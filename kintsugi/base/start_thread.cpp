#include "kintsugi/base/start_thread.h"

#include <pthread.h>

#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::base {
namespace {

// Stack size of a new thread; 0 if unknown.
size_t stack_bytes() {
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return 0;
  size_t bytes = 0;
  if (::pthread_attr_getstacksize(&attributes, &bytes) != 0) bytes = 0;
  ::pthread_attr_destroy(&attributes);
  return bytes;
}

}  // namespace

void throw_no_thread(const std::system_error& error) {
  const size_t bytes = stack_bytes();
  const std::string each = bytes > 0 ? format_bytes(bytes) + " of memory for its stack" : "memory for its stack";
  throw UserError("threads",
                  "cannot start more threads: {}; each uses {} of stack (ulimit -s); use fewer threads or ranks",
                  error.code().message(), each);
}

}  // namespace kintsugi::base
