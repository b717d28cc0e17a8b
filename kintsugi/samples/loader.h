// Prefetches samples.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/share.h"

namespace kintsugi::samples {

struct LoaderOptions {
  Share share;
  uint64_t first_step = 0;                        // the cursor: all the state that a resumed run needs
  uint64_t end_step = UINT64_MAX;                 // ends before this step
  int depth = 4;                                  // micro-batches to prefetch
  std::chrono::milliseconds time_limit{600'000};  // per micro-batch; a hanging file system is an error
};

// A thread that fills micro-batches in the order of (step, micro-batch), up to `depth` ahead of its single consumer.
// The constructor allocates all memory. The source must outlive the loader.
class Loader {
 public:
  Loader(const SampleSource& source, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  struct Item {
    uint64_t step = 0;
    int64_t micro_batch = 0;
    BatchView batch;
  };
  // Returns the next micro-batch, valid until the next call. Rethrows an exception of the source at the micro-batch
  // where it occurred. Throws UserError past the time limit, and InternalError after the last step.
  const Item& next();

 private:
  struct Slot {
    BatchMemory memory;
    Item item;
  };
  struct Place {
    uint64_t step = 0;
    int64_t micro_batch = 0;
  };
  void run();

  const SampleSource& source_;
  LoaderOptions options_;
  Place expected_;           // of the consumer
  std::vector<Slot> slots_;  // a ring: filled_ counts written items, taken_ consumed ones
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t filled_ = 0;
  uint64_t taken_ = 0;
  bool stop_ = false;
  bool done_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace kintsugi::samples
