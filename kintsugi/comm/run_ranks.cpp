#include "kintsugi/comm/run_ranks.h"

#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "kintsugi/base/start_thread.h"

namespace kintsugi::comm {

void run_ranks(std::span<const std::unique_ptr<World>> worlds, const std::function<void(World&)>& f) {
  std::mutex mutex;
  std::exception_ptr first;
  bool first_is_timeout = false;
  const auto caught = [&](World& world, bool timeout, const char* what) {
    {
      const std::lock_guard lock(mutex);
      if (!first || (first_is_timeout && !timeout)) {
        first = std::current_exception();
        first_is_timeout = timeout;
      }
    }
    std::string reason;
    try {
      reason = what;
    } catch (const std::bad_alloc&) {
      reason = "no more memory";  // short enough to need no allocation
    }
    world.abort(reason);
  };
  const auto work = [&](World& world) {
    try {
      f(world);
    } catch (const Timeout& e) {
      caught(world, true, e.what());
    } catch (const std::exception& e) {
      caught(world, false, e.what());
    }
  };
  if (worlds.size() == 1) {
    f(*worlds[0]);
    return;
  }
  std::vector<std::thread> threads;
  threads.reserve(worlds.size());
  try {
    for (const std::unique_ptr<World>& world : worlds)
      threads.push_back(base::start_thread([&work, &world] { work(*world); }));
  } catch (const std::exception& e) {  // threads already started would wait for the missing ones
    caught(*worlds[threads.size()], false, e.what());
  }
  for (std::thread& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace kintsugi::comm
