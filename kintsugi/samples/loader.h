// Reading ahead of the consumer.
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
  uint64_t first_step = 0;                        // the cursor: all that a resumed run needs to go on
  uint64_t end_step = UINT64_MAX;                 // the step before which it ends
  int depth = 4;                                  // micro-batches read ahead
  std::chrono::milliseconds time_limit{600'000};  // for one micro-batch; a file system that hangs is an error
};

// A thread that fills micro-batches in the order of (step, micro-batch), up to `depth` ahead of the one consumer.
// All memory is allocated by the constructor. The source must outlive the loader.
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
  // The next micro-batch; valid until the next call. Throws what the source threw, at the micro-batch where it threw;
  // UserError past the time limit; InternalError after the last step.
  const Item& next();

 private:
  struct Slot {
    BatchMemory memory;
    Item item;
  };
  void run();

  const SampleSource& source_;
  LoaderOptions options_;
  std::vector<Slot> slots_;  // a ring: filled_ counts what was written, taken_ what was handed out
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
