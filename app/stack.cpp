#include "app/stack.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>

namespace kintsugi::app {
namespace {

constexpr rlim_t kStack = rlim_t{8} << 20;

struct Call {
  const std::function<int()>* f;
  int result;
};

void* make_call(void* call) {
  auto* const c = static_cast<Call*>(call);
  c->result = (*c->f)();
  return nullptr;
}

}  // namespace

int with_stack(const std::function<int()>& f) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kStack) return f();
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return f();
  if (::pthread_attr_setstacksize(&attributes, kStack) == 0) ::pthread_setattr_default_np(&attributes);
  // The main thread's stack grows up to the current limit; the C library read the limit for threads at the start.
  const bool allowed = limit.rlim_max >= kStack;
  limit.rlim_cur = std::min(limit.rlim_max, kStack);
  const bool raised = allowed && ::setrlimit(RLIMIT_STACK, &limit) == 0;
  Call call = {.f = &f, .result = 0};
  pthread_t thread;
  if (raised || ::pthread_create(&thread, &attributes, make_call, &call) != 0) {
    call.result = f();
  } else {
    ::pthread_join(thread, nullptr);
  }
  ::pthread_attr_destroy(&attributes);
  return call.result;
}

}  // namespace kintsugi::app
