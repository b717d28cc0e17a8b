// A stand-in of NVIDIA's NCCL for tests: a shared library with the functions that Kintsugi calls, for ranks that are
// threads of one process with an emulated device. It checks that members call alike and in the same order, and moves
// and adds as requested, but in another order than that of the ranks, as the real one may.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace kintsugi::tests::nccl {

// What a thread launched as a unit: a call, or those of a group.
struct Launched {
  struct Part {
    const void* meeting = nullptr;  // the same for all members
    size_t members = 0;
  };
  const void* communicator = nullptr;
  std::vector<Part> parts;
  bool message = false;  // one, alone
};

struct Standin {
  // Calls f with the stream, or if that is being captured, at each launch with the actual one.
  void (*at_each_launch)(void* stream, const std::function<void(void*)>& f) = nullptr;
  // Enqueues work in a stream; and runs all work enqueued there so far.
  void (*enqueue)(void* stream, std::function<void()> work) = nullptr;
  std::function<void()> (*all_until_here)(void* stream) = nullptr;
  void (*not_yet)() = nullptr;  // throws, so that the work is tried again
  int64_t collectives = 0, messages = 0, groups = 0, aborted = 0, aborted_at_once = 0;
  std::map<std::thread::id, std::vector<Launched>> order;  // of all communicators, by thread: by rank
  int async_error = 0;                                     // what ncclCommGetAsyncError says
  std::vector<std::string> broken;                         // rules that were not kept
};

}  // namespace kintsugi::tests::nccl

// The only name that the real library lacks.
extern "C" kintsugi::tests::nccl::Standin* kintsugi_nccl_standin();
