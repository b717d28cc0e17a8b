#include "kintsugi/serve/job.h"

namespace kintsugi::serve {

bool JobQueue::push(const std::vector<std::shared_ptr<Job>>& jobs) {
  const std::lock_guard lock(mutex_);
  if (closed_ || jobs_.size() + jobs.size() > most_) return false;
  jobs_.insert(jobs_.end(), jobs.begin(), jobs.end());
  changed_.notify_one();
  return true;
}

std::shared_ptr<Job> JobQueue::pop(std::chrono::milliseconds within) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, within, [&] { return closed_ || !jobs_.empty(); });
  if (jobs_.empty()) return nullptr;
  const std::shared_ptr<Job> job = jobs_.front();
  jobs_.pop_front();
  return job;
}

void JobQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool JobQueue::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

size_t JobQueue::size() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

}  // namespace kintsugi::serve
