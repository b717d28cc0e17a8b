// Processes a stream of items in parallel and delivers results in the order of the items.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "kintsugi/base/start_thread.h"

namespace kintsugi::data {

// `read(Item&)` produces the next item, or returns false at the end; only one thread calls it at a time. `work(Item&,
// thread) -> Result` runs on `threads` threads concurrently. `consume(Result&&)` and `idle()` (ten times per second
// while there is nothing to consume) run on the caller's thread. At most four items per thread are in flight. Throws
// the first exception in the order of the items, regardless of when they occurred; but if a thread lacks memory to
// record its item, that exception is thrown.
template <typename Item, typename Result>
class OrderedParallel {
 public:
  template <typename Read, typename Work, typename Consume, typename Idle>
  static void run(int threads, Read&& read, Work&& work, Consume&& consume, Idle&& idle) {
    OrderedParallel state;
    state.window_ = 4 * static_cast<uint64_t>(threads);
    const Team team(state);
    state.threads_.reserve(static_cast<size_t>(threads));
    for (int t = 0; t < threads; ++t) {
      state.threads_.push_back(base::start_thread([&state, &read, &work, t] {
        try {
          state.work_loop(read, work, t);
        } catch (...) {
          state.fail(std::current_exception());
        }
      }));
    }
    while (std::optional<Outcome> outcome = state.take(idle)) {
      if (outcome->error) std::rethrow_exception(outcome->error);
      consume(std::move(*outcome->result));
    }
  }

 private:
  struct Outcome {
    std::optional<Result> result;
    std::exception_ptr error;
  };

  // Joins the threads on every exit of run().
  struct Team {
    explicit Team(OrderedParallel& state) : state_(state) {}
    ~Team() {
      {
        const std::lock_guard lock(state_.mutex_);
        state_.ended_ = true;
      }
      state_.changed_.notify_all();
      for (std::thread& thread : state_.threads_) thread.join();
    }
    OrderedParallel& state_;
  };

  template <typename Read, typename Work>
  void work_loop(Read& read, Work& work, int thread) {
    Item item;
    while (true) {
      uint64_t number = 0;
      Outcome outcome;
      {
        const std::lock_guard reading(read_mutex_);
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] { return ended_ || num_read_ < num_taken_ + window_; });
          if (ended_) return;
        }
        bool some = true;
        try {
          some = read(item);
        } catch (...) {
          outcome.error = std::current_exception();
        }
        const std::lock_guard lock(mutex_);
        if (!some || outcome.error) ended_ = true;
        if (!some) {
          changed_.notify_all();
          return;
        }
        number = num_read_++;
      }
      try {
        if (!outcome.error) outcome.result.emplace(work(item, thread));
      } catch (...) {
        outcome.error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        outcomes_.emplace(number, std::move(outcome));
      }
      changed_.notify_all();
    }
  }

  // An error not tied to an item: no memory to record one.
  void fail(std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      failure_ = error;
    }
    changed_.notify_all();
  }

  template <typename Idle>
  std::optional<Outcome> take(Idle& idle) {
    std::unique_lock lock(mutex_);
    while (true) {
      if (failure_) std::rethrow_exception(failure_);
      const auto found = outcomes_.find(num_taken_);
      if (found != outcomes_.end()) {
        Outcome outcome = std::move(found->second);
        outcomes_.erase(found);
        ++num_taken_;
        lock.unlock();
        changed_.notify_all();
        return outcome;
      }
      if (ended_ && num_taken_ == num_read_) return std::nullopt;
      if (changed_.wait_for(lock, std::chrono::milliseconds(100)) == std::cv_status::timeout) {
        lock.unlock();
        idle();
        lock.lock();
      }
    }
  }

  std::mutex read_mutex_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Outcome> outcomes_;
  std::vector<std::thread> threads_;
  uint64_t window_ = 0;
  uint64_t num_read_ = 0;
  uint64_t num_taken_ = 0;
  std::exception_ptr failure_;
  bool ended_ = false;  // nothing more to read
};

}  // namespace kintsugi::data
