#include "kintsugi/search/clock.h"

#include <algorithm>
#include <limits>

namespace kintsugi::search {

void Clock::run(double seconds) {
  std::erase_if(flows_, [&](const Flow& f) { return f.end <= now; });
  while (seconds > 0) {
    double slowdown = 1, until = std::numeric_limits<double>::infinity();
    for (const Flow& f : flows_) {
      if (f.end <= now) continue;
      until = std::min(until, f.begin > now ? f.begin : f.end);
      if (f.begin <= now) slowdown = std::max(slowdown, f.slowdown);
    }
    if (seconds * slowdown <= until - now) {
      now += seconds * slowdown;
      return;
    }
    seconds -= (until - now) / slowdown;
    now = until;
  }
}

double Clock::transfer(int queue, const simulate::TransferTime& time) {
  double& free = free_[static_cast<size_t>(queue)];
  const double begin = std::max(free, now) + time.latency;
  free = begin + time.seconds;
  flows_.push_back(
      {begin, free,
       cluster_.slowdown(time.link == simulate::LinkKind::node, time.link == simulate::LinkKind::network)});
  return free;
}

}  // namespace kintsugi::search
