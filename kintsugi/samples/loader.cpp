#include "kintsugi/samples/loader.h"

#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/start_thread.h"

namespace kintsugi::samples {

Loader::Loader(const SampleSource& source, LoaderOptions options)
    : source_(source), options_(std::move(options)), expected_{options_.first_step, 0} {
  require_even(options_.share);
  base::require(options_.depth > 0, "data", "reading {} ahead", options_.depth);
  slots_.resize(static_cast<size_t>(options_.depth) + 1);  // one is held by the consumer
  for (Slot& slot : slots_) {
    slot.memory.resize(options_.share.micro_batch, source_.parts());
    slot.item.batch = slot.memory.view();
  }
  thread_ = base::start_thread([this] { run(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Loader::run() {
  try {
    for (uint64_t step = options_.first_step; step < options_.end_step; ++step) {
      for (int64_t m = 0; m < options_.share.micro_batches(step); ++m) {
        Slot* slot = nullptr;
        {
          std::unique_lock lock(mutex_);
          // The consumer holds the last one it took, so one slot is unavailable.
          changed_.wait(lock, [&] { return stop_ || filled_ - taken_ < static_cast<uint64_t>(options_.depth); });
          if (stop_) return;
          slot = &slots_[filled_ % slots_.size()];
        }
        slot->item.step = step;
        slot->item.micro_batch = m;
        source_.fill(options_.share.first_sample(step, m), slot->item.batch);
        {
          const std::lock_guard lock(mutex_);
          ++filled_;
        }
        changed_.notify_all();
      }
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
}

const Loader::Item& Loader::next() {
  std::unique_lock lock(mutex_);
  const bool came = changed_.wait_for(lock, options_.time_limit, [&] { return done_ || filled_ > taken_; });
  if (filled_ > taken_) {
    const Item& item = slots_[taken_ % slots_.size()].item;
    ++taken_;
    expected_ = item.micro_batch + 1 < options_.share.micro_batches(item.step) ? Place{item.step, item.micro_batch + 1}
                                                                               : Place{item.step + 1, 0};
    lock.unlock();
    changed_.notify_all();
    return item;
  }
  if (!came)
    throw base::UserError(
        "data", "reading micro-batch {} of step {} takes more than {} s; does the file system of the token files work?",
        expected_.micro_batch, expected_.step, options_.time_limit.count() / 1000);
  if (error_) std::rethrow_exception(error_);
  throw base::InternalError("data", "a micro-batch past the last step {}", options_.end_step);
}

}  // namespace kintsugi::samples
