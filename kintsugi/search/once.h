// A cache of values by key, each computed by one thread while others that request it wait.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace kintsugi::search {

template <typename Key, typename Value>
class Once {
 public:
  using Pointer = std::shared_ptr<const Value>;

  // The cached value, or else make()'s. `make` returns a Pointer; exceptions are not cached.
  template <typename Make>
  Pointer get(const Key& key, Make&& make) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (const auto found = values_.find(key); found != values_.end()) return found->second;
      if (making_.insert(key).second) break;
      made_.wait(lock);
    }
    lock.unlock();
    Pointer value;
    try {
      value = make();
    } catch (...) {
      finish(key);
      throw;
    }
    lock.lock();
    values_.try_emplace(key, value);
    lock.unlock();
    finish(key);
    return value;
  }

  // If there are at least `most` values, evicts those whose keys satisfy `is_old`.
  template <typename IsOld>
  void forget(size_t most, IsOld&& is_old) {
    const std::scoped_lock lock(mutex_);
    if (values_.size() >= most) std::erase_if(values_, [&](const auto& kept) { return is_old(kept.first); });
  }

 private:
  void finish(const Key& key) {
    {
      const std::scoped_lock lock(mutex_);
      making_.erase(key);
    }
    made_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable made_;
  std::map<Key, Pointer> values_;
  std::set<Key> making_;
};

}  // namespace kintsugi::search
